// Looks at a TLS ClientHello without consuming it: interception decides by name and protocols before it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace twp {

/// Longest ClientHello (handshake message with its header) and most octets a caller has to hold while it waits.
inline constexpr std::size_t kMaxClientHello = 16 * 1024;

struct ClientHello {
  enum class Status : std::uint8_t {
    complete,    ///< the fields below are filled
    incomplete,  ///< so far it may become one: ask again with more octets, within a time limit
    not_tls,     ///< these octets never begin a TLS connection
    malformed,   ///< TLS, but not a ClientHello that could be answered (or longer than kMaxClientHello)
  };
  Status status = Status::incomplete;
  std::string sni;                      ///< server_name, lower case, without trailing dot; empty: none sent
  std::vector<std::string> alpn;        ///< in the client's order
  std::vector<std::uint16_t> versions;  ///< supported_versions, GREASE left out; else the legacy version
};

/// `octets`: everything received so far, from the first octet on. Pure; RFC 8446 §4.1.2, §5.1, RFC 6066 §3,
/// RFC 7301 §3.1. The message may be spread over any number of records.
ClientHello peek_client_hello(std::span<const std::byte> octets);

}  // namespace twp
