#include "loadgen/histogram.h"

#include <algorithm>
#include <cmath>

namespace twp::load {

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_us_ += other.sum_us_;
  max_us_ = std::max(max_us_, other.max_us_);
  min_us_ = std::min(min_us_, other.min_us_);
}

void Histogram::clear() noexcept { *this = Histogram(); }

std::uint64_t Histogram::middle(std::size_t i) noexcept {
  if (i < 2 * kSub) return i;
  const std::size_t shift = (i >> kSubBits) - 1;
  const std::uint64_t low = (i - (shift << kSubBits)) << shift;
  return low + ((std::uint64_t{1} << shift) >> 1);
}

std::uint64_t Histogram::percentile_us(double percent) const noexcept {
  if (total_ == 0) return 0;
  const double exact = std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(total_);
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(exact - 1e-9)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(middle(i), min_us_, max_us_);
  }
  return max_us_;
}

}  // namespace twp::load
