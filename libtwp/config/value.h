// Values of configuration keys: their kinds, ranges and texts. Loading, saving, --set and the check of
// docs/configuration.md all go through here, so that they cannot disagree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace twp::config {

enum class Kind : std::uint8_t {
  text,      ///< "..."
  boolean,   ///< true or false
  integer,   ///< 12
  size,      ///< "64KiB", "1MiB", "1GiB" or a number of octets
  duration,  ///< "5s", "250ms", "1m", "2h"
  list,      ///< ["a", "b"], or one string
  choice,    ///< one of some words
};

/// What a key accepts.
struct Spec {
  std::string_view name;
  Kind kind = Kind::text;
  std::uint64_t min = 0;  ///< integer; octets; nanoseconds
  std::uint64_t max = 0;
  std::span<const std::string_view> choices = {};
  bool required = false;
};

/// An enumerator held as its index into Spec::choices.
struct ChoiceRef {
  std::uint8_t* index;
};

/// Where the value of a key lives.
using Field = std::variant<std::string*, std::optional<std::string>*, bool*, std::uint32_t*, std::uint64_t*, int*,
                           Duration*, std::vector<std::string>*, ChoiceRef>;

template <class T>
Field field_of(T& value) noexcept {
  if constexpr (std::is_enum_v<T>) {
    static_assert(std::is_same_v<std::underlying_type_t<T>, std::uint8_t>);
    return ChoiceRef{reinterpret_cast<std::uint8_t*>(&value)};
  } else {
    return &value;
  }
}

/// "5s", "1m30s" is not taken: one number and one unit (ns, us, ms, s, m, h, d).
std::optional<Duration> parse_duration(std::string_view text) noexcept;
/// "64KiB", "1MiB", "2GiB", "1TiB", "512B" or plain octets. Powers of 1024 only: "64KB" is refused.
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;
std::string format_duration(Duration d);        ///< the largest unit that gives a whole number
std::string format_size(std::uint64_t octets);  ///< the same with KiB, MiB, GiB

/// "a size from 1KiB to 16MiB": what a key expects, for messages.
std::string expected(const Spec& spec);
/// "size", "one of", ...: the kind for the documentation.
std::string_view kind_text(Kind kind) noexcept;
/// "1KiB to 16MiB", "none, full" or "": the range for the documentation.
std::string range_text(const Spec& spec);

/// Stores a number. nullopt on success, otherwise what was expected and found.
std::optional<std::string> assign_number(const Spec& spec, Field field, std::int64_t value);
std::optional<std::string> assign_bool(const Spec& spec, Field field, bool value);
std::optional<std::string> assign_list(const Spec& spec, Field field, std::vector<std::string> value);
/// Stores a quoted string of the file.
std::optional<std::string> assign_string(const Spec& spec, Field field, std::string_view value);
/// Stores what stood behind `--set KEY=`: no quotes, lists separated by commas.
std::optional<std::string> assign_argument(const Spec& spec, Field field, std::string_view value);

/// The value as TOML, or nullopt when an optional one is absent.
std::optional<std::string> toml_text(const Spec& spec, Field field);
/// `text` as a TOML basic string, quotes included.
std::string toml_quoted(std::string_view text);

}  // namespace twp::config
