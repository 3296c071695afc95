#include "loadgen/pacer.h"

#include <algorithm>
#include <cmath>

namespace twp::load {

std::uint64_t Pacer::untaken_until(Instant until) const noexcept {
  if (until <= next()) return 0;
  auto k = static_cast<std::uint64_t>(std::max(0.0, std::floor(static_cast<double>(until - start_) / gap_ns_ - phase_)));
  // Floating point may be off by one at the edge; due() decides.
  while (k > taken_ && due(k) >= until) --k;
  while (due(k) < until) ++k;
  return k - taken_;
}

}  // namespace twp::load
