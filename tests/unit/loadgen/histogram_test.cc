#include "loadgen/histogram.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <vector>

using twp::load::Histogram;

namespace {

constexpr double kPercents[] = {0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};

std::uint64_t exact(const std::vector<std::uint64_t>& sorted, double percent) {
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-9));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

void check_against_exact(std::vector<std::uint64_t> values) {
  Histogram h;
  for (const auto v : values) h.record_us(v);
  std::sort(values.begin(), values.end());
  BOOST_TEST(h.count() == values.size());
  BOOST_TEST(h.max_us() == values.back());
  BOOST_TEST(h.min_us() == values.front());
  for (const double p : kPercents) {
    const double want = static_cast<double>(exact(values, p));
    const double error = std::abs(static_cast<double>(h.percentile_us(p)) - want);
    BOOST_TEST(error <= want * 0.005, "p" << p << ": " << h.percentile_us(p) << " instead of " << want);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(histogram)

BOOST_AUTO_TEST_CASE(error_is_bounded_on_random_data) {
  std::mt19937_64 random(20260131);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> values(5000);
    // Log-normal around 2^(round+1) us: from the exact range up to a minute and beyond.
    std::lognormal_distribution<double> d(0.69 * (round + 1), 1.2);
    for (auto& v : values) v = static_cast<std::uint64_t>(d(random));
    check_against_exact(std::move(values));
  }
}

BOOST_AUTO_TEST_CASE(every_bucket_edge_is_within_the_bound) {
  for (unsigned bits = 0; bits < 42; ++bits) {
    for (const std::uint64_t v : {(std::uint64_t{1} << bits) - 1, std::uint64_t{1} << bits, (std::uint64_t{1} << bits) + 1,
                                  (std::uint64_t{3} << bits) / 2}) {
      Histogram h;
      h.record_us(v);
      h.record_us(v * 2 + 1000);  // so that the clamp to the maximum does not hide the bucket
      const double error = std::abs(static_cast<double>(h.percentile_us(50)) - static_cast<double>(v));
      BOOST_TEST(error <= static_cast<double>(v) * 0.004);
    }
  }
}

BOOST_AUTO_TEST_CASE(small_values_are_exact) {
  for (std::uint64_t v = 0; v < 256; ++v) {
    Histogram h;
    h.record_us(v);
    h.record_us(100'000);
    BOOST_TEST(h.percentile_us(50) == v);
  }
}

BOOST_AUTO_TEST_CASE(merging_loses_nothing) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> d(6, 2);
  Histogram all;
  Histogram parts[4];
  for (int i = 0; i < 40'000; ++i) {
    const auto v = static_cast<std::uint64_t>(d(random));
    all.record_us(v);
    parts[random() % 4].record_us(v);
  }
  Histogram merged;
  for (const Histogram& p : parts) merged.merge(p);
  BOOST_TEST(merged.count() == all.count());
  BOOST_TEST(merged.max_us() == all.max_us());
  BOOST_TEST(merged.min_us() == all.min_us());
  BOOST_TEST(merged.mean_us() == all.mean_us());
  for (const double p : kPercents) BOOST_TEST(merged.percentile_us(p) == all.percentile_us(p));
}

BOOST_AUTO_TEST_CASE(durations_round_to_the_nearest_microsecond) {
  Histogram h;
  h.record(std::chrono::nanoseconds(1499));
  BOOST_TEST(h.max_us() == 1u);
  h.record(std::chrono::nanoseconds(1500));
  BOOST_TEST(h.max_us() == 2u);
  h.record(std::chrono::nanoseconds(-5));
  BOOST_TEST(h.min_us() == 0u);
}

BOOST_AUTO_TEST_CASE(empty_and_huge) {
  Histogram h;
  BOOST_TEST(h.percentile_us(99) == 0u);
  BOOST_TEST(h.min_us() == 0u);
  BOOST_TEST(h.mean_us() == 0.0);
  h.record_us(std::uint64_t{1} << 60);
  BOOST_TEST(h.count() == 1u);
  BOOST_TEST(h.max_us() == std::uint64_t{1} << 60);
  h.clear();
  BOOST_TEST(h.count() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
