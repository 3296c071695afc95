// Time. Everything inside a worker measures with `Instant`, read once per turn.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace twp {

using Duration = std::chrono::nanoseconds;

/// Nanoseconds of CLOCK_MONOTONIC. 0 is "never".
using Instant = std::uint64_t;

inline constexpr Instant kNever = 0;

/// Reads CLOCK_MONOTONIC (about 25 ns). On the data path use Worker::now(), which is read once per turn.
Instant monotonic_now() noexcept;

/// Nanoseconds since 1970 of CLOCK_REALTIME.
std::uint64_t wall_now() noexcept;

/// IMF-fixdate, RFC 9110 §5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::uint64_t wall_ns);

/// "2026-01-31T12:00:00.123Z", for logs and CSV.
std::string iso8601(std::uint64_t wall_ns);

}  // namespace twp
