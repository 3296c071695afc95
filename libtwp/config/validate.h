// What a single value's type and range cannot say: URLs, references, files, values that depend on each other.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace twp::config {

/// `path` names the key ("route[1].cluster", counted from 0); empty: the configuration as a whole.
struct Problem {
  std::string path;
  std::string what;
};

/// Everything that is wrong, in the order of the keys. Looks at files but opens no socket.
std::vector<Problem> validate(const Config& config);

}  // namespace twp::config
