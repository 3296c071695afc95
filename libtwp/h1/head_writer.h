// Canonical heads to HTTP/1 octets, RFC 9112 §3-§6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/chain.h"
#include "h1/body_framing.h"
#include "http/head.h"

namespace twp::h1 {

/// How a message that is being sent is delimited, and what the head must say about the connection.
struct WriteInfo {
  Framing framing = Framing::none;  ///< none, length, chunked, until_close or tunnel
  std::uint64_t length = 0;
  bool close = false;               ///< Connection: close
  bool keep_alive = false;          ///< Connection: keep-alive (to an HTTP/1.0 peer that asked)
  bool websocket = false;           ///< Upgrade handshake or its 101
  bool no_framing_fields = false;   ///< response to HEAD, 304: Content-Length only as given in fields
};

/// Appends the request line, Host first, the fields in their order and spelling, framing and connection
/// fields, and the empty line. A WebSocket handshake without Sec-WebSocket-Key gets a fresh one, which is returned: who
/// makes a key checks the answer to it. Otherwise returns an empty string.
std::string write_request(Chain& out, const Head& head, const WriteInfo& info);

/// Appends a response head. `accept_key` is the client's Sec-WebSocket-Key: a 101 whose fields lack
/// Sec-WebSocket-Accept gets the computed one.
void write_response(Chain& out, const Head& head, const WriteInfo& info, std::string_view accept_key);

/// Appends "hex CRLF", the line before a chunk of `n` octets.
void write_chunk_size(Chain& out, std::uint64_t n);

/// Appends the last chunk, the trailer section (may be null) and the empty line.
void write_last_chunk(Chain& out, const HeaderBlock* trailers);

}  // namespace twp::h1
