#include "h1/head_parser.h"

#include <algorithm>
#include <cstring>

#include "base/ascii.h"

namespace twp::h1 {
namespace {

constexpr std::size_t kMaxEmptyLines = 4;  // in front of a request

ParseResult need_more() noexcept { return {}; }
ParseResult bad(Fault f) noexcept { return {ParseStatus::bad, f, 0, {}}; }
ParseResult over(Fault f, std::string_view key, std::uint64_t observed, std::uint64_t limit) noexcept {
  return {ParseStatus::bad, f, 0, {key, observed, limit}};
}

/// Where a parse stands: [p, end) is unread.
struct Cursor {
  const char* p;
  const char* end;
  std::size_t left() const noexcept { return static_cast<std::size_t>(end - p); }
};

enum class Eol : std::uint8_t { yes, no, need_more };

/// At the octet that ended a run of legal ones: is it CR LF?
Eol at_eol(const Cursor& c) noexcept {
  if (c.p == c.end) return Eol::need_more;
  if (*c.p != '\r') return Eol::no;
  if (c.p + 1 == c.end) return Eol::need_more;
  return c.p[1] == '\n' ? Eol::yes : Eol::no;
}

struct FieldRules {
  Fault bad_field;
  std::uint32_t max_fields;
  Fault too_many;
};

/// One field line at the cursor. Complete: the cursor stands behind it.
ParseStatus parse_field(Cursor& c, HeaderBlock& fields) noexcept {
  const char* name = c.p;
  while (c.p != c.end && is_token_char(*c.p)) ++c.p;
  if (c.p == c.end) return ParseStatus::need_more;
  // Also catches a folded line (starts with a blank), a blank before the colon and an empty name.
  if (*c.p != ':' || c.p == name) return ParseStatus::bad;
  const std::string_view name_text(name, static_cast<std::size_t>(c.p - name));
  ++c.p;
  while (c.p != c.end && is_ows(*c.p)) ++c.p;
  const char* value = c.p;
  c.p = find_control(c.p, c.end);
  switch (at_eol(c)) {
    case Eol::need_more: return ParseStatus::need_more;
    case Eol::no: return ParseStatus::bad;
    case Eol::yes: break;
  }
  const char* value_end = c.p;
  while (value_end != value && is_ows(value_end[-1])) --value_end;
  c.p += 2;
  fields.add_view(header_id(name_text), name_text, {value, static_cast<std::size_t>(value_end - value)});
  return ParseStatus::complete;
}

/// Field lines up to and including the empty line.
ParseResult parse_fields(Cursor& c, const FieldRules& rules, HeaderBlock& fields) noexcept {
  for (;;) {
    if (c.p == c.end) return need_more();
    if (*c.p == '\r') {
      const Eol eol = at_eol(c);
      if (eol == Eol::need_more) return need_more();
      if (eol == Eol::no) return bad(rules.bad_field);
      c.p += 2;
      return {ParseStatus::complete, Fault::none, 0, {}};
    }
    if (fields.size() == rules.max_fields)
      return over(rules.too_many, "max_fields", fields.size() + 1, rules.max_fields);
    const ParseStatus s = parse_field(c, fields);
    if (s == ParseStatus::need_more) return need_more();
    if (s == ParseStatus::bad) return bad(rules.bad_field);
  }
}

/// "HTTP/d.d" at the cursor.
ParseStatus parse_version(Cursor& c, HttpVersion& version) noexcept {
  constexpr std::string_view kPrefix = "HTTP/";
  const std::size_t n = std::min(c.left(), kPrefix.size());
  if (std::memcmp(c.p, kPrefix.data(), n) != 0) return ParseStatus::bad;
  if (c.left() < 8) return ParseStatus::need_more;
  if (!is_digit(c.p[5]) || c.p[6] != '.' || !is_digit(c.p[7])) return ParseStatus::bad;
  version = {static_cast<std::uint8_t>(c.p[5] - '0'), static_cast<std::uint8_t>(c.p[7] - '0')};
  c.p += 8;
  return ParseStatus::complete;
}

ParseStatus skip_eol(Cursor& c) noexcept {
  switch (at_eol(c)) {
    case Eol::need_more: return ParseStatus::need_more;
    case Eol::no: return ParseStatus::bad;
    case Eol::yes: break;
  }
  c.p += 2;
  return ParseStatus::complete;
}

ParseResult from_status(ParseStatus s, Fault f) noexcept { return s == ParseStatus::bad ? bad(f) : need_more(); }

/// method SP request-target SP HTTP-version CRLF, with single blanks.
ParseResult parse_request_line(Cursor& c, const HttpLimits& limits, RawHead& raw) noexcept {
  const char* begin = c.p;
  while (c.p != c.end && is_token_char(*c.p)) ++c.p;
  raw.method = {begin, static_cast<std::size_t>(c.p - begin)};
  if (raw.method.size() > kMaxMethod) return bad(Fault::method_too_long);
  if (c.p == c.end) return need_more();
  if (*c.p != ' ' || c.p == begin) return bad(Fault::bad_request_line);
  begin = ++c.p;
  while (c.p != c.end && is_target_char(*c.p)) ++c.p;
  raw.target = {begin, static_cast<std::size_t>(c.p - begin)};
  if (raw.target.size() > limits.max_target)
    return over(Fault::target_too_long, "max_target", raw.target.size(), limits.max_target);
  if (c.p == c.end) return need_more();
  if (*c.p != ' ' || raw.target.empty()) return bad(Fault::bad_request_line);
  ++c.p;
  if (const ParseStatus s = parse_version(c, raw.version); s != ParseStatus::complete)
    return from_status(s, Fault::bad_request_line);
  if (const ParseStatus s = skip_eol(c); s != ParseStatus::complete) return from_status(s, Fault::bad_request_line);
  if (raw.version.major != 1) return bad(Fault::bad_version);
  return {ParseStatus::complete, Fault::none, 0, {}};
}

/// HTTP-version SP status-code [SP [reason]] CRLF.
ParseResult parse_status_line(Cursor& c, RawHead& raw) noexcept {
  if (const ParseStatus s = parse_version(c, raw.version); s != ParseStatus::complete)
    return from_status(s, Fault::origin_bad_head);
  if (raw.version.major != 1) return bad(Fault::origin_bad_head);
  if (c.left() < 4) return need_more();
  if (c.p[0] != ' ' || !is_digit(c.p[1]) || !is_digit(c.p[2]) || !is_digit(c.p[3])) return bad(Fault::origin_bad_head);
  raw.status = static_cast<std::uint16_t>((c.p[1] - '0') * 100 + (c.p[2] - '0') * 10 + (c.p[3] - '0'));
  if (raw.status < 100 || raw.status > 599) return bad(Fault::origin_bad_head);
  c.p += 4;
  if (c.p != c.end && *c.p == ' ') ++c.p;
  else if (c.p != c.end && *c.p != '\r') return bad(Fault::origin_bad_head);
  const char* reason = c.p;
  c.p = find_control(c.p, c.end);
  raw.reason = {reason, static_cast<std::size_t>(c.p - reason)};
  if (const ParseStatus s = skip_eol(c); s != ParseStatus::complete) return from_status(s, Fault::origin_bad_head);
  return {ParseStatus::complete, Fault::none, 0, {}};
}

ParseResult finish(ParseResult r, const Cursor& c, std::string_view text, std::uint64_t max, Fault too_large,
                   std::string_view key) noexcept {
  const auto used = static_cast<std::uint64_t>(c.p - text.data());
  if (r.status != ParseStatus::need_more) r.size = used;
  // A defect behind the limit counts as the limit: what the answer is must not depend on how the octets came.
  const std::uint64_t seen = r.status == ParseStatus::need_more ? text.size() : used;
  if (seen > max) return over(too_large, key, seen, max);
  return r;
}

}  // namespace

ParseResult parse_request_head(std::string_view text, const HttpLimits& limits, RawHead& raw) noexcept {
  Cursor c{text.data(), text.data() + text.size()};
  for (std::size_t i = 0; i < kMaxEmptyLines && c.left() >= 2 && c.p[0] == '\r' && c.p[1] == '\n'; ++i) c.p += 2;
  if (c.left() == 1 && *c.p == '\r') return need_more();
  ParseResult r = parse_request_line(c, limits, raw);
  // Each part of the line has its own limit and its own answer (RFC 9112 §3), whatever the head as a whole may hold.
  if (r.status == ParseStatus::need_more) return r;
  if (r.status == ParseStatus::bad) {
    r.size = static_cast<std::size_t>(c.p - text.data());
    return r;
  }
  r = parse_fields(c, {Fault::bad_header, limits.max_fields, Fault::too_many_fields}, raw.fields);
  return finish(r, c, text, limits.max_head, Fault::head_too_large, "max_head");
}

ParseResult parse_response_head(std::string_view text, const HttpLimits& limits, RawHead& raw) noexcept {
  Cursor c{text.data(), text.data() + text.size()};
  ParseResult r = parse_status_line(c, raw);
  if (r.status == ParseStatus::complete)
    r = parse_fields(c, {Fault::origin_bad_head, limits.max_fields, Fault::origin_head_too_large}, raw.fields);
  return finish(r, c, text, limits.max_response_head, Fault::origin_head_too_large, "max_response_head");
}

ParseResult parse_trailers(std::string_view text, const HttpLimits& limits, HeaderBlock& fields) noexcept {
  Cursor c{text.data(), text.data() + text.size()};
  ParseResult r = parse_fields(c, {Fault::bad_trailer, limits.max_fields, Fault::too_many_fields}, fields);
  return finish(r, c, text, limits.max_trailer, Fault::head_too_large, "max_trailer");
}

bool request_line_is_due(std::size_t before, std::size_t now, const HttpLimits& limits) noexcept {
  const auto passed = [&](std::size_t n) { return before <= n && now > n; };
  return passed(kMaxEmptyLines * 2 + kMaxMethod) || passed(kMaxEmptyLines * 2 + kMaxMethod + 1 + limits.max_target);
}

bool may_be_complete(std::string_view text, std::size_t from) noexcept {
  // A line feed that ends an empty line, or one without its CR, which the parser will refuse at once.
  std::size_t i = from > 3 ? from - 3 : 0;
  while ((i = text.find('\n', i)) != std::string_view::npos) {
    if (i == 0 || text[i - 1] != '\r') return true;
    if (i < 3 || (text[i - 2] == '\n' && text[i - 3] == '\r')) return true;
    ++i;
  }
  return false;
}

}  // namespace twp::h1
