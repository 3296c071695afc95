#include "certs/idna.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace twp::certs {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Code points that UTS #46 takes as they are and that no neighbour composes with. Sorted.
constexpr std::array kAllowed = std::to_array<Range>({
    {0x00df, 0x00f6}, {0x00f8, 0x00ff},                                        // Latin-1 letters
    {0x0100, 0x012f}, {0x0131, 0x0131}, {0x0134, 0x013e}, {0x0141, 0x0148}, {0x014a, 0x017e},    // Latin Extended-A
    {0x01cd, 0x01dc}, {0x01de, 0x01ef}, {0x01f8, 0x021f}, {0x0222, 0x0233},    // pinyin, Romanian
    {0x0390, 0x0390}, {0x03ac, 0x03ce},                                        // Greek, with final sigma
    {0x0430, 0x045f}, {0x0460, 0x0481}, {0x048a, 0x04bf}, {0x04c1, 0x04ce}, {0x04cf, 0x052f},  // Cyrillic
    {0x0561, 0x0586},                                                          // Armenian
    {0x05d0, 0x05ea},                                                          // Hebrew
    {0x0620, 0x063f}, {0x0641, 0x064a}, {0x0660, 0x0669}, {0x066e, 0x066f}, {0x0671, 0x0674}, {0x0679, 0x06d3},  // Arabic
    {0x06d5, 0x06d5}, {0x06f0, 0x06fc},
    {0x0904, 0x0939}, {0x093d, 0x094d}, {0x0950, 0x0950}, {0x0966, 0x096f},    // Devanagari, no nukta
    {0x0e01, 0x0e32}, {0x0e34, 0x0e3a}, {0x0e40, 0x0e4e}, {0x0e50, 0x0e59},    // Thai
    {0x10d0, 0x10fa},                                                          // Georgian
    {0x1e00, 0x1e99}, {0x1e9f, 0x1eff},                                        // Vietnamese and others
    {0x3005, 0x3007}, {0x3041, 0x3096}, {0x309d, 0x309e}, {0x30a1, 0x30fe},    // kana
    {0x3400, 0x4dbf}, {0x4e00, 0x9fff},                                        // CJK ideographs
    {0xac00, 0xd7a3},                                                          // Hangul syllables
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f900, 0x1f9ff},                // emoji
    {0x20000, 0x2a6df},                                                        // CJK Extension B
});

constexpr bool allowed(char32_t c) noexcept {
  const auto it = std::ranges::upper_bound(kAllowed, c, {}, &Range::first);
  return it != kAllowed.begin() && c <= std::prev(it)->last;
}

constexpr bool between(char32_t c, char32_t first, char32_t last) noexcept { return c >= first && c <= last; }

/// Blocks in which each capital is followed by its small letter and capitals have even code points.
constexpr bool even_capitals(char32_t c) noexcept {
  return between(c, 0x100, 0x12f) || between(c, 0x134, 0x137) || between(c, 0x14a, 0x177) ||
         between(c, 0x1de, 0x1ef) || between(c, 0x1f8, 0x21f) || between(c, 0x222, 0x233) ||
         between(c, 0x460, 0x481) || between(c, 0x48a, 0x4bf) || between(c, 0x4d0, 0x52f) ||
         between(c, 0x1e00, 0x1e95) || between(c, 0x1ea0, 0x1eff);
}

constexpr bool odd_capitals(char32_t c) noexcept {
  return between(c, 0x139, 0x13e) || between(c, 0x141, 0x148) || between(c, 0x179, 0x17e) ||
         between(c, 0x1cd, 0x1dc) || between(c, 0x4c1, 0x4ce);
}

/// Simple lower-casing without a locale: the C library's depends on one, and a static binary has none.
constexpr char32_t lower(char32_t c) noexcept {
  if (between(c, 'A', 'Z')) return c + 32;
  if (c < 0xc0) return c;
  if (between(c, 0xc0, 0xde) && c != 0xd7) return c + 32;
  if (c == 0x178) return 0xff;
  if (c == 0x1f6) return 0x195;
  if (c == 0x1f7) return 0x1bf;
  if (c == 0x220) return 0x19e;
  if (c == 0x1e9e) return c;  // capital sharp s: Unicode versions disagree about it, so it is refused
  if (even_capitals(c)) return c | 1;
  if (odd_capitals(c)) return (c & 1) != 0 ? c + 1 : c;
  if (c == 0x386) return 0x3ac;
  if (between(c, 0x388, 0x38a)) return c + 37;
  if (c == 0x38c) return 0x3cc;
  if (between(c, 0x38e, 0x38f)) return c + 63;
  if (between(c, 0x391, 0x3ab) && c != 0x3a2) return c + 32;
  if (between(c, 0x400, 0x40f)) return c + 80;
  if (between(c, 0x410, 0x42f)) return c + 32;
  if (between(c, 0x531, 0x556)) return c + 48;
  return c;
}

/// The combining marks among kAllowed: a label must not begin with one (UTS #46 §4.1).
constexpr bool combining(char32_t c) noexcept {
  return between(c, 0x93e, 0x94d) || c == 0xe31 || between(c, 0xe34, 0xe3a) || between(c, 0xe47, 0xe4e);
}

