// What a person types for times, rates and sizes, and what a table shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace twp::load {

/// "8s", "500ms", "250us", "2m", "1h", "1.5s"; a bare number is seconds. Nothing negative, at most 1000 h.
std::optional<Duration> parse_duration(std::string_view text) noexcept;
/// "4096", "64k", "16KiB", "1MiB", "2G": powers of 1024.
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;
/// "0.1%" or "0.001" as a fraction of 0..1.
std::optional<double> parse_fraction(std::string_view text) noexcept;
/// "8,16,32": at least one, each 1..1,000,000.
std::optional<std::vector<unsigned>> parse_steps(std::string_view text);

/// Microseconds with the unit that keeps three digits: "87us", "1.23ms", "2.50s".
std::string show_us(std::uint64_t us);
/// "12,345".
std::string show_count(std::uint64_t n);
/// `v` with `digits` after the point.
std::string fixed(double v, int digits);

}  // namespace twp::load
