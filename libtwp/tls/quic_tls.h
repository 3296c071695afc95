// QuicTls: the TLS half of one QUIC connection (RFC 9001). It checks, names and resumes as TlsTransport does; the octets
// travel in QUIC's CRYPTO frames, which is the business of whoever drives native().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fault.h"
#include "net/transport.h"
#include "tls/tls_context.h"

typedef struct ssl_st SSL;

namespace twp {

class QuicTls {
 public:
  struct Failure {
    Fault fault = Fault::tls_handshake;
    std::string detail;  ///< one line for the log: with whom, and why not
  };

  /// Server role. `version` is the QUIC version of the client's first packet: a ticket is only good for the version it was
  /// got with (RFC 9369 §5). `context` outlives the object; its ALPN must be "h3" and nothing else. Null: no memory.
  static std::unique_ptr<QuicTls> server(TlsContext& context, std::uint32_t version);
  /// Client role; the names are those of make_tls_client.
  static std::unique_ptr<QuicTls> client(TlsContext& context, std::uint32_t version, const std::string& host,
                                         const std::string& verify_name, const std::string& session_key);
  virtual ~QuicTls() = default;

  virtual SSL* native() noexcept = 0;
  /// Server role: the version that was agreed on, before a ticket is made.
  virtual void negotiated(std::uint32_t version) noexcept = 0;
  /// After the handshake: the TLS part of `peer`.
  virtual void fill(PeerInfo& peer) = 0;
  /// After a handshake that failed, before another one is driven on this thread.
  virtual Failure failure(const PeerInfo& peer) = 0;
  /// "QUIC from 127.0.0.1:4000 for a.test", for log lines.
  virtual std::string whom(const PeerInfo& peer) const = 0;
};

}  // namespace twp
