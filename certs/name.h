// The names a leaf is for: what goes into its subjectAltName (RFC 5280 §4.2.1.6).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace twp::certs {

struct Name {
  enum class Kind : std::uint8_t { dns, ip };
  Kind kind = Kind::dns;
  std::string text;    ///< dns: lower-case ASCII without trailing dot; ip: the canonical spelling
  std::string octets;  ///< ip: 4 or 16 bytes in network order; dns: empty

  bool operator==(const Name&) const = default;
};

/// One name as typed or as received in SNI or a request target: a DNS name of at most 253 characters in labels
/// of at most 63 (RFC 1035 §2.3.4; '_' and leading hyphens are taken because real hosts use them), a
/// "*" as the whole first label (RFC 9525 §6.3), an internationalised name (see idna.h), an IPv4 address
/// or an IPv6 address with or without brackets. What looks like an address but is none is refused, so
/// that no IP address ever ends up as a dNSName. Thread-safe.
Result<Name> parse_name(std::string_view text);

/// parse_name for each, in order, without duplicates. At least one and at most kMaxNames.
Result<std::vector<Name>> parse_names(std::span<const std::string> texts);

/// Keeps a chain well under the 100 KiB that TLS clients accept.
inline constexpr std::size_t kMaxNames = 256;

}  // namespace twp::certs
