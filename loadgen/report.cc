#include "loadgen/report.h"

#include <algorithm>
#include <cstdio>

#include "loadgen/units.h"

namespace twp::load {
namespace {

std::string pad(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

constexpr std::size_t kWide = 11;
constexpr std::size_t kNarrow = 9;

std::string latency(const char* name, const Histogram& h) {
  std::string out = name;
  for (const auto& [label, p] : {std::pair{"p50", 50.0}, {"p90", 90.0}, {"p99", 99.0}, {"p99.9", 99.9}})
    out += std::string("  ") + label + " " + show_us(h.percentile_us(p));
  return out + "  max " + show_us(h.max_us()) + "\n";
}

}  // namespace

std::string progress_line(const Progress& p) {
  return "c=" + std::to_string(p.concurrency) + "  " + p.phase + " " + fixed(p.elapsed_s, 1) + "/" + fixed(p.of_s, 1) +
         " s  " + show_count(p.rate) + " req/s  " + show_count(p.errors) + " errors";
}

std::string title(const Plan& plan) {
  std::string out = plan.url.text() + plan.url.target + "  " + plan.client;
  constexpr std::array kNames{"", "  early response", "  duplex", "  WebSocket echo", "  gRPC unary"};
  out += kNames[static_cast<std::size_t>(plan.workload)];
  if (plan.method != "GET" && plan.workload != Workload::grpc) out += "  " + plan.method;
  if (plan.new_connection) out += "  a new connection each";
  out += plan.open_loop() ? "  open loop, " + fixed(plan.rate, 0) + " req/s" : "  closed loop";
  out += "  " + fixed(std::chrono::duration<double>(plan.duration).count(), 1) + " s after " +
         fixed(std::chrono::duration<double>(plan.warmup).count(), 1) + " s of warm-up\n";
  return out;
}

std::string table_header(const Plan& plan) {
  std::string out = pad("c", 6) + pad("req/s", kWide);
  for (const char* name : {"p50", "p90", "p99", "p99.9", "max"}) out += pad(name, kNarrow);
  out += pad("errors", kNarrow) + pad("MiB/s", kNarrow) + pad("own us/req", kWide);
  for (const Watched& w : plan.watch) out += pad(w.name + " us/req", 14) + pad("RSS MiB", kNarrow);
  if (plan.limit_us > 0) out += pad("x limit", kNarrow);
  return out + "\n";
}

std::string table_line(const Plan& plan, const Step& s) {
  const Histogram& h = s.counters.latency;
  std::string out = pad(std::to_string(s.concurrency), 6) + pad(show_count(static_cast<std::uint64_t>(s.rps() + 0.5)), kWide);
  for (const double p : {50.0, 90.0, 99.0, 99.9}) out += pad(show_us(h.percentile_us(p)), kNarrow);
  out += pad(show_us(h.max_us()), kNarrow) + pad(fixed(s.error_rate() * 100, 2) + "%", kNarrow);
  out += pad(fixed(s.goodput_mib_s(), 1), kNarrow) + pad(fixed(s.per_request_us(s.own_cpu_ns), 2), kWide);
  for (const auto& u : s.usage)
    out += pad(fixed(s.per_request_us(u.cpu_ns), 2), 14) + pad(fixed(static_cast<double>(u.rss_peak_bytes) / 1048576.0, 1), kNarrow);
  if (plan.limit_us > 0) {
    const Sampler::Usage* proxy = s.watched("proxy");
    out += pad(proxy == nullptr ? "-" : fixed(s.per_request_us(proxy->cpu_ns) / plan.limit_us, 2), kNarrow);
  }
  if (!s.slo_met(plan.slo)) out += "  SLO missed";
  return out + (s.interrupted ? "  interrupted\n" : "\n");
}

std::string details(const Plan& plan, const Step& s) {
  const Counters& c = s.counters;
  std::string out = show_count(c.requests) + " requests in " + fixed(s.duration_s, 2) + " s over " +
                    std::to_string(s.connections) + (s.connections == 1 ? " connection" : " connections") + " and " + std::to_string(s.threads) + " thread" +
                    (s.threads == 1 ? "\n" : "s\n");
  if (plan.open_loop()) {
    out += latency("from the intended start (corrected):", c.latency);
    out += latency("from the actual start (raw):        ", c.service);
    if (c.unfinished != 0) out += show_count(c.unfinished) + " due requests had no answer at the end; they count with the time they had waited\n";
  }
  if (c.connecting.count() > 0) out += latency("connecting:", c.connecting);
  if (c.early != 0) out += show_count(c.early) + " responses came before the upload was complete (whole run)\n";
  if (c.errors() != 0) {
    out += show_count(c.errors()) + " errors:";
    for (std::size_t i = 0; i < c.failures.size(); ++i)
      if (c.failures[i] != 0) out += " " + std::string(failure_name(static_cast<Failure>(i))) + " " + show_count(c.failures[i]);
    out += "\n";
  }
  if (!c.first_error.empty()) out += "first error: " + c.first_error + "\n";
  return out;
}

std::string ramp_summary(const Plan& plan, const std::vector<Step>& steps) {
  const Step* held = sustained(plan, steps);
  const Step* top = peak(steps);
  std::string out;
  if (held == nullptr) out = "sustain: no step met the SLO";
  else out = "sustain: c=" + std::to_string(held->concurrency) + ", " + show_count(static_cast<std::uint64_t>(held->rps() + 0.5)) + " req/s";
  out += " (p99 <= " + show_us(plan.slo.p99_us) + ", errors <= " + fixed(plan.slo.errors * 100, 2) + "%)\n";
  if (top != nullptr)
    out += "peak: " + show_count(static_cast<std::uint64_t>(top->rps() + 0.5)) + " req/s at c=" + std::to_string(top->concurrency) + "\n";
  return out;
}

std::string limit_warning(const Step& s) {
  const unsigned most = s.counters.allowed_streams;
  if (most == 0) return {};
  const Spread spread{s.concurrency, s.connections};
  unsigned in_flight = 0;
  for (unsigned i = 0; i < s.connections; ++i) in_flight += std::min(spread.of(i), most);
  return "warning: the server takes " + std::to_string(most) + (most == 1 ? " request" : " requests") +
         " at a time on a connection (SETTINGS_MAX_CONCURRENT_STREAMS) and " + std::to_string(spread.most()) +
         " were to be: at most " + std::to_string(in_flight) + " of " + std::to_string(s.concurrency) +
         " were in flight (-m " + std::to_string(most) + " opens enough connections)\n";
}

std::string warnings(const Plan&, const Step& s) {
  std::string out;
  if (s.saturated())
    out += "warning: the load generator used " + fixed(s.busiest_thread * 100, 0) +
           " % of a thread at c=" + std::to_string(s.concurrency) +
           ": its own CPU is the bottleneck (more --threads, or another machine)\n";
  for (const auto& u : s.usage)
    if (u.lost) out += "warning: the process of --watch " + u.name + " ended during the measurement\n";
  return out;
}

}  // namespace twp::load
