#include "loadgen/driver.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "origin/grpc.h"

namespace twp::load {
namespace {

// Open loop: how long requests that were due inside the window may still take after it.
constexpr Duration kSettle = std::chrono::seconds(2);

Duration sweep_interval(const Plan& plan) noexcept {
  return std::clamp<Duration>(plan.timeout / 10, std::chrono::milliseconds(1), std::chrono::milliseconds(100));
}

Duration between(Instant from, Instant to) noexcept {
  return Duration(to > from ? static_cast<std::int64_t>(to - from) : 0);
}

}  // namespace

Driver::Driver(Load load) : worker_(load.index), load_(std::move(load)), random_(monotonic_now() | 1) {}

Driver::~Driver() = default;

Result<std::unique_ptr<Driver>> Driver::create(Load load) {
  std::unique_ptr<Driver> d(new Driver(std::move(load)));
  if (auto ok = d->prepare(); !ok) return std::unexpected(ok.error());
  return d;
}

Result<void> Driver::prepare() {
  resolver_ = std::make_unique<Resolver>(worker_, ResolverOptions{});
  if (auto ok = endpoint_.prepare(plan(), load_.spread.most()); !ok) return ok;
  build_request();
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0 || !timer_fd_.open(worker_, fd, *this)) return twp::fail(Fault::too_many_files, "cannot make a timer: " + errno_text(errno));
  return {};
}

void Driver::build_request() {
  const Plan& p = plan();
  const std::string authority = p.host.empty() ? p.url.authority() : p.host;
  const bool ws = p.workload == Workload::ws;
  const bool grpc = p.workload == Workload::grpc;
  const bool has_body = !ws && load_.payload.size() != 0;
  const Method m = ws ? Method::connect : method_from(p.method);
  request_ = Head::request(m, p.url.encrypted() ? "https" : "http", authority, p.url.target,
                           has_body ? BodySize::exactly(load_.payload.size()) : BodySize::none());
  if (m == Method::other) request_.method_name = request_.fields.arena().copy(p.method);
  if (ws) {
    request_.protocol = "websocket";
    request_.body = BodySize::unknown();
  }
  if (grpc) {
    request_.body = BodySize::unknown();
    request_.fields.add(HeaderId::content_type, grpc::kContentType);
    request_.fields.add(HeaderId::te, "trailers");
  }
  for (const auto& [name, value] : p.headers) request_.fields.add(name, value);
  if (has_body && !grpc) request_.fields.add(HeaderId::content_length, std::to_string(load_.payload.size()));
}

void Driver::run() noexcept {
  for (unsigned i = 0; i < load_.connections; ++i)
    connections_.push_back(std::make_unique<Connection>(*this, load_.spread.of(load_.first + i)));
  for (auto& c : connections_) c->dial();
  worker_.run();
  stopping_ = true;
  close_all();
}

void Driver::close_all() noexcept {
  for (auto& c : connections_) c->close();
  worker_.turn(Duration::zero());  // retires what closing has left behind
  connections_.clear();
  endpoint_.release_tls();
}

void Driver::begin(const Window& window) noexcept {
  window_ = window;
  running_ = true;
  if (plan().open_loop())
    pacer_ = Pacer(window.warm, plan().rate / load_.threads, static_cast<double>(load_.index) / load_.threads);
  worker_.arm(*this, sweep_interval(plan()));
  for (auto& c : connections_)
    c->for_each_lane([this](Lane& lane) { offer(lane); });
}

void Driver::offer(Lane& lane) noexcept {
  if (!running_ || stopping_ || lane.busy()) return;
  if (!lane.ready()) {
    lane.connection().wait(lane);
    return;
  }
  if (!plan().open_loop()) {
    const Instant now = clock();
    if (now >= window_.until) return;
    // A new connection for each request: the handshakes are part of what is measured.
    const bool dialed = plan().new_connection && lane.connection().dial_began() >= window_.warm;
    lane.start(dialed ? lane.connection().dial_began() : now);
    return;
  }
  if (!lane.linked()) idle_.push_back(lane);
  start_due();
}

void Driver::start_due() noexcept {
  // Read anew: when the timer calls, the turn's clock is still the one from before the wait, and a request that started
  // by that would have started before it was due.
  const Instant now = read_clock();
  while (!idle_.empty() && pacer_.is_due(now) && pacer_.next() < window_.until) {
    Lane& lane = idle_.pop_front();
    if (lane.ready()) lane.start(pacer_.take());
    else lane.connection().wait(lane);
  }
  arm_pacer();
}

