#include "loadgen/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/ascii.h"

namespace twp::load {
namespace {

struct Number {
  double value;
  std::string_view unit;
};

// Digits with an optional fraction; no sign, no exponent, no blank.
std::optional<Number> split(std::string_view text) noexcept {
  std::size_t n = 0;
  while (n < text.size() && (is_digit(text[n]) || text[n] == '.')) ++n;
  Number out{0, text.substr(n)};
  const auto [end, error] = std::from_chars(text.data(), text.data() + n, out.value, std::chars_format::fixed);
  if (n == 0 || error != std::errc() || end != text.data() + n || !std::isfinite(out.value)) return std::nullopt;
  return out;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  const auto n = split(text);
  if (!n) return std::nullopt;
  double scale = 0;
  if (n->unit.empty() || n->unit == "s") scale = 1e9;
  else if (n->unit == "ms") scale = 1e6;
  else if (n->unit == "us") scale = 1e3;
  else if (n->unit == "m") scale = 60e9;
  else if (n->unit == "h") scale = 3600e9;
  const double ns = n->value * scale;
  if (scale == 0 || ns > 3600e12) return std::nullopt;
  return Duration(static_cast<std::int64_t>(std::llround(ns)));
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  const auto n = split(text);
  if (!n) return std::nullopt;
  std::string unit = lower(n->unit);
  if (unit.ends_with("ib")) unit.resize(unit.size() - 2);
  else if (unit.ends_with('b')) unit.pop_back();
  double scale = 0;
  if (unit.empty()) scale = 1;
  else if (unit == "k") scale = 1024;
  else if (unit == "m") scale = 1024.0 * 1024;
  else if (unit == "g") scale = 1024.0 * 1024 * 1024;
  else if (unit == "t") scale = 1024.0 * 1024 * 1024 * 1024;
  const double octets = n->value * scale;
  if (scale == 0 || octets > 1e15 || octets != std::floor(octets)) return std::nullopt;
  return static_cast<std::uint64_t>(octets);
}

std::optional<double> parse_fraction(std::string_view text) noexcept {
  const auto n = split(text);
  if (!n || !(n->unit.empty() || n->unit == "%")) return std::nullopt;
  const double f = n->unit.empty() ? n->value : n->value / 100;
  if (f > 1) return std::nullopt;
  return f;
}

std::optional<std::vector<unsigned>> parse_steps(std::string_view text) {
  std::vector<unsigned> out;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto v = parse_decimal(text.substr(0, comma));
    if (!v || *v < 1 || *v > 1'000'000) return std::nullopt;
    out.push_back(static_cast<unsigned>(*v));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return out;
}

std::string fixed(double v, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, v);
  return text;
}

std::string show_us(std::uint64_t us) {
  const auto v = static_cast<double>(us);
  if (us < 1000) return std::to_string(us) + "us";
  const bool seconds = v >= 999'500;
  const double shown = v / (seconds ? 1e6 : 1e3);
  return fixed(shown, shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0) + (seconds ? "s" : "ms");
}

std::string show_count(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

}  // namespace twp::load
