#include "origin/content.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace twp::origin {
namespace {

Block immortal(std::byte* data, std::size_t size) noexcept {
  const auto n = static_cast<std::uint32_t>(size);
  return {.refs = 1, .used = n, .size = n, .immortal = true, .data = data, .next = nullptr};
}

struct Pattern {
  std::vector<std::byte> octets{kPatternSize};
  Block block = immortal(octets.data(), kPatternSize);

  Pattern() noexcept {
    std::uint64_t state = 0x9e3779b97f4a7c15;  // splitmix64: fast, and the same everywhere
    for (std::size_t i = 0; i < kPatternSize; i += 8) {
      std::uint64_t v = state += 0x9e3779b97f4a7c15;
      v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
      v = (v ^ v >> 27) * 0x94d049bb133111eb;
      v ^= v >> 31;
      std::memcpy(octets.data() + i, &v, 8);
    }
  }
};

struct Json {
  std::array<std::byte, kJson.size()> octets{};
  Block block = immortal(octets.data(), kJson.size());

  Json() noexcept { std::memcpy(octets.data(), kJson.data(), kJson.size()); }
};

}  // namespace

Slice json_slice() noexcept {
  static Json json;
  return Slice(&json.block, 0, kJson.size());
}

Slice pattern_slice(std::uint64_t offset, std::uint64_t max) noexcept {
  static Pattern pattern;
  const auto at = static_cast<std::uint32_t>(offset % kPatternSize);
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(max, kPatternSize - at));
  return Slice(&pattern.block, at, n);
}

}  // namespace twp::origin
