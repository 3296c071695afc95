// The bodies that the origin serves: static memory, shared by all threads, never copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/slice.h"

namespace twp::origin {

/// The body of `/`, the same 56 octets that every benchmark row serves.
inline constexpr std::string_view kJson = R"({"service":"twp-origin","status":"ok","id":"0123456789"})";
static_assert(kJson.size() == 56);

/// The body of `/bytes` repeats after this many octets.
inline constexpr std::size_t kPatternSize = 1024 * 1024;

/// kJson without a copy.
Slice json_slice() noexcept;

/// Octets of the endless pseudo-random pattern from `offset` on: at most `max`, at least one, fewer where the pattern
/// wraps. The same for every run and every origin, so that a body can be checked.
Slice pattern_slice(std::uint64_t offset, std::uint64_t max) noexcept;

}  // namespace twp::origin
