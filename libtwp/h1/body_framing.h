// Where an HTTP/1 message body ends, RFC 9112 §6 and §7.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fault.h"
#include "base/slice.h"
#include "h1/head_parser.h"

namespace twp::h1 {

enum class Framing : std::uint8_t {
  none,         ///< no body
  length,       ///< `length` octets
  chunked,      ///< RFC 9112 §7.1
  until_close,  ///< responses only
  tunnel,       ///< both directions are raw from here on (2xx to CONNECT, 101)
};

struct FramingDecision {
  Fault fault = Fault::none;  ///< not none: the message must be refused
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  bool must_close = false;  ///< legal, but the connection cannot be trusted afterwards (TE and CL in a response)
};

/// RFC 9112 §6.3 for requests, the stricter choice wherever there is one: two lengths, a length beside a
/// transfer coding, a coding in HTTP/1.0 and anything but exactly "chunked" are refused.
FramingDecision request_framing(const RawHead& raw) noexcept;

/// RFC 9112 §6.3 for responses to `method`; equal repeated lengths count as one, differing ones are refused.
FramingDecision response_framing(const RawHead& raw, Method method) noexcept;

/// Decodes a chunked body piece by piece without copying.
class ChunkDecoder {
 public:
  enum class Event : std::uint8_t {
    need_more,  ///< the input is used up
    data,       ///< `data_size()` octets at the front of the input are body: the caller takes them off
    trailers,   ///< the last chunk is read; the input stands at the trailer section
    bad,        ///< Fault::bad_chunk: chunk framing is broken, nothing after it can be trusted
  };

  void reset() noexcept { *this = ChunkDecoder(); }
  /// Consumes framing octets from the front of `in`.
  Event next(Slice& in) noexcept;
  /// After Event::data: octets available, at most in.size().
  std::size_t data_size(const Slice& in) const noexcept {
    return in.size() < left_ ? in.size() : static_cast<std::size_t>(left_);
  }
  void took(std::size_t n) noexcept {
    left_ -= n;
    if (left_ == 0) state_ = State::data_cr;
  }

 private:
  enum class State : std::uint8_t { size_first, size, ext, ext_quoted, ext_escape, size_lf, data, data_cr, data_lf, done, bad };
  State step(char c) noexcept;
  State size_digit(char c) noexcept;
  State extension(char c) noexcept;

  std::uint64_t left_ = 0;
  std::uint32_t line_ = 0;  // octets of the current chunk line
  std::uint8_t digits_ = 0;
  State state_ = State::size_first;
};

}  // namespace twp::h1
