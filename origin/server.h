// Server: the origin's listeners on all its workers, from start to drain.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/url.h"
#include "net/address.h"
#include "proxy/front.h"
#include "tls/tls_context.h"

namespace twp::origin {

struct ServerOptions {
  std::vector<config::Url> listen;                              ///< at least one
  std::vector<std::shared_ptr<const TlsIdentity>> identities;   ///< needed when one of `listen` is https
  unsigned threads = 1;                                         ///< workers, each with its own listeners
  HttpVersions versions;                                        ///< of HTTP that every listener speaks
  std::string congestion;                                       ///< TCP_CONGESTION; empty: the system's
  Duration drain_timeout = std::chrono::seconds(30);
  std::string key_log_file;                                     ///< TLS secrets, NSS format; empty: none
};

class Server {
 public:
  /// Opens every listener and takes SIGINT and SIGTERM. Error: one line, as of Listener::open; also when another process
  /// has the address already.
  static Result<std::unique_ptr<Server>> open(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Where it listens, in the order asked, with the real ports: "http://127.0.0.1:40123".
  const std::vector<std::string>& urls() const noexcept { return urls_; }
  /// Serves on `threads` threads, this one among them, until SIGINT or SIGTERM and the drain that follows: what is in
  /// flight is finished, at most for drain_timeout. A second signal ends everything at once.
  void run();

 private:
  struct Shard;
  Server();
  Result<void> open_shard(const ServerOptions& options, const TlsTicketKeys& tickets);
  void on_signal();

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Address> addresses_;
  std::vector<std::string> urls_;
  Duration drain_timeout_{};
  unsigned signals_ = 0;
};

}  // namespace twp::origin
