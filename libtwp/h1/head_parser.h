// HTTP/1 message heads: octets to fields, RFC 9112 §2-§5. Strict: whatever two implementations could read
// differently is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/header_block.h"
#include "http/head.h"
#include "http/limits.h"

namespace twp::h1 {

enum class ParseStatus : std::uint8_t { complete, need_more, bad };

/// A parsed start line and field section. Views point into the text given to the parser until the caller
/// adopts it into `fields`.
struct RawHead {
  HttpVersion version;
  std::string_view method;  ///< requests
  std::string_view target;  ///< requests
  std::uint16_t status = 0;  ///< responses
  std::string_view reason;  ///< responses
  HeaderBlock fields;
};

struct ParseResult {
  ParseStatus status = ParseStatus::need_more;
  Fault fault = Fault::none;  ///< when bad
  std::size_t size = 0;       ///< octets of the head with its empty line, when complete; where the defect is, when bad
  LimitHit limit;             ///< when a limit was passed: key and values
};

/// Parses a request head at the start of `text`. Empty lines in front count to the head (RFC 9112 §2.2 asks to
/// skip one; up to four are). No I/O, no global state. `raw` is filled only when complete.
///
/// Refused: bare LF or CR, NUL and other controls, folded lines, blanks before the colon or around the request
/// line's parts, empty or non-token names, more than limits.max_fields fields. A method of more than 64 octets and a
/// target of more than limits.max_target are refused as soon as they are here, with 501 and 414 (RFC 9112 §3).
ParseResult parse_request_head(std::string_view text, const HttpLimits& limits, RawHead& raw) noexcept;

/// The same for a response head. A missing reason phrase with or without its blank is accepted (RFC 9112 §4).
ParseResult parse_response_head(std::string_view text, const HttpLimits& limits, RawHead& raw) noexcept;

/// Parses a trailer section up to and including its empty line (RFC 9112 §7.1.2).
ParseResult parse_trailers(std::string_view text, const HttpLimits& limits, HeaderBlock& fields) noexcept;

/// A request head that grew from `before` to `now` octets without its end has passed a size at which a method or a target
/// is too long: worth a parse, which then says so.
bool request_line_is_due(std::size_t before, std::size_t now, const HttpLimits& limits) noexcept;

/// True when `text` may hold a whole head, looking only at octets from `from` (minus three) on: an empty line, or
/// something that makes waiting for one pointless. Keeps slow senders from making us parse again and again.
bool may_be_complete(std::string_view text, std::size_t from) noexcept;

}  // namespace twp::h1
