// HeaderBlock against a plain list of pairs, under random additions, removals, replacements and lookups.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "http/header_block.h"
#include "http/head.h"

namespace {

using twp::HeaderBlock;
using twp::HeaderId;

using Model = std::vector<std::pair<std::string, std::string>>;

void check(const HeaderBlock& block, const Model& model) {
  if (block.size() != model.size()) std::abort();
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (block[i].name != model[i].first || block[i].value != model[i].second) std::abort();
    if (block[i].id != twp::header_id(model[i].first)) std::abort();
    if (!block.has(block[i].id)) std::abort();
  }
  for (unsigned id = 1; id < static_cast<unsigned>(HeaderId::count_); ++id) {
    bool present = false;
    for (const auto& [name, value] : model) present |= twp::header_id(name) == static_cast<HeaderId>(id);
    if (block.has(static_cast<HeaderId>(id)) != present) std::abort();
    if ((block.find(static_cast<HeaderId>(id)) != HeaderBlock::npos) != present) std::abort();
  }
}

std::string name_from(std::uint8_t octet) {
  static constexpr const char* kOther[] = {"x-a", "X-A", "x-b", "accept-", "ho", "zz", "Hos", "x"};
  if (octet >= 120) return kOther[octet % 8];
  std::string name(twp::header_name(static_cast<HeaderId>(1 + octet % (static_cast<unsigned>(HeaderId::count_) - 1))));
  if (octet % 3 == 0) name[0] = static_cast<char>(name[0] & ~0x20);
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  HeaderBlock block;
  Model model;
  const auto same = [](const std::string& a, std::string_view b) { return twp::iequals(a, b); };
  for (std::size_t i = 0; i + 2 < size && i < 900; i += 3) {
    const std::string name = name_from(data[i + 1]);
    const std::string value(data[i + 2] % 40, static_cast<char>('a' + data[i + 2] % 26));
    switch (data[i] % 6) {
      case 0:
      case 1:
        block.add(name, value);
        model.emplace_back(name, value);
        break;
      case 2: {
        const std::size_t n = block.remove(name);
        if (n != std::erase_if(model, [&](const auto& p) { return same(p.first, name); })) std::abort();
        break;
      }
      case 3: {
        block.set(name, value);
        bool found = false;
        std::erase_if(model, [&](auto& p) {
          if (!same(p.first, name)) return false;
          if (found) return true;
          found = true;
          p.second = value;
          return false;
        });
        if (!found) model.emplace_back(name, value);
        break;
      }
      case 4: {
        HeaderBlock copy = block.clone();
        block = std::move(copy);
        break;
      }
      case 5: {
        std::string want;
        bool found = false;
        for (const auto& [n, v] : model) {
          if (found || !same(n, name)) continue;
          want = v;
          found = true;
        }
        if (block.get(name) != want || (block.find(name) != HeaderBlock::npos) != found) std::abort();
      }
    }
    check(block, model);
  }
  twp::join_cookies(block);
  if (block.find(HeaderId::cookie) != HeaderBlock::npos && block.find(HeaderId::cookie, block.find(HeaderId::cookie) + 1) != HeaderBlock::npos)
    std::abort();
  twp::remove_hop_by_hop(block);
  for (const twp::Field& f : block)
    if (f.id != HeaderId::te && (twp::header_flags(f.id) & twp::header_flag::hop) != 0) std::abort();
  return 0;
}
