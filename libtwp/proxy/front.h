// Front: a listener with its sessions on one worker. With dialer.h the only place that names protocols together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/worker.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/listener.h"
#include "tls/tls_context.h"

namespace twp {

/// The versions of HTTP that a listener speaks; at least one.
struct HttpVersions {
  bool http1 = true;
  bool http2 = true;
};

struct FrontOptions {
  Address at;
  ListenOptions listen;
  Duration handshake_timeout = std::chrono::seconds(10);
  HttpVersions versions;            ///< of cleartext; over TLS the context's ALPN decides, and for who sends none this
  std::size_t max_connections = 0;  ///< on this worker; 0: no limit of our own
  std::string_view limit_name = "limits.max_connections";  ///< what a refusal's log line calls that limit; static text
};

/// Since open().
struct FrontStats {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;             ///< at max_connections
  std::uint64_t handshake_failures = 0;
  std::size_t open = 0;                  ///< connections now, handshakes included
};

/// What a TLS listener offers by ALPN, in its order of preference. An HTTP/1.0 client has an id of its own (RFC 7301 §6).
std::vector<std::string> server_alpn(HttpVersions versions);

/// Accepts connections, handshakes TLS, makes the right server session for each and hands its streams to the
/// Acceptor. Owns its sessions. Over TLS the protocol is the one that ALPN chose; in cleartext it is told from the first
/// octets, so that HTTP/1 and HTTP/2 with prior knowledge (RFC 9113 §3.3) share a port. There, what is no HTTP/2 is HTTP/1
/// and refused in its words; a front of HTTP/2 alone takes it for a broken preface.
class Front {
 public:
  /// `tls` null: cleartext. `acceptor`, `limits` and `*tls` outlive the front.
  static Result<std::unique_ptr<Front>> open(Worker& worker, const FrontOptions& options, TlsContext* tls,
                                             Acceptor& acceptor, const HttpLimits& limits);
  virtual ~Front() = default;

  virtual const Address& address() const noexcept = 0;
  /// New connections use this context from now on (certificate reload); the old one must live until sessions
  /// made with it are gone.
  virtual void set_tls(TlsContext* tls) noexcept = 0;
  /// The same for FrontOptions::versions.
  virtual void set_versions(HttpVersions versions) noexcept = 0;
  /// Stops accepting, lets sessions finish what is in flight, closes idle ones.
  virtual void drain() noexcept = 0;
  /// Ends every session now.
  virtual void close() noexcept = 0;
  /// Open connections, handshakes included.
  virtual std::size_t connections() const noexcept = 0;
  virtual const FrontStats& stats() const noexcept = 0;
  /// New connections get `tls`, or an open one was made with it. Looks at every connection.
  virtual bool uses(const TlsContext& tls) const noexcept = 0;
};

}  // namespace twp
