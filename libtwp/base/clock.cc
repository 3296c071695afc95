#include "base/clock.h"

#include <cstdio>
#include <ctime>

namespace twp {
namespace {

std::uint64_t read(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

Instant monotonic_now() noexcept { return read(CLOCK_MONOTONIC); }
std::uint64_t wall_now() noexcept { return read(CLOCK_REALTIME); }

std::string http_date(std::uint64_t wall_ns) {
  const auto t = static_cast<std::time_t>(wall_ns / 1'000'000'000u);
  std::tm tm{};
  gmtime_r(&t, &tm);
  // strftime would follow the locale; these names are fixed by the RFC.
  static constexpr const char* kDay[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonth[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char out[64];
  const int n = std::snprintf(out, sizeof out, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDay[tm.tm_wday], tm.tm_mday,
                              kMonth[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
  return {out, static_cast<std::size_t>(n)};
}

std::string iso8601(std::uint64_t wall_ns) {
  const auto t = static_cast<std::time_t>(wall_ns / 1'000'000'000u);
  std::tm tm{};
  gmtime_r(&t, &tm);
  char out[64];
  const int n = std::snprintf(out, sizeof out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
                              tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                              static_cast<unsigned>(wall_ns / 1'000'000u % 1000u));
  return {out, static_cast<std::size_t>(n)};
}

}  // namespace twp
