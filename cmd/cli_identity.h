// Certificates that a program issues to itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "certs/authority.h"
#include "tls/tls_context.h"

namespace twp::cli {

/// A leaf for `names` (DNS names and IP addresses, at least one), signed by `ca` and kept in memory only. `dir` is where
/// the CA is, for messages.
Result<std::shared_ptr<const TlsIdentity>> issue_identity(const certs::Authority& ca,
                                                          const std::vector<std::string>& names,
                                                          const std::string& dir);

}  // namespace twp::cli