constexpr bool is_dot(char32_t c) noexcept { return c == '.' || c == 0x3002 || c == 0xff0e || c == 0xff61; }

std::unexpected<Error> unsupported(std::string_view host, char32_t c) {
  std::array<char, 16> code{};
  std::snprintf(code.data(), code.size(), "U+%04X", static_cast<unsigned>(c));
  return fail(Fault::bad_config, "host \"" + std::string(host) + "\": cannot map character " + code.data() +
                                     "; give the name in its ASCII form (xn--...)");
}

Result<std::string> label_to_ascii(const std::u32string& label) {
  if (std::ranges::all_of(label, [](char32_t c) { return c < 0x80; })) return {std::string(label.begin(), label.end())};
  auto encoded = punycode(label);
  if (!encoded) return encoded;
  return "xn--" + *encoded;
}

/// Length of the sequence that `lead` starts; 0 when it starts none.
constexpr int sequence_length(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

constexpr bool minimal_scalar(char32_t c, int length) noexcept {
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  return c >= least[static_cast<std::size_t>(length)] && c <= 0x10ffff && !between(c, 0xd800, 0xdfff);
}

// Parameters of RFC 3492 §5.
constexpr std::uint32_t kBase = 36, kTMin = 1, kTMax = 26, kSkew = 38, kDamp = 700, kBias = 72, kFirst = 128;

std::uint32_t adapt(std::uint32_t delta, std::uint32_t points, bool first) noexcept {
  delta = first ? delta / kDamp : delta / 2;
  delta += delta / points;
  std::uint32_t k = 0;
  for (; delta > ((kBase - kTMin) * kTMax) / 2; k += kBase) delta /= kBase - kTMin;
  return k + (kBase - kTMin + 1) * delta / (delta + kSkew);
}

/// `q` as a generalised variable-length integer (RFC 3492 §3.3).
void put_integer(std::string& out, std::uint32_t q, std::uint32_t bias) {
  const auto digit = [](std::uint32_t d) { return static_cast<char>(d < 26 ? 'a' + d : '0' + (d - 26)); };
  for (std::uint32_t k = kBase;; k += kBase) {
    const std::uint32_t t = k <= bias ? kTMin : std::min(k - bias, kTMax);
    if (q < t) break;
    out += digit(t + (q - t) % (kBase - t));
    q = (q - t) / (kBase - t);
  }
  out += digit(q);
}

}  // namespace

Result<std::u32string> decode_utf8(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = sequence_length(lead);
    const bool whole = length != 0 && i + static_cast<std::size_t>(length) <= text.size();
    char32_t c = length == 1 ? lead : lead & (0x7fu >> std::max(length, 1));
    bool good = whole;
    for (int j = 1; good && j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(j)]);
      good = (next & 0xc0) == 0x80;
      c = (c << 6) | (next & 0x3fu);
    }
    if (!good || !minimal_scalar(c, length)) {
      return fail(Fault::bad_config, "not valid UTF-8 at byte " + std::to_string(i + 1));
    }
    out += c;
    i += static_cast<std::size_t>(length);
  }
  return out;
}

Result<std::string> punycode(std::span<const char32_t> label) {
  constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
  std::string out;
  for (const char32_t c : label) {
    if (c < 0x80) out += static_cast<char>(c);
  }
  const auto basic = static_cast<std::uint32_t>(out.size());
  if (basic > 0) out += '-';
  std::uint32_t n = kFirst, delta = 0, bias = kBias, done = basic;
  while (done < label.size()) {
    std::uint32_t next = kMax;
    for (const char32_t c : label) {
      if (c >= n) next = std::min<std::uint32_t>(next, c);
    }
    if (next - n > (kMax - delta) / (done + 1)) return fail(Fault::bad_config, "label too long for punycode");
    delta += (next - n) * (done + 1);
    n = next;
    for (const char32_t c : label) {
      if (c < n && ++delta == 0) return fail(Fault::bad_config, "label too long for punycode");
      if (c != n) continue;
      put_integer(out, delta, bias);
      bias = adapt(delta, done + 1, done == basic);
      delta = 0;
      ++done;
    }
    ++delta;
    ++n;
  }
  return out;
}

Result<std::string> to_ascii(std::string_view host) {
  auto points = decode_utf8(host);
  if (!points) return fail(points.error().fault, "host: " + points.error().what);
  std::string out;
  std::u32string label;
  const auto flush = [&]() -> Result<void> {
    auto ascii = label_to_ascii(label);
    if (!ascii) return fail(ascii.error().fault, "host \"" + std::string(host) + "\": " + ascii.error().what);
    out += *ascii;
    label.clear();
    return {};
  };
  for (const char32_t c : *points) {
    if (is_dot(c)) {
      if (auto r = flush(); !r) return std::unexpected(r.error());
      out += '.';
      continue;
    }
    const char32_t small = lower(c);
    const bool bad = !allowed(small) || (label.empty() && combining(small));
    if (small >= 0x80 && bad) return unsupported(host, c);
    label += small;
  }
  if (auto r = flush(); !r) return std::unexpected(r.error());
  return out;
}

}  // namespace twp::certs
