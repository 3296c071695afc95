#include "http/glitch_counter.h"

#include <algorithm>

namespace twp {

void GlitchCounter::leak(Instant now, const HttpLimits& limits) noexcept {
  if (leaked_at_ == kNever) leaked_at_ = now;
  if (level_ == 0 || limits.h2_glitch_rate == 0) {
    leaked_at_ = now;
    return;
  }
  constexpr Instant kSecond = 1'000'000'000;
  const std::uint64_t per_second = std::uint64_t{limits.h2_glitch_rate} * kWhole;
  const Instant elapsed = now - leaked_at_;
  const std::uint64_t gone = elapsed / kSecond * per_second + elapsed % kSecond * per_second / kSecond;
  if (gone == 0) return;
  level_ -= std::min(level_, gone);
  leaked_at_ = now;
}

}  // namespace twp
