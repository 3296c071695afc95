// GlitchCounter: what is legal but suspicious adds up, per connection, in one counter that leaks.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "http/limits.h"

namespace twp {

/// A counter that leaks: `burst` at once, `rate` a second for ever. Kept in quarters, because most events are
/// worth less than one reset.
class GlitchCounter {
 public:
  static constexpr std::uint32_t kWhole = 4;    ///< an event that only an attacker or a defect makes often
  static constexpr std::uint32_t kQuarter = 1;  ///< one that honest peers make as well

  void add(std::uint32_t quarters, Instant now, const HttpLimits& limits) noexcept {
    leak(now, limits);
    level_ += quarters;
    ++added_;
  }
  /// An exchange went well: makes up for one event, so that a busy honest peer is never near the limit.
  void forgive() noexcept { level_ -= level_ < kWhole ? level_ : kWhole; }
  bool over(const HttpLimits& limits) const noexcept {
    return level_ > std::uint64_t{limits.h2_glitch_burst} * kWhole;
  }
  std::uint64_t events() const noexcept { return (level_ + kWhole - 1) / kWhole; }
  /// How often add() was called; never goes down.
  std::uint64_t added() const noexcept { return added_; }

 private:
  void leak(Instant now, const HttpLimits& limits) noexcept;

  std::uint64_t level_ = 0;
  std::uint64_t added_ = 0;
  Instant leaked_at_ = kNever;
};

}  // namespace twp
