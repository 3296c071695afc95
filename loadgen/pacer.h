// Pacer: when the requests of an open loop are due.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace twp::load {

/// Request k is due at start + (k + phase) / rate, computed from k each time, so that rounding never adds up. One per
/// thread; threads of one run have `rate / threads` each and phases spread over [0, 1).
class Pacer {
 public:
  Pacer() noexcept = default;
  /// `rate` in requests a second, > 0.
  Pacer(Instant start, double rate, double phase) noexcept : start_(start), gap_ns_(1e9 / rate), phase_(phase) {}

  /// When the next request not yet taken is due.
  Instant next() const noexcept { return due(taken_); }
  /// True when a request is due at `now`.
  bool is_due(Instant now) const noexcept { return next() <= now; }
  /// Takes the next request; returns when it was due.
  Instant take() noexcept { return due(taken_++); }
  std::uint64_t taken() const noexcept { return taken_; }
  /// How many requests due before `until` have not been taken; they are due at due(taken() + i).
  std::uint64_t untaken_until(Instant until) const noexcept;
  Instant due(std::uint64_t k) const noexcept {
    return start_ + static_cast<Instant>((static_cast<double>(k) + phase_) * gap_ns_);
  }

 private:
  Instant start_ = 0;
  double gap_ns_ = 1;
  double phase_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace twp::load
