// How a program that listens says that it is ready: one line of JSON, so that scripts never sleep and guess.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace twp::cli {

/// Writes {"program":"twp-origin","pid":123,"listen":["http://127.0.0.1:40123"]} and a line end to descriptor `ready_fd`
/// (and closes it; negative: not asked for) and, with `print`, to standard output.
Result<void> announce(std::string_view program, const std::vector<std::string>& urls, int ready_fd, bool print);

}  // namespace twp::cli
