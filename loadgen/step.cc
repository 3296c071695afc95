#include "loadgen/step.h"

#include <algorithm>
#include <numeric>

namespace twp::load {

std::string_view failure_name(Failure f) noexcept {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Failure::count_)> kNames{
      "status", "length", "body", "transport", "timeout", "connect", "refused", "reset", "grpc", "stray"};
  return kNames[static_cast<std::size_t>(f)];
}

std::uint64_t Counters::errors() const noexcept {
  return std::accumulate(failures.begin(), failures.end(), std::uint64_t{0});
}

void Counters::merge(const Counters& o) {
  latency.merge(o.latency);
  service.merge(o.service);
  connecting.merge(o.connecting);
  requests += o.requests;
  octets += o.octets;
  unfinished += o.unfinished;
  early += o.early;
  connect_retries += o.connect_retries;
  note_allowed(o.allowed_streams);
  for (std::size_t i = 0; i < failures.size(); ++i) failures[i] += o.failures[i];
  if (first_error.empty()) first_error = o.first_error;
}

double Step::rps() const noexcept {
  const std::uint64_t good = counters.requests - std::min(counters.requests, counters.errors());
  return duration_s > 0 ? static_cast<double>(good) / duration_s : 0;
}

double Step::error_rate() const noexcept {
  if (counters.requests == 0) return counters.errors() != 0 ? 1 : 0;
  return static_cast<double>(counters.errors()) / static_cast<double>(counters.requests);
}

double Step::goodput_mib_s() const noexcept {
  return duration_s > 0 ? static_cast<double>(counters.octets) / (1024.0 * 1024.0) / duration_s : 0;
}

bool Step::slo_met(const Slo& slo) const noexcept {
  // Nothing answered is not a step that held.
  return counters.latency.count() != 0 && slo.met(error_rate(), counters.latency.percentile_us(99));
}

const Sampler::Usage* Step::watched(std::string_view name) const noexcept {
  const auto it = std::find_if(usage.begin(), usage.end(), [&](const auto& u) { return u.name == name; });
  return it == usage.end() ? nullptr : &*it;
}

double Step::per_request_us(std::uint64_t cpu_ns) const noexcept {
  return counters.requests == 0 ? 0 : static_cast<double>(cpu_ns) / 1e3 / static_cast<double>(counters.requests);
}

const Step* sustained(const Plan& plan, const std::vector<Step>& steps) noexcept {
  const Step* last = nullptr;
  for (const Step& s : steps)
    if (s.slo_met(plan.slo)) last = &s;
  return last;
}

const Step* peak(const std::vector<Step>& steps) noexcept {
  const auto it = std::max_element(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.rps() < b.rps(); });
  return it == steps.end() ? nullptr : &*it;
}

int exit_status(const Plan& plan, const std::vector<Step>& steps) noexcept {
  bool measured = false;
  bool met = true;
  bool right = false;
  for (const Step& s : steps) {
    if (s.interrupted && s.counters.requests == 0) continue;
    measured = true;
    met = met && s.slo_met(plan.slo);
    right = right || s.counters.requests > s.counters.errors();
  }
  if (!measured) return 1;
  if (plan.slo.given && !met) return 3;
  return right ? 0 : 1;
}

}  // namespace twp::load
