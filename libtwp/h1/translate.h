// Between a parsed HTTP/1 head and the canonical Head (http/head.h says what canonical means).
#pragma once

#include <string>
#include <string_view>

#include "h1/body_framing.h"
#include "h1/head_parser.h"
#include "http/head.h"

namespace twp::h1 {

/// What of a message is about the connection and not about the exchange.
struct MessageInfo {
  Framing framing = Framing::none;
  std::uint64_t length = 0;         ///< when framing is length
  bool keep_alive = true;           ///< the sender allows another message on this connection
  bool explicit_keep_alive = false;  ///< HTTP/1.0 with Connection: keep-alive
  bool expect_continue = false;
  bool websocket = false;           ///< request: a WebSocket handshake
  std::string listed;               ///< chunked: fields that Connection names, which no trailer may be either; with commas
};

/// Turns a complete request head into `head`. `text` is the head's octets: they are copied into head's arena
/// once. Fault::none on success. `tls` decides the scheme of origin-form targets.
Fault to_request(RawHead&& raw, std::string_view text, bool tls, Head& head, MessageInfo& info) noexcept;

/// Turns a complete response head into `head`. `method` is that of the request; `websocket` says that it was a
/// WebSocket handshake, whose 101 becomes a 200 (RFC 8441 §5).
Fault to_response(RawHead&& raw, std::string_view text, Method method, bool websocket, Head& head,
                  MessageInfo& info) noexcept;

/// Drops fields that must not be in a trailer section (framing, routing, authentication; RFC 9110 §6.5.1), and those that
/// Connection named in the head (MessageInfo::listed; RFC 9110 §7.6.1).
void clean_trailers(HeaderBlock& fields, std::string_view listed) noexcept;

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455 §4.2.2). 28 characters.
std::string websocket_accept(std::string_view key);
/// A fresh random Sec-WebSocket-Key. 24 characters.
std::string websocket_key();

}  // namespace twp::h1
