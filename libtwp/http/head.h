// Head: a request or response head in the one canonical form. Codecs translate to and from it, and that is
// all they do.
//
// Canonical means (RFC 9110 semantics, independent of the wire):
//  * no connection-specific field: Connection, Keep-Alive, Proxy-Connection, TE (but "trailers"), Upgrade,
//    Transfer-Encoding and everything that Connection listed are gone; framing is in `body`;
//  * no Host field: `authority` holds it; a missing one (HTTP/1.0) is empty;
//  * `path` is the origin-form target as received ("*" for OPTIONS *, empty for plain CONNECT);
//  * Content-Length stays in `fields` exactly when `body` is exactly(n) or a HEAD/304 response announces it, and agrees;
//  * Cookie crumbs are joined into one field;
//  * a WebSocket handshake is method CONNECT with protocol "websocket" and its 101 is a 200 (RFC 8441, RFC 9220);
//    Sec-WebSocket-Key and -Accept are kept when an HTTP/1 leg sent them;
//  * `method` of a response is that of the request it answers: connect with a 2xx status opens the tunnel, while a
//    2xx with another method in answer to a WebSocket handshake is an ordinary response, that is a refusal;
//  * no field value holds CR, LF or NUL and every name is a token.
#pragma once

#include <cstdint>
#include <string_view>

#include "http/header_block.h"
#include "http/method.h"

namespace twp {

enum class HeadKind : std::uint8_t { request, interim, response };

/// Whether a message ends with the call that carries this.
enum class End : bool { no = false, yes = true };

/// How long a body is, before it has been seen.
struct BodySize {
  enum class Kind : std::uint8_t { none, exactly, unknown };
  Kind kind = Kind::none;
  std::uint64_t n = 0;  ///< octets, when kind is exactly

  static constexpr BodySize none() noexcept { return {}; }
  static constexpr BodySize exactly(std::uint64_t n) noexcept { return {Kind::exactly, n}; }
  static constexpr BodySize unknown() noexcept { return {Kind::unknown, 0}; }
  bool is_none() const noexcept { return kind == Kind::none; }
  bool is_exact() const noexcept { return kind == Kind::exactly; }
  bool is_unknown() const noexcept { return kind == Kind::unknown; }
};

/// Protocol version a head was received with, for Via and logs. {1,0}, {1,1}, {2,0} or {3,0}.
struct HttpVersion {
  std::uint8_t major = 1;
  std::uint8_t minor = 1;
};

/// Move-only; the views live in `fields`' arena or are static.
struct Head {
  HeadKind kind = HeadKind::request;
  Method method = Method::get;
  HttpVersion version;
  std::uint16_t status = 0;      ///< 100..599; 0 for requests
  BodySize body;
  std::string_view method_name;  ///< always set on requests, also for known methods
  std::string_view scheme;       ///< "http" or "https"
  std::string_view authority;    ///< host[:port], userinfo never
  std::string_view path;         ///< path and query, bytes untouched
  std::string_view protocol;     ///< extended CONNECT (RFC 8441 §4), else empty
  std::string_view reason;       ///< HTTP/1 reason phrase as received, else empty
  HeaderBlock fields;

  bool is_request() const noexcept { return kind == HeadKind::request; }
  bool is_interim() const noexcept { return kind == HeadKind::interim; }
  /// CONNECT of either form: after a 2xx the body is a tunnel.
  bool is_connect() const noexcept { return method == Method::connect; }

  void set_method(Method m) noexcept {
    method = m;
    method_name = method_text(m);
  }
  void set_authority(std::string_view v) { authority = fields.arena().copy(v); }
  void set_path(std::string_view v) { path = fields.arena().copy(v); }

  static Head response(std::uint16_t status, BodySize body = BodySize::none());
  static Head interim(std::uint16_t status);
  static Head request(Method m, std::string_view scheme, std::string_view authority, std::string_view path,
                      BodySize body = BodySize::none());
  Head clone() const;
};

/// True when a response with this status to this method has no body whatever its fields say (RFC 9110 §6.4.1).
inline bool response_has_no_body(Method request, std::uint16_t status) noexcept {
  return request == Method::head || status == 204 || status == 304 || status / 100 == 1;
}

/// The request is a gRPC call: its Content-Type is application/grpc, with or without a suffix.
bool is_grpc(const Head& request) noexcept;

/// The standard reason phrase; empty when there is none.
std::string_view reason_phrase(std::uint16_t status) noexcept;

/// Removes connection-specific fields as received: those of header_id.def and those that Connection names
/// (RFC 9110 §7.6.1), keeps "te: trailers". Never touches framing decisions: call it after them.
void remove_hop_by_hop(HeaderBlock& fields) noexcept;

/// Joins several Cookie fields into one with "; " (RFC 9113 §8.2.3).
void join_cookies(HeaderBlock& fields);

}  // namespace twp
