#include "h1/body_framing.h"

#include <limits>
#include <optional>

#include "base/ascii.h"

namespace twp::h1 {
namespace {

// A chunk line that is longer than this is an attack or a mistake: 16 digits and room for an extension.
constexpr std::uint32_t kMaxChunkLine = 4096;

constexpr std::uint64_t kMaxLength = std::numeric_limits<std::int64_t>::max();

std::optional<std::uint64_t> parse_length(std::string_view text) noexcept {
  const auto v = parse_decimal(text);
  if (!v || *v > kMaxLength) return std::nullopt;
  return v;
}

/// True when all Transfer-Encoding lines together are exactly one "chunked".
bool exactly_chunked(const HeaderBlock& fields, std::size_t first) noexcept {
  return fields.find(HeaderId::transfer_encoding, first + 1) == HeaderBlock::npos &&
         iequals(fields[first].value, "chunked");
}

/// All Content-Length values as one number; nullopt when one is malformed or they differ.
std::optional<std::uint64_t> agreed_length(const HeaderBlock& fields) noexcept {
  std::optional<std::uint64_t> length;
  for (const Field& f : fields) {
    if (f.id != HeaderId::content_length) continue;
    std::string_view rest = f.value;
    for (;;) {
      const auto comma = rest.find(',');
      const auto v = parse_length(trim_ows(rest.substr(0, comma)));
      if (!v || (length && *length != *v)) return std::nullopt;
      length = v;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return length;
}

FramingDecision refuse(Fault f) noexcept { return {f, Framing::none, 0, false}; }
FramingDecision decide(Framing f, std::uint64_t length = 0, bool must_close = false) noexcept {
  return {Fault::none, f, length, must_close};
}

}  // namespace

FramingDecision request_framing(const RawHead& raw) noexcept {
  const HeaderBlock& fields = raw.fields;
  if (const std::size_t te = fields.find(HeaderId::transfer_encoding); te != HeaderBlock::npos) {
    if (raw.version.minor == 0 || fields.has(HeaderId::content_length)) return refuse(Fault::bad_framing);
    if (exactly_chunked(fields, te)) return decide(Framing::chunked);
    // A well-formed list that ends in chunked but has codings that we do not decode is "not implemented".
    const bool single_line = fields.find(HeaderId::transfer_encoding, te + 1) == HeaderBlock::npos;
    const std::string_view v = fields[te].value;
    const auto comma = v.rfind(',');
    if (single_line && comma != std::string_view::npos && iequals(trim_ows(v.substr(comma + 1)), "chunked") &&
        is_token(trim_ows(v.substr(0, v.find(',')))) && !list_contains(v.substr(0, comma), "chunked"))
      return refuse(Fault::transfer_coding);
    return refuse(Fault::bad_framing);
  }
  const std::size_t cl = fields.find(HeaderId::content_length);
  if (cl == HeaderBlock::npos) return decide(Framing::none);
  const auto length = parse_length(fields[cl].value);
  if (!length || fields.find(HeaderId::content_length, cl + 1) != HeaderBlock::npos) return refuse(Fault::bad_framing);
  return decide(Framing::length, *length);
}

FramingDecision response_framing(const RawHead& raw, Method method) noexcept {
  const HeaderBlock& fields = raw.fields;
  if (method == Method::connect && raw.status / 100 == 2) return decide(Framing::tunnel);
  if (response_has_no_body(method, raw.status)) {
    // There is no body to misread, but a length that is announced goes on to the client: it must be one.
    const bool announces = fields.has(HeaderId::content_length) && raw.status != 204 && raw.status >= 200;
    return announces && !agreed_length(fields) ? refuse(Fault::origin_bad_framing) : decide(Framing::none);
  }
  if (const std::size_t te = fields.find(HeaderId::transfer_encoding); te != HeaderBlock::npos) {
    if (raw.version.minor == 0 || !exactly_chunked(fields, te)) return refuse(Fault::origin_bad_framing);
    return decide(Framing::chunked, 0, fields.has(HeaderId::content_length));
  }
  if (!fields.has(HeaderId::content_length)) return decide(Framing::until_close, 0, true);
  const auto length = agreed_length(fields);
  return length ? decide(Framing::length, *length) : refuse(Fault::origin_bad_framing);
}

ChunkDecoder::State ChunkDecoder::size_digit(char c) noexcept {
  // 15 digits: no overflow, and more than any real chunk.
  if (digits_ == 15) return State::bad;
  ++digits_;
  const char l = to_lower(c);
  left_ = left_ << 4 | static_cast<std::uint64_t>(l <= '9' ? l - '0' : l - 'a' + 10);
  return State::size;
}

ChunkDecoder::State ChunkDecoder::extension(char c) noexcept {
  // Extensions are skipped, but only well-formed ones: no CR or LF anywhere but at the end, quoted or not.
  if (state_ == State::ext_escape) return is_value_char(c) ? State::ext_quoted : State::bad;
  if (state_ == State::ext_quoted) {
    if (c == '"') return State::ext;
    if (c == '\\') return State::ext_escape;
    return is_value_char(c) ? State::ext_quoted : State::bad;
  }
  if (c == '\r') return State::size_lf;
  if (c == '"') return State::ext_quoted;
  return is_value_char(c) ? State::ext : State::bad;
}

ChunkDecoder::State ChunkDecoder::step(char c) noexcept {
  if (++line_ > kMaxChunkLine) return State::bad;
  switch (state_) {
    case State::size_first: return is_hex(c) ? size_digit(c) : State::bad;
    case State::size:
      if (is_hex(c)) return size_digit(c);
      if (c == '\r') return State::size_lf;
      return c == ';' ? State::ext : State::bad;
    case State::ext:
    case State::ext_quoted:
    case State::ext_escape: return extension(c);
    case State::size_lf:
      if (c != '\n') return State::bad;
      line_ = 0;
      digits_ = 0;
      return left_ == 0 ? State::done : State::data;
    case State::data_cr: return c == '\r' ? State::data_lf : State::bad;
    case State::data_lf: return c == '\n' ? (line_ = 0, State::size_first) : State::bad;
    case State::data:
    case State::done:
    case State::bad: break;
  }
  return State::bad;
}

ChunkDecoder::Event ChunkDecoder::next(Slice& in) noexcept {
  const std::string_view text = in.text();
  std::size_t i = 0;
  while (i < text.size() && state_ != State::data && state_ != State::done && state_ != State::bad)
    state_ = step(text[i++]);
  in.remove_prefix(i);
  switch (state_) {
    case State::done: return Event::trailers;
    case State::bad: return Event::bad;
    case State::data: return in.empty() ? Event::need_more : Event::data;
    default: return Event::need_more;
  }
}

}  // namespace twp::h1
