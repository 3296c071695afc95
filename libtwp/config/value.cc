#include "config/value.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "base/ascii.h"

namespace twp::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 7> kTimes = {{{"d", 86'400'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};
constexpr std::array<Unit, 5> kSizes = {
    {{"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"B", 1}}};

/// A whole number and one of `units`.
template <std::size_t N>
std::optional<std::uint64_t> parse_with_unit(std::string_view text, const std::array<Unit, N>& units) noexcept {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const auto number = parse_decimal(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& u : units) {
    if (text.substr(digits) != u.name) continue;
    if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / u.factor) return std::nullopt;
    return *number * u.factor;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string format_with_unit(std::uint64_t value, const std::array<Unit, N>& units) {
  const auto u = std::ranges::find_if(units, [&](const Unit& x) { return value % x.factor == 0; });
  return std::to_string(value / u->factor) + std::string(u->name);
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string join(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view w : words) {
    if (!out.empty()) out += ", ";
    out += w;
  }
  return out;
}

std::string bound_text(const Spec& spec, std::uint64_t value) {
  if (spec.kind == Kind::duration) return value == 0 ? "0s" : format_duration(Duration(value));
  if (spec.kind == Kind::size) return format_size(value);
  return std::to_string(value);
}

std::string mismatch(const Spec& spec, std::string_view found) {
  return "expected " + expected(spec) + ", found " + std::string(found);
}

std::optional<std::string> store(const Spec& spec, Field field, std::uint64_t value, std::string_view found) {
  if (value < spec.min || value > spec.max) return mismatch(spec, found);
  if (auto* u32 = std::get_if<std::uint32_t*>(&field)) **u32 = static_cast<std::uint32_t>(value);
  if (auto* u64 = std::get_if<std::uint64_t*>(&field)) **u64 = value;
  if (auto* i = std::get_if<int*>(&field)) **i = static_cast<int>(value);
  if (auto* d = std::get_if<Duration*>(&field)) **d = Duration(value);
  return std::nullopt;
}

void store_text(Field field, std::string_view value) {
  if (auto* s = std::get_if<std::string*>(&field)) **s = value;
  if (auto* o = std::get_if<std::optional<std::string>*>(&field)) **o = std::string(value);
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    out.emplace_back(trim_ows(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return out;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  const auto ns = parse_with_unit(text, kTimes);
  return ns ? std::optional<Duration>(Duration(*ns)) : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  if (const auto plain = parse_decimal(text); plain && *plain <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return plain;
  return parse_with_unit(text, kSizes);
}

std::string format_duration(Duration d) {
  if (d.count() == 0) return "0s";
  // Days stay hours: "24h" reads better than "1d" beside "12h".
  std::array<Unit, 6> units{};
  std::copy(kTimes.begin() + 1, kTimes.end(), units.begin());
  return format_with_unit(static_cast<std::uint64_t>(d.count()), units);
}

std::string format_size(std::uint64_t octets) {
  if (octets == 0) return "0";
  const std::string text = format_with_unit(octets, kSizes);
  return text.ends_with("iB") ? text : std::to_string(octets);
}

std::string_view kind_text(Kind kind) noexcept {
  switch (kind) {
    case Kind::text: return "string";
    case Kind::boolean: return "boolean";
    case Kind::integer: return "integer";
    case Kind::size: return "size";
    case Kind::duration: return "duration";
    case Kind::list: return "list";
    case Kind::choice: return "choice";
  }
  return "?";
}

std::string range_text(const Spec& spec) {
  switch (spec.kind) {
    case Kind::integer:
    case Kind::size:
    case Kind::duration: return bound_text(spec, spec.min) + " to " + bound_text(spec, spec.max);
    case Kind::choice: return join(spec.choices);
    case Kind::text:
    case Kind::boolean:
    case Kind::list: return "";
  }
  return "";
}

std::string expected(const Spec& spec) {
  switch (spec.kind) {
    case Kind::text: return "a string";
    case Kind::boolean: return "true or false";
    case Kind::integer: return "an integer from " + range_text(spec);
    case Kind::size: return "a size from " + range_text(spec) + " such as \"64KiB\"";
    case Kind::duration: return "a duration from " + range_text(spec) + " such as \"5s\"";
    case Kind::list: return "a list of strings";
    case Kind::choice: return "one of " + range_text(spec);
  }
  return "?";
}

std::optional<std::string> assign_number(const Spec& spec, Field field, std::int64_t value) {
  const std::string found = std::to_string(value);
  if (spec.kind == Kind::duration) return mismatch(spec, found + " (which needs a unit)");
  if (spec.kind != Kind::integer && spec.kind != Kind::size) return mismatch(spec, "the number " + found);
  if (value < 0) return mismatch(spec, found);
  return store(spec, field, static_cast<std::uint64_t>(value), found);
}

std::optional<std::string> assign_bool(const Spec& spec, Field field, bool value) {
  if (spec.kind != Kind::boolean) return mismatch(spec, value ? "true" : "false");
  *std::get<bool*>(field) = value;
  return std::nullopt;
}

std::optional<std::string> assign_list(const Spec& spec, Field field, std::vector<std::string> value) {
  if (spec.kind != Kind::list) return mismatch(spec, "a list");
  *std::get<std::vector<std::string>*>(field) = std::move(value);
  return std::nullopt;
}

std::optional<std::string> assign_string(const Spec& spec, Field field, std::string_view value) {
  switch (spec.kind) {
    case Kind::text:
      if (value.find('\0') != std::string_view::npos) return mismatch(spec, "a NUL character in it");
      store_text(field, value);
      return std::nullopt;
    case Kind::list: return assign_list(spec, field, {std::string(value)});
    case Kind::duration: {
      const auto d = parse_duration(value);
      return d ? store(spec, field, static_cast<std::uint64_t>(d->count()), quoted(value)) : mismatch(spec, quoted(value));
    }
    case Kind::size: {
      const auto s = parse_size(value);
      return s ? store(spec, field, *s, quoted(value)) : mismatch(spec, quoted(value));
    }
    case Kind::choice: {
      const auto at = std::ranges::find(spec.choices, value);
      if (at == spec.choices.end()) return mismatch(spec, quoted(value));
      if (auto* ref = std::get_if<ChoiceRef>(&field))
        *ref->index = static_cast<std::uint8_t>(at - spec.choices.begin());
      store_text(field, value);
      return std::nullopt;
    }
    case Kind::boolean:
    case Kind::integer: break;
  }
  return mismatch(spec, "the string " + quoted(value));
}

std::optional<std::string> assign_argument(const Spec& spec, Field field, std::string_view value) {
  if (spec.kind == Kind::boolean) {
    if (value != "true" && value != "false") return mismatch(spec, quoted(value));
    return assign_bool(spec, field, value == "true");
  }
  if (spec.kind == Kind::integer) {
    const auto n = parse_decimal(value);
    return n ? store(spec, field, *n, quoted(value)) : mismatch(spec, quoted(value));
  }
  if (spec.kind == Kind::list) return assign_list(spec, field, split_commas(value));
  return assign_string(spec, field, value);
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f) {
      char buf[8];
      std::snprintf(buf, sizeof buf, "\\u%04X", u);
      out += buf;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::optional<std::string> toml_text(const Spec& spec, Field field) {
  if (auto* s = std::get_if<std::string*>(&field)) return toml_quoted(**s);
  if (auto* o = std::get_if<std::optional<std::string>*>(&field))
    return **o ? std::optional(toml_quoted(***o)) : std::nullopt;
  if (auto* b = std::get_if<bool*>(&field)) return **b ? "true" : "false";
  if (auto* d = std::get_if<Duration*>(&field)) return '"' + format_duration(**d) + '"';
  if (auto* c = std::get_if<ChoiceRef>(&field)) return toml_quoted(spec.choices[*c->index]);
  if (auto* l = std::get_if<std::vector<std::string>*>(&field)) {
    std::string out = "[";
    for (const std::string& item : **l) out += (out.size() > 1 ? ", " : "") + toml_quoted(item);
    return out + "]";
  }
  std::uint64_t n = 0;
  if (auto* u32 = std::get_if<std::uint32_t*>(&field)) n = **u32;
  if (auto* u64 = std::get_if<std::uint64_t*>(&field)) n = **u64;
  if (auto* i = std::get_if<int*>(&field)) n = static_cast<std::uint64_t>(**i);
  if (spec.kind != Kind::size) return std::to_string(n);
  const std::string size = format_size(n);
  return is_digit(size.back()) ? size : '"' + size + '"';
}

}  // namespace twp::config
