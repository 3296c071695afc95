// Responses that the proxy makes itself when there is none to pass on.
#pragma once

#include <string_view>

#include "base/fault.h"
#include "http/head.h"

namespace twp {

struct GeneratedResponse {
  Head head;
  std::string_view body;  ///< static text; empty for HEAD
};

/// The answer to a request by `method` that failed with `why`, whose row in fault.def has a status. Says which
/// status and which kind of failure (Proxy-Status, RFC 9209), never anything about the origin.
GeneratedResponse generate_response(Fault why, Method method);

/// The error type of RFC 9209 §2.3 that fits `why` best.
std::string_view proxy_error_type(Fault why) noexcept;

}  // namespace twp
