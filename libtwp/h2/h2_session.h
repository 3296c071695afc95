// H2Session: one HTTP/2 connection in either role, RFC 9113.
#pragma once

#include <memory>

#include "event/worker.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/transport.h"

namespace twp {

/// Makes an HTTP/2 session over an open transport (prior knowledge or ALPN "h2"). The session owns the transport
/// and becomes its handler.
///
/// Server role: at most limits.h2_max_streams requests at a time. A malformed request is answered with
/// RST_STREAM, one that passes a limit with info(fault).http_status; both are reported to `acceptor`.
/// `acceptor`, `owner`, `limits` and `worker` outlive the session.
/// `first` holds octets that a sniffer has already read; may be empty.
std::unique_ptr<Session> make_h2_server(Worker& worker, std::unique_ptr<Transport> transport,
                                        Acceptor& acceptor, SessionOwner& owner, const HttpLimits& limits,
                                        Chain first = {});

/// Client role: capacity() is what the origin and limits.h2_max_streams leave. Streams that the origin has
/// provably not processed end with Fault::origin_refused_stream. An extended CONNECT waits for the origin's
/// SETTINGS and ends with Fault::origin_no_tunnel when they do not allow it.
std::unique_ptr<Session> make_h2_client(Worker& worker, std::unique_ptr<Transport> transport,
                                        SessionOwner& owner, const HttpLimits& limits);

}  // namespace twp
