// Runs the tools of trust stores: certutil, keytool, update-ca-certificates.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace twp::certs {

struct CommandOutput {
  int status = 0;    ///< exit status; 128 + signal number when a signal ended it
  std::string text;  ///< standard output and standard error together, at most 64 KiB
  /// The last line that is not empty: where these tools put their complaint.
  std::string last_line() const;
};

/// Runs argv[0] (a path) and waits for it. Its standard input is empty, so it fails rather than asks for a
/// password. Blocks: never on an event loop. An error only when it cannot be started.
Result<CommandOutput> run(const std::vector<std::string>& argv);

/// The path of a program in $PATH, /usr/sbin or /sbin (an ordinary user's PATH often lacks these); empty
/// when there is none.
std::string find_program(const std::string& name);

}  // namespace twp::certs
