// H1Session: one HTTP/1.1 (or 1.0) connection in either role, RFC 9112.
#pragma once

#include <memory>

#include "event/worker.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/transport.h"

namespace twp {

/// Makes an HTTP/1 session over an open transport. The session owns the transport and becomes its handler.
///
/// Server role: requests are answered in order; while one is in progress the octets of later ones wait unread
/// (bounded by limits.max_head). A malformed request is answered with info(fault).http_status and
/// `Connection: close`, then the connection lingers until the client has seen it.
/// `acceptor`, `owner`, `limits` and `worker` outlive the session.
/// `first` holds octets that a sniffer has already read; may be empty.
std::unique_ptr<Session> make_h1_server(Worker& worker, std::unique_ptr<Transport> transport, Acceptor& acceptor,
                                        SessionOwner& owner, const HttpLimits& limits, Chain first = {});

/// Client role: one request at a time; capacity() is 1 when idle and reusable, else 0.
std::unique_ptr<Session> make_h1_client(Worker& worker, std::unique_ptr<Transport> transport, SessionOwner& owner,
                                        const HttpLimits& limits);

}  // namespace twp
