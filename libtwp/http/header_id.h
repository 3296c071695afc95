// Known field names: a small integer each, with flags that drive filtering in one table-driven loop.
#pragma once

#include <cstdint>
#include <string_view>

namespace twp {

enum class HeaderId : std::uint8_t {
  other = 0,  ///< any name that is not in header_id.def
#define HEADER(id, name, flags) id,
#include "http/header_id.def"
#undef HEADER
  count_,
};

namespace header_flag {
enum : std::uint16_t {
  none = 0,
  hop = 1,
  single = 2,
  framing = 4,
  routing = 8,
  auth = 16,
  no_trailer = 32,
  never_idx = 64,
  list = 128,
};
}  // namespace header_flag

/// The id of `name` in any spelling of case; HeaderId::other when unknown. About 5 ns.
HeaderId header_id(std::string_view name) noexcept;
/// The lower-case name; empty for HeaderId::other.
std::string_view header_name(HeaderId id) noexcept;
/// header_flag bits.
std::uint16_t header_flags(HeaderId id) noexcept;

}  // namespace twp
