// Telling a script that a program is ready and where it listens: --ready-fd N and --print-listen.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace twp::cli {

struct Ready {
  std::vector<std::string> listen;  ///< URLs with the real ports
  std::string admin;                ///< URL; empty: none
};

/// {"ready":true,"listen":["http://127.0.0.1:12345"],"admin":null,"pid":77}
std::string ready_line(const Ready& ready);

/// Writes ready_line() and a newline to `fd` (-1: not), closing it unless it is 0, 1 or 2, and to standard
/// output with `print`. Fails when a write does, so that nobody waits for a line that never comes.
Result<void> announce(const Ready& ready, int fd, bool print);

/// An error when `fd` (from --ready-fd) is not open for writing. -1 is fine.
Result<void> check_ready_fd(int fd);

}  // namespace twp::cli
