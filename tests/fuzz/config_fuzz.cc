// Configuration files and KEY=VALUE overrides. Oracle: every complaint has its place, and what is accepted comes out the same
// when written and read again.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/load.h"
#include "config/save.h"
#include "config/validate.h"

namespace {

using namespace twp::config;

/// "f:LINE:COLUMN: ".
bool has_place(std::string_view error) {
  if (!error.starts_with("f:")) return false;
  error.remove_prefix(2);
  for (int part = 0; part < 2; ++part) {
    const auto digits = error.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos || error[digits] != ':') return false;
    error.remove_prefix(digits + 1);
  }
  return error.starts_with(" ") && error.size() > 1;
}

void law(const Config& config) {
  const Loaded again = load_text(save(config), "f");
  if (!again.ok() || !(again.config == config)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Loaded loaded = load_text(text, "f");
  for (const std::string& error : loaded.errors)
    if (!has_place(error)) std::abort();
  if (!loaded.ok()) {
    // Every line as an override, over what a valid file would give.
    loaded = load_text("[[listener]]\nurl = 'http://127.0.0.1:0'\n[[cluster]]\nname = 'a'\norigin = [{url = 'http://127.0.0.1:1'}]\n"
                       "[[route]]\ncluster = 'a'\n", "f");
    if (!loaded.ok()) std::abort();
    for (std::string_view rest = text; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      (void)set(loaded.config, line);
    }
    if (!validate(loaded.config).empty()) return 0;
  }
  law(loaded.config);
  return 0;
}
