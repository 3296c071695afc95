// OriginKey: everything that two requests must have in common to share a connection. A connection that was
// verified for one name, or opened with one client certificate, is never used for another (RFC 9110 §7.4).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/clock.h"

namespace twp {

struct OriginKey {
  std::string host;
  std::uint16_t port = 0;
  bool tls = false;
  bool verify = true;
  std::string http;         ///< protocol asked for: "h1", "h2", "auto"
  std::string sni;
  std::string verify_name;
  std::string tls_files;    ///< CA, certificate and key with their state on disk
  std::string source;       ///< local address
  std::string congestion;
  // Policy of the pool: a changed limit makes a new pool, so that a pool never changes its rules.
  Duration connect_timeout{}, idle_timeout{}, queue_timeout{};
  unsigned max_connections = 0, max_queue = 0, max_idle = 0;

  friend auto operator<=>(const OriginKey&, const OriginKey&) = default;
};

}  // namespace twp
