// Dialer: from an origin's name to an open Session. With front.h the only place that names protocols together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "event/worker.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/resolver.h"
#include "net/tcp_transport.h"
#include "tls/tls_context.h"

namespace twp {

/// Where and how to connect. Outlives every dial made from it.
struct DialTarget {
  std::string host;                 ///< name or IP literal without brackets
  std::uint16_t port = 0;
  bool tls = false;
  /// Protocol of the session: "h1", "h2", or "auto" (what ALPN chooses; without TLS or without ALPN HTTP/1). "h2" without
  /// TLS is prior knowledge (RFC 9113 §3.3); with TLS an origin that does not choose it fails the dial.
  std::string http = "h1";
  TlsContext* tls_context = nullptr;  ///< of this worker; needed when tls; offers client_alpn(http)
  std::string sni;                  ///< empty: host
  std::string verify_name;          ///< empty: host
  TcpOptions tcp;
  Duration connect_timeout = std::chrono::seconds(5);  ///< name resolution, TCP and TLS together
  const HttpLimits* limits = nullptr;
};

/// What a client offers by ALPN to speak `http`, in its order of preference.
std::vector<std::string> client_alpn(std::string_view http);

/// So many streams one connection to `target` may be expected to carry before the first one has told.
unsigned expected_streams(const DialTarget& target) noexcept;

class Dial;

class DialHandler {
 public:
  /// `session` is open and idle. The dial is over.
  virtual void on_dialed(Dial& dial, std::unique_ptr<Session> session) noexcept = 0;
  /// All addresses failed or the time is up. `detail` is one line for the log.
  virtual void on_dial_failed(Dial& dial, Fault fault, const std::string& detail) noexcept = 0;

 protected:
  ~DialHandler() = default;
};

/// One attempt: resolve, connect (next address on failure), handshake, make the session. Owned by its starter,
/// who retires it after the callback; destroying it cancels.
class Dial {
 public:
  /// Never calls back from inside start().
  static std::unique_ptr<Dial> start(Worker& worker, Resolver& resolver, const DialTarget& target, SessionOwner& owner,
                                     DialHandler& handler);
  virtual ~Dial() = default;
};

}  // namespace twp
