#include "loadgen/runner.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "loadgen/driver.h"
#include "loadgen/units.h"

namespace twp::load {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kShortTick = std::chrono::milliseconds(5);
constexpr Duration kStart = std::chrono::milliseconds(2);  // for every thread to hear of the window before it begins

Instant after(Instant t, Duration d) noexcept { return t + static_cast<Instant>(d.count()); }

double seconds(Duration d) noexcept { return std::chrono::duration<double>(d).count(); }

std::uint64_t thread_cpu_ns(std::thread& thread) noexcept {
  clockid_t clock;
  timespec t{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

Interrupt::Interrupt() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool Interrupt::wait_until(Instant when) noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  for (;;) {
    const Instant now = monotonic_now();
    const Instant left = when > now ? when - now : 0;
    const timespec wait{static_cast<time_t>(left / 1'000'000'000u), static_cast<long>(left % 1'000'000'000u)};
    const int got = seen_ ? -1 : sigtimedwait(&set, nullptr, &wait);
    if (got > 0) {
      seen_ = true;
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      return true;
    }
    if (seen_) nanosleep(&wait, nullptr);
    if (seen_ || errno != EINTR) return seen_;
  }
}

// The threads of one step.
struct Runner::Crew {
  std::vector<std::unique_ptr<Driver>> drivers;
  std::vector<std::thread> threads;
  unsigned concurrency = 0;
  unsigned connections = 0;
  Window window;
  std::uint64_t last_answers = 0;
  Instant last_look = 0;

  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { join(); }

  void join() noexcept {
    for (auto& d : drivers) d->stop();
    for (auto& t : threads)
      if (t.joinable()) t.join();
  }
  bool all(Driver::State state) const noexcept {
    return std::all_of(drivers.begin(), drivers.end(), [&](auto& d) { return d->state() == state; });
  }
  unsigned connected() const noexcept {
    unsigned n = 0;
    for (const auto& d : drivers) n += d->connected();
    return n;
  }
};

Runner::Runner(const Plan& plan, Payload payload, Sampler sampler)
    : plan_(&plan), payload_(std::move(payload)), sampler_(std::move(sampler)) {}

Result<Runner> Runner::create(const Plan& plan) {
  auto sampler = Sampler::create(plan.watch);
  if (!sampler) return std::unexpected(sampler.error());
  Payload payload = Payload::generated(plan.body_size);
  if (!plan.body_file.empty()) {
    auto file = Payload::from_file(plan.body_file);
    if (!file) return std::unexpected(file.error());
    payload = std::move(*file);
  }
  Runner runner(plan, std::move(payload), std::move(*sampler));
  if (!plan.verify_file.empty()) {
    auto file = Payload::from_file(plan.verify_file);
    if (!file) return std::unexpected(file.error());
    runner.expected_hash_ = file->hash();
  } else if (plan.workload == Workload::duplex) {
    runner.expected_hash_ = runner.payload_.hash();
  }
  return runner;
}

Result<void> Runner::start(Crew& crew, unsigned concurrency) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned connections = connections_for(*plan_, concurrency, cores);
  const unsigned threads = threads_for(*plan_, connections, cores);
  crew.concurrency = concurrency;
  crew.connections = connections;
  unsigned first = 0;
  for (unsigned i = 0; i < threads; ++i) {
    Load load;
    load.plan = plan_;
    load.payload = payload_;
    load.check_hash = plan_->verify_body || plan_->workload == Workload::duplex;
    load.expected_hash = expected_hash_;
    load.index = i;
    load.threads = threads;
    load.spread = {concurrency, connections};
    load.first = first;
    load.connections = connections / threads + (i < connections % threads ? 1 : 0);
    first += load.connections;
    auto driver = Driver::create(std::move(load));
    if (!driver) return std::unexpected(driver.error());
    crew.drivers.push_back(std::move(*driver));
  }
  for (auto& d : crew.drivers) crew.threads.emplace_back([driver = d.get()] { driver->run(); });
  return {};
}

Result<void> Runner::await_ready(Crew& crew, Interrupt& interrupt) {
  const Instant began = monotonic_now();
  const Duration limit = std::max<Duration>(plan_->timeout, std::chrono::seconds(5));
  for (Instant now = began; !crew.all(Driver::State::ready); now = monotonic_now()) {
    // One thread alone may meet the refusal while the others are still on their way.
    const auto failed = std::find_if(crew.drivers.begin(), crew.drivers.end(),
                                     [](auto& d) { return d->state() == Driver::State::failed; });
    const bool late = now > after(began, limit);
    if (failed != crew.drivers.end()) {
      Driver& d = **failed;
      crew.join();
      return fail(Fault::connect_failed, d.failure());
    }
    if (late) {
      const unsigned n = crew.connected();
      crew.join();
      std::string why = "only " + std::to_string(n) + " of " + std::to_string(crew.connections) + " connections could be opened";
      for (auto& d : crew.drivers)
        if (!d->failure().empty()) return fail(Fault::connect_failed, why + ": " + d->failure());
      return fail(Fault::connect_timeout, why + " within " + fixed(seconds(limit), 1) + " s");
    }
    report(crew, "connecting", began, limit);
    if (interrupt.wait_until(after(now, kShortTick))) return {};
  }
  return {};
}

void Runner::report(Crew& crew, const char* phase, Instant began, Duration of) {
  if (!on_progress) return;
  const Instant now = monotonic_now();
  if (now < after(crew.last_look, kTick) && crew.last_look != 0) return;
  std::uint64_t answers = 0;
  Progress p;
  for (const auto& d : crew.drivers) {
    answers += d->answers();
    p.errors += d->wrong();
  }
  if (crew.last_look != 0)
    p.rate = static_cast<std::uint64_t>(static_cast<double>(answers - crew.last_answers) * 1e9 / static_cast<double>(now - crew.last_look));
  crew.last_answers = answers;
  crew.last_look = now;
  p.concurrency = crew.concurrency;
  p.phase = phase;
  p.elapsed_s = static_cast<double>(now - began) / 1e9;
  p.of_s = seconds(of);
  on_progress(p);
}

void Runner::measure(Crew& crew, Interrupt& interrupt, Step& step) {
  Window& w = crew.window;
  w.warm = after(monotonic_now(), kStart);
  w.from = after(w.warm, plan_->warmup);
  w.until = after(w.from, plan_->duration);
  for (auto& d : crew.drivers) d->go(w);
  bool stop = false;
  while (!stop && monotonic_now() < w.from) {
    report(crew, "warming up", w.warm, plan_->warmup);
    stop = interrupt.wait_until(std::min(w.from, after(monotonic_now(), kTick)));
  }
  step.utc = iso8601(wall_now());
  sampler_.begin();
  const std::uint64_t own = own_cpu_ns();
  std::vector<std::uint64_t> cpu;
  for (auto& t : crew.threads) cpu.push_back(thread_cpu_ns(t));
  while (!stop && monotonic_now() < w.until) {
    report(crew, "measuring", w.from, plan_->duration);
    stop = interrupt.wait_until(std::min(w.until, after(monotonic_now(), kTick)));
    if (monotonic_now() < w.until) sampler_.sample();
  }
  const Instant now = monotonic_now();
  sampler_.end();
  step.own_cpu_ns = own_cpu_ns() - own;
  const Instant until = std::min(w.until, now);
  // The CPU clocks were read from `from` (or from the interruption) to `now`.
  const double looked_ns = static_cast<double>(now - std::min(w.from, now));
  for (std::size_t i = 0; i < cpu.size() && looked_ns > 0; ++i)
    step.busiest_thread = std::max(step.busiest_thread, static_cast<double>(thread_cpu_ns(crew.threads[i]) - cpu[i]) / looked_ns);
  for (auto& d : crew.drivers) d->finish(until);
  step.duration_s = until > w.from ? static_cast<double>(until - w.from) / 1e9 : 0;
  step.interrupted = stop;
  while (!crew.all(Driver::State::done)) interrupt.wait_until(after(monotonic_now(), kShortTick));
}

void Runner::collect(Crew& crew, Step& step) {
  step.concurrency = crew.concurrency;
  step.connections = crew.connections;
  step.threads = static_cast<unsigned>(crew.threads.size());
  step.warmup_s = seconds(plan_->warmup);
  step.usage = sampler_.usage();
  for (auto& d : crew.drivers) step.counters.merge(d->counters());
}

Result<Step> Runner::run(unsigned concurrency, Interrupt& interrupt) {
  Crew crew;
  if (auto ok = start(crew, concurrency); !ok) return std::unexpected(ok.error());
  if (auto ok = await_ready(crew, interrupt); !ok) return std::unexpected(ok.error());
  Step step;
  if (interrupt.seen()) step.interrupted = true;
  else measure(crew, interrupt, step);
  crew.join();
  collect(crew, step);
  return step;
}

}  // namespace twp::load