void Driver::arm_pacer() noexcept {
  // Without a free lane the next one that becomes free looks for itself.
  if (idle_.empty() || !running_ || pacer_.next() >= window_.until || armed_ == pacer_.next()) return;
  armed_ = pacer_.next();
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(armed_ / 1'000'000'000u);
  when.it_value.tv_nsec = static_cast<long>(armed_ % 1'000'000'000u);
  ::timerfd_settime(timer_fd_.fd(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Driver::on_poll(Ready) noexcept {
  armed_ = kNever;
  if (running_ && !stopping_) start_due();
}

void Driver::on_timer() noexcept {
  const Instant now = worker_.now();
  const auto limit = static_cast<Instant>(plan().timeout.count());
  for (auto& c : connections_)
    c->for_each_lane([&](Lane& lane) {
      if (lane.busy() && now > lane.started() + limit) lane.expire();
    });
  if (stopping_) settle();
  if (state() != State::done) worker_.arm(*this, stopping_ ? Duration(std::chrono::milliseconds(1)) : sweep_interval(plan()));
}

bool Driver::counts(const Lane& lane, Instant end) const noexcept {
  const Instant at = plan().open_loop() ? lane.intended() : end;
  return at >= window_.from && at < window_.until;
}

void Driver::record_success(Lane& lane, std::uint64_t octets) noexcept {
  const Instant now = clock();
  answers_.store(answers_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!counts(lane, now)) return;
  ++counters_.requests;
  counters_.octets += octets;
  counters_.latency.record(between(lane.intended(), now));
  if (plan().open_loop()) counters_.service.record(between(lane.started(), now));
}

void Driver::record_failure(Lane& lane, Failure why, std::string_view detail) noexcept {
  wrong_.store(wrong_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (counters_.first_error.empty()) counters_.first_error = detail;
  if (!counts(lane, clock())) return;
  ++counters_.requests;
  counters_.fail(why);
}

void Driver::record_stray(const Lane& lane) noexcept {
  wrong_.store(wrong_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (counters_.first_error.empty()) counters_.first_error = "octets after the end of a response";
  // The request has been counted already, as a right one.
  if (counts(lane, clock())) counters_.fail(Failure::stray);
}

void Driver::connection_opened(Duration took, bool first) noexcept {
  counters_.connecting.record(took);
  if (!first) return;
  const unsigned n = connected_.load(std::memory_order_relaxed) + 1;
  connected_.store(n, std::memory_order_relaxed);
  if (n == load_.connections && state() == State::connecting) state_.store(State::ready, std::memory_order_release);
}

void Driver::dial_failed(const std::string& detail) noexcept {
  ++counters_.connect_retries;
  if (!running_) {
    // Nothing has ever worked: say why at once instead of trying for ever.
    if (failure_.empty()) failure_ = detail;
    if (connected() == 0 && state() == State::connecting) state_.store(State::failed, std::memory_order_release);
    return;
  }
  if (counters_.first_error.empty()) counters_.first_error = detail;
  const Instant now = clock();
  if (now < window_.from || now >= window_.until) return;
  ++counters_.requests;
  counters_.fail(Failure::connect);
  wrong_.store(wrong_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Driver::end(Instant at) noexcept {
  window_.until = std::min(window_.until, at);
  settle_until_ = monotonic_now() + static_cast<Instant>(std::min<Duration>(kSettle, plan().timeout).count());
  stopping_ = true;
  while (!idle_.empty()) idle_.pop_front();
  settle();
  if (state() != State::done) worker_.arm(*this, std::chrono::milliseconds(1));
}

void Driver::settle() noexcept {
  const Instant now = monotonic_now();
  if (plan().open_loop()) {
    bool waiting = false;
    for (auto& c : connections_)
      c->for_each_lane([&](Lane& lane) { waiting |= lane.busy() && counts(lane, now); });
    if (waiting && now < settle_until_) return;
    // What was due and has no answer waited at least until now: leaving it out would make a stall look fast.
    const auto unfinished = [&](Instant due) {
      if (due < window_.from || due >= window_.until) return;
      ++counters_.unfinished;
      counters_.latency.record(between(due, now));
    };
    for (auto& c : connections_)
      c->for_each_lane([&](Lane& lane) {
        if (lane.busy()) unfinished(lane.intended());
      });
    const std::uint64_t left = running_ ? pacer_.untaken_until(window_.until) : 0;
    for (std::uint64_t i = 0; i < left; ++i) unfinished(pacer_.due(pacer_.taken() + i));
  }
  running_ = false;
  state_.store(State::done, std::memory_order_release);
}

}  // namespace twp::load
