// Runner: the steps of a run on their threads, in time, with everything measured over the same window.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "loadgen/payload.h"
#include "loadgen/plan.h"
#include "loadgen/sampler.h"
#include "loadgen/step.h"

namespace twp::load {

/// Ctrl-C without a handler: the signals are blocked in all threads and taken where the main thread waits anyway.
class Interrupt {
 public:
  /// Blocks SIGINT and SIGTERM; make it before any thread.
  Interrupt() noexcept;
  /// Sleeps until `when`. True when a signal has come, now or before; after the first one the signals have their usual
  /// effect again, so that a second one ends the program at once.
  bool wait_until(Instant when) noexcept;
  bool seen() const noexcept { return seen_; }

 private:
  bool seen_ = false;
};

/// What the person sees meanwhile.
struct Progress {
  unsigned concurrency = 0;
  const char* phase = "";      ///< "connecting", "warming up", "measuring"
  double elapsed_s = 0, of_s = 0;
  std::uint64_t rate = 0;      ///< right answers a second, lately
  std::uint64_t errors = 0;
};

/// Main thread only.
class Runner {
 public:
  static Result<Runner> create(const Plan& plan);

  std::function<void(const Progress&)> on_progress;  ///< about ten times a second; may be empty

  /// One step with its own connections. Error: nothing could be measured (target refuses, files missing ...).
  Result<Step> run(unsigned concurrency, Interrupt& interrupt);

 private:
  struct Crew;
  Runner(const Plan& plan, Payload payload, Sampler sampler);
  Result<void> start(Crew& crew, unsigned concurrency);
  Result<void> await_ready(Crew& crew, Interrupt& interrupt);
  void measure(Crew& crew, Interrupt& interrupt, Step& step);
  void collect(Crew& crew, Step& step);
  void report(Crew& crew, const char* phase, Instant began, Duration of);

  const Plan* plan_;
  Payload payload_;
  Sampler sampler_;
  std::optional<std::uint64_t> expected_hash_;
};

}  // namespace twp::load
