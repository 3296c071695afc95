#include "cmd/cli_version.h"

#include <algorithm>

#include "twp_build_info.h"

namespace twp::cli {

std::string version_text(std::string_view program, std::initializer_list<std::string_view> libraries) {
  std::string picked;
  const std::string_view all = kLibraries;  // "crypto 3.5.9, event 2.1.13"
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t comma = std::min(all.find(", ", at), all.size());
    const std::string_view entry = all.substr(at, comma - at);
    const std::string_view name = entry.substr(0, entry.find(' '));
    if (libraries.size() == 0 || std::ranges::find(libraries, name) != libraries.end()) {
      picked += (picked.empty() ? "" : ", ") + std::string(entry);
    }
    at = comma + 2;
  }
  return std::string(program) + " " + kVersion + " (" + kCommit + ", " + kBuild + ")\nwith " + picked;
}

}  // namespace twp::cli
