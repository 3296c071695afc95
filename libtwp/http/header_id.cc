#include "http/header_id.h"

#include <array>
#include <cstddef>

#include "base/ascii.h"

namespace twp {
namespace {

using namespace header_flag;

struct Row {
  std::string_view name;
  std::uint16_t flags;
};

constexpr std::size_t kCount = static_cast<std::size_t>(HeaderId::count_);

constexpr std::array<Row, kCount> kRows{{
    {"", 0},
#define HEADER(id, name, flags) {name, flags},
#include "http/header_id.def"
#undef HEADER
}};

// Open addressing over length, first, last and middle letter: known names differ in these almost always, and
// folding bit 5 makes upper and lower case meet (it merges '-' with nothing else that names use).
constexpr std::size_t kSlots = 512;

constexpr std::size_t slot_of(std::string_view s) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(s[i]) | 0x20u); };
  return (s.size() * 7 + at(0) * 31 + at(s.size() - 1) * 101 + at(s.size() / 2) * 17) % kSlots;
}

consteval std::array<std::uint8_t, kSlots> make_slots() {
  std::array<std::uint8_t, kSlots> t{};
  for (std::size_t i = 1; i < kCount; ++i) {
    std::size_t s = slot_of(kRows[i].name);
    while (t[s] != 0) s = (s + 1) % kSlots;
    t[s] = static_cast<std::uint8_t>(i);
  }
  return t;
}

constexpr std::array<std::uint8_t, kSlots> kTable = make_slots();

}  // namespace

HeaderId header_id(std::string_view name) noexcept {
  if (name.empty()) return HeaderId::other;
  for (std::size_t s = slot_of(name); kTable[s] != 0; s = (s + 1) % kSlots) {
    const std::size_t i = kTable[s];
    if (iequals(name, kRows[i].name)) return static_cast<HeaderId>(i);
  }
  return HeaderId::other;
}

std::string_view header_name(HeaderId id) noexcept { return kRows[static_cast<std::size_t>(id)].name; }
std::uint16_t header_flags(HeaderId id) noexcept { return kRows[static_cast<std::size_t>(id)].flags; }

}  // namespace twp
