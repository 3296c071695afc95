// What a handshake is made of, whether its octets travel over TCP or in QUIC's packets. Private to tls/.
#pragma once

#include <string>

#include "base/fault.h"
#include "net/transport.h"
#include "tls/context_impl.h"

namespace twp::tls_detail {

/// Client role: whom to ask for, whom to expect, and a session to resume.
struct ServerName {
  const std::string& host;
  const std::string& verify_name;  ///< instead of `host`, when not empty
  const std::string& session_key;
};
/// Sets it all on `ssl` and the connection; returns the name that the certificate must be for.
std::string expect_server(SSL* ssl, Context& context, Connection& connection, const ServerName& name,
                          PeerInfo& peer);

/// Fills in the TLS part of `peer` after the handshake.
void note_peer(SSL* ssl, const Connection& connection, bool server, bool verifies, PeerInfo& peer);

struct Failure {
  Fault fault = Fault::tls_handshake;
  std::string reason;
};
/// What went wrong in a handshake, by OpenSSL's error queue, which is emptied.
Failure explain_failure(SSL* ssl, const Connection& connection, bool server, const std::string& expected);

/// "TLS from 127.0.0.1:1 for a.test", "QUIC with a.test (127.0.0.1:443)".
std::string describe_peer(const char* protocol, const PeerInfo& peer, const Connection& connection,
                          bool server, const std::string& expected);

}  // namespace twp::tls_detail
