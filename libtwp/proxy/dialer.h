// Dialer: from an origin's name to an open Session. With front.h the only place that names protocols together.
#pragma once

#include <memory>
#include <string>

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
  std::string http = "h1";          ///< protocol of the session: "h1" (later "h2", "h3", "auto")
  TlsContext* tls_context = nullptr;  ///< of this worker; needed when tls
  std::string sni;                  ///< empty: host
  std::string verify_name;          ///< empty: host
  TcpOptions tcp;
  Duration connect_timeout = std::chrono::seconds(5);  ///< name resolution, TCP and TLS together
  const HttpLimits* limits = nullptr;
};

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
