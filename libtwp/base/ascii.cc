#include "base/ascii.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <limits>

namespace twp {

bool is_token(std::string_view s) noexcept { return !s.empty() && std::all_of(s.begin(), s.end(), is_token_char); }

const char* find_control(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(0x20);
  const __m128i tab = _mm_set1_epi8('\t');
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; end - p >= 16; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // Unsigned v < 0x20 is max(v, 0x20) != v.
    const __m128i printable = _mm_cmpeq_epi8(_mm_max_epu8(v, space), v);
    const __m128i fine = _mm_andnot_si128(_mm_cmpeq_epi8(v, del), _mm_or_si128(printable, _mm_cmpeq_epi8(v, tab)));
    const unsigned bad = static_cast<unsigned>(_mm_movemask_epi8(fine)) ^ 0xffffu;
    if (bad != 0) return p + std::countr_zero(bad);
  }
#endif
  while (p != end && is_value_char(*p)) ++p;
  return p;
}

bool is_field_value(std::string_view s) noexcept {
  return find_control(s.data(), s.data() + s.size()) == s.data() + s.size();
}

bool iequals(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  return true;
}

bool istarts_with(std::string_view s, std::string_view prefix) noexcept {
  return s.size() >= prefix.size() && iequals(s.substr(0, prefix.size()), prefix);
}

std::string_view trim_ows(std::string_view s) noexcept {
  while (!s.empty() && is_ows(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_ows(s.back())) s.remove_suffix(1);
  return s;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = to_lower(c);
  return out;
}

std::optional<std::uint64_t> parse_decimal(std::string_view s) noexcept {
  if (s.empty()) return std::nullopt;
  std::uint64_t v = 0;
  for (const char c : s) {
    if (!is_digit(c)) return std::nullopt;
    const auto d = static_cast<std::uint64_t>(c - '0');
    if (v > (std::numeric_limits<std::uint64_t>::max() - d) / 10) return std::nullopt;
    v = v * 10 + d;
  }
  return v;
}

std::optional<std::uint64_t> parse_hex(std::string_view s) noexcept {
  if (s.empty()) return std::nullopt;
  std::uint64_t v = 0;
  for (const char c : s) {
    if (!is_hex(c) || v >> 60 != 0) return std::nullopt;
    const char l = to_lower(c);
    v = v << 4 | static_cast<std::uint64_t>(l <= '9' ? l - '0' : l - 'a' + 10);
  }
  return v;
}

std::size_t write_decimal(char* out, std::uint64_t v) noexcept {
  char buf[20];
  std::size_t n = 0;
  do {
    buf[n++] = static_cast<char>('0' + v % 10);
    v /= 10;
  } while (v != 0);
  for (std::size_t i = 0; i < n; ++i) out[i] = buf[n - 1 - i];
  return n;
}

std::size_t write_hex(char* out, std::uint64_t v) noexcept {
  char buf[16];
  std::size_t n = 0;
  do {
    buf[n++] = "0123456789abcdef"[v & 15];
    v >>= 4;
  } while (v != 0);
  for (std::size_t i = 0; i < n; ++i) out[i] = buf[n - 1 - i];
  return n;
}

bool list_contains(std::string_view list, std::string_view token) noexcept {
  bool found = false;
  for_each_list_element(list, [&](std::string_view item) {
    found = iequals(item, token);
    return !found;
  });
  return found;
}

void append_json_escaped(std::string& out, std::string_view s) {
  static constexpr char kHexDigits[] = "0123456789abcdef";
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (u == '"' || u == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (u < 0x20 || u >= 0x7f) {
      out += "\\u00";
      out.push_back(kHexDigits[u >> 4]);
      out.push_back(kHexDigits[u & 15]);
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace twp
