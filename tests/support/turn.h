// Waiting in tests: for a condition, never for a time.
#pragma once

#include <functional>

#include "event/worker.h"

namespace twp::test {

/// Turns `w` until `done` or a deadline; whether it was done.
inline bool turn_until(Worker& w, const std::function<bool()>& done, int seconds = 20) {
  const Instant end = monotonic_now() + static_cast<Instant>(seconds) * 1'000'000'000u;
  while (!done()) {
    if (monotonic_now() > end) return false;
    w.turn(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace twp::test
