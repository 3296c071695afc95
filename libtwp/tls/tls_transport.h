// TlsTransport: TLS 1.2/1.3 over another Transport.
#pragma once

#include <memory>
#include <string>

#include "event/worker.h"
#include "net/transport.h"
#include "tls/tls_context.h"

namespace twp {

/// Server role over an open transport; on_open() after the handshake. `context` outlives the transport.
/// `handshake_timeout` bounds accept to on_open.
std::unique_ptr<Transport> make_tls_server(Worker& worker, std::unique_ptr<Transport> lower, TlsContext& context,
                                           Duration handshake_timeout);

/// Client role over a transport that may still be connecting. `host` is sent as SNI (never an IP, RFC 6066 §3)
/// and checked against the certificate (DNS name or IP SAN); `verify_name` replaces it for the check when not
/// empty (pinned name). `session_key` names the cache slot for resumption ("host:port").
std::unique_ptr<Transport> make_tls_client(Worker& worker, std::unique_ptr<Transport> lower, TlsContext& context,
                                           const std::string& host, const std::string& verify_name,
                                           const std::string& session_key);

}  // namespace twp
