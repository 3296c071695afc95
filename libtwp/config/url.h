// URLs that a person types to say where to listen, where to forward and what to load.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/address.h"

namespace twp::config {

enum class Scheme : std::uint8_t { http, https, h2c, h3 };

std::string_view scheme_text(Scheme s) noexcept;  ///< "http", "https", "h2c", "h3"

/// A parsed URL (RFC 3986 §3 without userinfo; a fragment is an error).
struct Url {
  Scheme scheme = Scheme::http;
  std::string host;             ///< name in lower case, or IP literal without brackets
  bool is_ipv6_literal = false;
  std::uint16_t port = 0;       ///< the scheme's default (80 or 443) when the text has none
  std::string target = "/";     ///< path and query, octets untouched; at least "/"

  bool encrypted() const noexcept { return scheme == Scheme::https || scheme == Scheme::h3; }
  std::uint16_t default_port() const noexcept { return encrypted() ? 443 : 80; }
  std::string authority() const;  ///< for Host: "a.test", "a.test:8080", "[::1]:8080"; default ports are left out
  std::string text() const;       ///< "http://127.0.0.1:8080" (always with the port, never with the target)
};

/// `scheme://host[:port][/path][?query]` with scheme http, https, h2c or h3. Port 0 is refused.
Result<Url> parse_url(std::string_view text);

/// Whether `host`, a name without port, fits into the DNS: labels of 1 to 63 octets, 253 in all (RFC 1035 §2.3.4). A final dot
/// is allowed. Looks at lengths only.
bool fits_dns(std::string_view host) noexcept;

/// What a program listens on: `http`, `https` or `h3`, an IP literal or "localhost", no path. Port 0 picks a
/// free one.
Result<Url> parse_listen_url(std::string_view text);

/// Where a proxy forwards to: any scheme, a host name or IP literal, no path. Port 0 is refused.
Result<Url> parse_origin_url(std::string_view text);

/// The socket address of a listen URL ("localhost" is 127.0.0.1). Invalid when the host is another name.
Address listen_address(const Url& url) noexcept;

}  // namespace twp::config
