#include "base/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace twp {

void TimerWheel::arm(Timer& t, Instant deadline) noexcept {
  t.unlink();
  t.deadline_ = deadline;
  place(t);
}

void TimerWheel::place(Timer& t) noexcept {
  // Round up: a timer never fires early.
  std::uint64_t at = std::max((t.deadline_ + kTick - 1) / kTick, tick_);
  const std::uint64_t ahead = at - tick_;
  unsigned level = 0;
  while (level + 1 < kLevels && ahead >= (std::uint64_t{1} << (kBits * (level + 1)))) ++level;
  // Beyond the horizon: park in the farthest slot and look again when it cascades.
  const std::uint64_t horizon = (std::uint64_t{1} << (kBits * kLevels)) - 1;
  if (ahead > horizon) at = tick_ + horizon;
  const unsigned slot = static_cast<unsigned>(at >> (kBits * level)) & (kSlots - 1);
  slots_[level][slot].push_back(t);
  occupied_[level] |= std::uint64_t{1} << slot;
}

void TimerWheel::cascade(unsigned level) noexcept {
  if (level == kLevels) return;
  const unsigned slot = static_cast<unsigned>(tick_ >> (kBits * level)) & (kSlots - 1);
  if (slot == 0) cascade(level + 1);
  if ((occupied_[level] >> slot & 1) == 0) return;
  occupied_[level] &= ~(std::uint64_t{1} << slot);
  Slot moving;
  moving.splice_back(slots_[level][slot]);
  while (!moving.empty()) place(moving.pop_front());
}

void TimerWheel::advance(Instant now) noexcept {
  const std::uint64_t until = now / kTick;
  while (tick_ <= until) {
    const unsigned slot = static_cast<unsigned>(tick_) & (kSlots - 1);
    if (slot == 0) cascade(1);
    if ((occupied_[0] >> slot & 1) != 0) {
      occupied_[0] &= ~(std::uint64_t{1} << slot);
      Slot due;
      due.splice_back(slots_[0][slot]);
      // Advance first so that a timer armed from on_timer() for "now" lands in a later tick, not in a slot
      // that has just been emptied.
      ++tick_;
      while (!due.empty()) due.pop_front().on_timer();
      continue;
    }
    // Straight to the next slot that holds something, at whatever level: after a long sleep (a suspended machine)
    // the number of ticks in between costs nothing.
    tick_ = std::min(std::max(next_tick(), tick_ + 1), until + 1);
  }
}

Instant TimerWheel::next() const noexcept {
  const std::uint64_t at = next_tick();
  return at == kNone ? kNever : at * kTick;
}

std::uint64_t TimerWheel::next_tick() const noexcept {
  std::uint64_t best = kNone;
  for (unsigned level = 0; level < kLevels; ++level) {
    const unsigned shift = kBits * level;
    const std::uint64_t base = tick_ >> shift;
    // The slot under the hand has been emptied unless the hand stands at its very start: what it holds now is
    // for the next revolution, so it comes last.
    const unsigned skip = (base << shift) < tick_ ? 1 : 0;
    while (occupied_[level] != 0) {
      const unsigned cur = (static_cast<unsigned>(base) + skip) & (kSlots - 1);
      const unsigned ahead =
          skip + static_cast<unsigned>(std::countr_zero(std::rotr(occupied_[level], static_cast<int>(cur))));
      const unsigned slot = (static_cast<unsigned>(base) + ahead) & (kSlots - 1);
      if (const_cast<Slot&>(slots_[level][slot]).empty()) {
        occupied_[level] &= ~(std::uint64_t{1} << slot);
        continue;
      }
      best = std::min(best, (base + ahead) << shift);
      break;
    }
  }
  return best;
}

}  // namespace twp
