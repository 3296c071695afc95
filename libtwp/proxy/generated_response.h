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

/// The answer to `request`, which failed with `why`, whose row in fault.def has a status. Says which status and which kind
/// of failure (Proxy-Status, RFC 9209), never anything about the origin. A gRPC request gets what its client understands:
/// 200 with grpc-status and grpc-message and nothing behind the head ("Trailers-Only").
GeneratedResponse generate_response(Fault why, const Head& request);

/// The code that a gRPC client is told for `why`. As the mapping of HTTP statuses that gRPC defines for clients
/// (doc/http-grpc-status-mapping.md), but where the proxy knows better than a status says: a limit is
/// RESOURCE_EXHAUSTED, a time that ran out DEADLINE_EXCEEDED.
unsigned grpc_status(Fault why) noexcept;

/// The error type of RFC 9209 §2.3 that fits `why` best.
std::string_view proxy_error_type(Fault why) noexcept;

}  // namespace twp
