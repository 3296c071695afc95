// Requests and helpers that the tests of the server role share.
#pragma once

#include <string>
#include <string_view>

#include "support/h1_rig.h"

namespace twp::test::server_role {

inline const std::string kGet = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
inline const std::string kPost = "POST / HTTP/1.1\r\nHost: a.test\r\n";
inline const std::string kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
inline const std::string kConnect = "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n";

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t i = 0; (i = text.find(part, i)) != std::string_view::npos; i += part.size()) ++n;
  return n;
}

/// Answers every request with its own path and body once it is complete.
inline void echo(Recorder& r) {
  r.on_end = [](Recorder& s) { s.respond(200, std::string(s.head->path) + "|" + s.body); };
}

}  // namespace twp::test::server_role
