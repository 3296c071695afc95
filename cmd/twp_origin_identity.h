// The certificate that twp-origin shows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/url.h"
#include "tls/tls_context.h"

namespace twp::origin_cli {

/// A leaf for every host that is listened on, with localhost and the loopback addresses, signed by the CA in `dir`
/// (made when there is none) and kept in memory only.
Result<std::shared_ptr<const TlsIdentity>> identity_from_ca(const std::string& dir, const std::vector<config::Url>& listen);

}  // namespace twp::origin_cli
