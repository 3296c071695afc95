// Telling a script that a program is ready and where it listens, so that it never sleeps and guesses: --ready-fd N
// and --print-listen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace twp::cli {

struct Ready {
  std::string program;
  std::vector<std::string> listen;   ///< URLs with the real ports
  std::optional<std::string> admin;  ///< URL, empty: off; absent: the program has none
};

/// {"ready":true,"program":"twp-proxy","listen":["http://127.0.0.1:12345"],"admin":null,"pid":77}
std::string ready_line(const Ready& ready);

/// Writes ready_line() and a newline to `ready_fd` (-1: not), closing it unless it is 0, 1 or 2, and to standard
/// output with `print`. Fails when a write does, so that nobody waits for a line that never comes.
Result<void> announce(const Ready& ready, int ready_fd, bool print);

/// The same for a program without an admin listener.
inline Result<void> announce(std::string_view program, const std::vector<std::string>& urls, int ready_fd, bool print) {
  return announce({std::string(program), urls, std::nullopt}, ready_fd, print);
}

/// An error when `ready_fd` is not open for writing. -1 is fine.
Result<void> check_ready_fd(int ready_fd);

}  // namespace twp::cli
