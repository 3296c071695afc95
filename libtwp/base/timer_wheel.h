// TimerWheel: O(1) arm and cancel, 1 ms ticks, five levels (about 12 days, later deadlines are re-cascaded).
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/ilist.h"

namespace twp {

struct TimerTag {};

/// One timer. Derive from it or embed it; it disarms itself when destroyed.
class Timer : public IListHook<TimerTag> {
 public:
  virtual void on_timer() noexcept = 0;
  bool armed() const noexcept { return linked(); }
  void cancel() noexcept { unlink(); }
  Instant deadline() const noexcept { return deadline_; }

 protected:
  Timer() noexcept = default;
  virtual ~Timer() = default;

 private:
  friend class TimerWheel;
  Instant deadline_ = kNever;
};

/// Not thread-safe: one per worker.
class TimerWheel {
 public:
  explicit TimerWheel(Instant now) noexcept : tick_(now / kTick) {}

  /// (Re)arms `t`. It fires at the first advance() whose `now` is at or past the deadline, never before.
  void arm(Timer& t, Instant deadline) noexcept;

  /// Fires everything due. Timers may be armed and cancelled from inside on_timer().
  void advance(Instant now) noexcept;

  /// The earliest instant at which advance() may have work; kNever when no timer is armed. May be early
  /// (a cascade), never late.
  Instant next() const noexcept;

 private:
  static constexpr std::uint64_t kTick = 1'000'000;  // ns
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr unsigned kBits = 6;
  static constexpr unsigned kSlots = 1u << kBits;
  static constexpr unsigned kLevels = 5;

  using Slot = IList<Timer, TimerTag>;

  void place(Timer& t) noexcept;
  void cascade(unsigned level) noexcept;
  std::uint64_t next_tick() const noexcept;

  std::uint64_t tick_;  // the next tick to run
  std::array<std::array<Slot, kSlots>, kLevels> slots_;
  // Conservative: a set bit may belong to a slot that cancel() has emptied since.
  mutable std::array<std::uint64_t, kLevels> occupied_{};
};

}  // namespace twp
