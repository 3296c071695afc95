// Histogram of durations: fixed memory, bounded relative error, merging without loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace twp::load {

/// Microsecond resolution. Values up to 255 us are exact; above that each power of two has 128 buckets, so a
/// reported value is within 0.4 % of the recorded one, up to 2^42 us (50 days), where it saturates. 36 KiB.
///
/// A recorded duration rounds to the nearest microsecond. Not thread-safe; each worker has its own and they are merged.
class Histogram {
 public:
  Histogram() : counts_(kBuckets) {}

  void record(Duration d) noexcept {
    const std::int64_t ns = d.count();
    record_us(ns <= 0 ? 0 : (static_cast<std::uint64_t>(ns) + 500) / 1000);
  }
  void record_us(std::uint64_t us) noexcept {
    ++counts_[index(us)];
    ++total_;
    sum_us_ += us;
    if (us > max_us_) max_us_ = us;
    if (us < min_us_) min_us_ = us;
  }
  /// As if every value of `other` had been recorded here too.
  void merge(const Histogram& other) noexcept;
  void clear() noexcept;

  std::uint64_t count() const noexcept { return total_; }
  std::uint64_t max_us() const noexcept { return max_us_; }  ///< exact; 0 when empty
  std::uint64_t min_us() const noexcept { return total_ == 0 ? 0 : min_us_; }
  double mean_us() const noexcept { return total_ == 0 ? 0 : static_cast<double>(sum_us_) / static_cast<double>(total_); }
  /// The value below or at which `percent` (0..100) of the recorded values lie (nearest rank); 0 when empty.
  std::uint64_t percentile_us(double percent) const noexcept;

 private:
  static constexpr unsigned kSubBits = 7;
  static constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
  static constexpr unsigned kMaxBits = 42;
  static constexpr std::size_t kBuckets = kSub * (kMaxBits - kSubBits + 1);

  static std::size_t index(std::uint64_t us) noexcept {
    if (us < 2 * kSub) return us;
    const auto top = static_cast<unsigned>(63 - __builtin_clzll(us));  // >= kSubBits + 1
    if (top >= kMaxBits) return kBuckets - 1;
    const unsigned shift = top - kSubBits;
    return (std::size_t{shift} << kSubBits) + (us >> shift);
  }
  static std::uint64_t middle(std::size_t index) noexcept;

  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
  std::uint64_t sum_us_ = 0;
  std::uint64_t max_us_ = 0;
  std::uint64_t min_us_ = ~std::uint64_t{0};
};

}  // namespace twp::load
