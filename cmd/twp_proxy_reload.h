// twp-proxy reload: SIGHUP to a running twp-proxy, and to nothing else.
#pragma once

#include <string>

#include "base/result.h"

namespace twp::cli {

struct ReloadArguments {
  std::string pid;  ///< as typed
  std::string pid_file;
};

/// Errors: no such process (1), not a twp-proxy (1), neither or a bad process id (2, as bad_config).
Result<void> reload(const ReloadArguments& a);

}  // namespace twp::cli
