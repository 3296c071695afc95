// The authority of a URI without userinfo (RFC 3986 §3.2): uri-host [":" port].
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace twp {

/// Views into the text it was split from.
struct Authority {
  std::string_view host;  ///< without the brackets of an IPv6 literal
  std::string_view port;  ///< what stands behind the colon, not yet looked at
  bool has_port = false;
  bool v6 = false;
};

/// Nothing when the host is none: a name with octets that no name has, an IPv6 literal that is malformed, userinfo.
std::optional<Authority> split_authority(std::string_view text) noexcept;

/// Decimal, 0 to 65535, at most five digits.
bool parse_port(std::string_view text, std::uint16_t& port) noexcept;

/// Whether `text` is an authority as HTTP has it. An empty port is legal (RFC 3986 §3.2.3).
bool valid_authority(std::string_view text) noexcept;

}  // namespace twp
