// Character classes of RFC 9110/9112 and locale-free ASCII helpers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twp {

namespace ascii_detail {
enum : std::uint8_t { kToken = 1, kDigit = 2, kHex = 4, kVchar = 8, kObs = 16, kUri = 32 };
consteval std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> t{};
  for (unsigned c = 0x21; c <= 0x7e; ++c) t[c] |= kVchar;
  for (unsigned c = 0x80; c <= 0xff; ++c) t[c] |= kObs;
  for (unsigned c = '0'; c <= '9'; ++c) t[c] |= kDigit | kHex | kToken;
  for (unsigned c = 'a'; c <= 'z'; ++c) t[c] |= kToken;
  for (unsigned c = 'A'; c <= 'Z'; ++c) t[c] |= kToken;
  for (unsigned c = 'a'; c <= 'f'; ++c) t[c] |= kHex;
  for (unsigned c = 'A'; c <= 'F'; ++c) t[c] |= kHex;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) t[static_cast<unsigned char>(c)] |= kToken;
  // A request target: every visible octet but '#', which never leaves the client (RFC 9112 §3.2); octets
  // >= 0x80 are not URI characters but old clients send them and origins understand them.
  for (unsigned c = 0x21; c <= 0xff; ++c)
    if (c != 0x7f && c != '#') t[c] |= kUri;
  return t;
}
inline constexpr std::array<std::uint8_t, 256> kClasses = make_classes();
inline bool has(char c, std::uint8_t cls) noexcept { return (kClasses[static_cast<unsigned char>(c)] & cls) != 0; }
}  // namespace ascii_detail

inline bool is_token_char(char c) noexcept { return ascii_detail::has(c, ascii_detail::kToken); }
inline bool is_digit(char c) noexcept { return ascii_detail::has(c, ascii_detail::kDigit); }
inline bool is_hex(char c) noexcept { return ascii_detail::has(c, ascii_detail::kHex); }
inline bool is_target_char(char c) noexcept { return ascii_detail::has(c, ascii_detail::kUri); }
/// Legal inside a field value (RFC 9110 §5.5): VCHAR, obs-text, SP, HTAB.
inline bool is_value_char(char c) noexcept {
  return ascii_detail::has(c, ascii_detail::kVchar | ascii_detail::kObs) || c == ' ' || c == '\t';
}
inline bool is_ows(char c) noexcept { return c == ' ' || c == '\t'; }

inline char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// The first octet in [p, end) that may not stand in a field value: a control but HTAB, or DEL; `end` if none.
/// 16 octets at a time.
const char* find_control(const char* p, const char* end) noexcept;

bool is_token(std::string_view s) noexcept;       ///< non-empty, token characters only (RFC 9110 §5.6.2)
bool is_field_value(std::string_view s) noexcept;  ///< no control octets but HTAB
bool iequals(std::string_view a, std::string_view b) noexcept;
bool istarts_with(std::string_view s, std::string_view prefix) noexcept;
std::string_view trim_ows(std::string_view s) noexcept;
std::string lower(std::string_view s);

/// Decimal digits only, no sign, no blank; nullopt on anything else or on overflow of 64 bits.
std::optional<std::uint64_t> parse_decimal(std::string_view s) noexcept;
/// Hex digits only; nullopt on anything else or on overflow of 64 bits.
std::optional<std::uint64_t> parse_hex(std::string_view s) noexcept;

/// Writes `v` in decimal; `out` has room for 20. Returns the number of characters.
std::size_t write_decimal(char* out, std::uint64_t v) noexcept;
/// Writes `v` in lower-case hex; `out` has room for 16. Returns the number of characters.
std::size_t write_hex(char* out, std::uint64_t v) noexcept;

/// Calls `f(std::string_view)` for each non-empty element of a comma-separated list (RFC 9110 §5.6.1).
/// Quoted strings are respected. `f` returns false to stop.
template <class F>
void for_each_list_element(std::string_view list, F&& f) {
  std::size_t i = 0;
  while (i < list.size()) {
    const std::size_t begin = i;
    bool quoted = false;
    for (; i < list.size(); ++i) {
      if (quoted) {
        if (list[i] == '\\' && i + 1 < list.size()) ++i;
        else if (list[i] == '"') quoted = false;
      } else if (list[i] == '"') {
        quoted = true;
      } else if (list[i] == ',') {
        break;
      }
    }
    const std::string_view item = trim_ows(list.substr(begin, i - begin));
    ++i;
    if (!item.empty() && !f(item)) return;
  }
}
/// True when `token` is an element of the list, compared without case.
bool list_contains(std::string_view list, std::string_view token) noexcept;

/// Appends `s` to a JSON string body: quote, backslash, controls and octets >= 0x7f escaped as \u00XX.
void append_json_escaped(std::string& out, std::string_view s);

}  // namespace twp
