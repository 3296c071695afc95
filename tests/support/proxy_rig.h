// A real proxy (Shard) with a raw origin and raw clients, all on one worker over loopback sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "net/listener.h"
#include "proxy/shard.h"
#include "support/memory_transport.h"

namespace twp::test {

/// Keeps every octet that comes on every connection, and answers as told.
class RawOrigin final : ListenHandler {
 public:
  explicit RawOrigin(Worker& worker);

  std::uint16_t port() const noexcept { return listener_->address().port(); }
  std::vector<std::unique_ptr<RawPeer>> connections;
  /// After something came on a connection; `i` counts connections from 0.
  std::function<void(RawPeer&, std::size_t i)> on_input;
  /// Answers each complete bodyless head on any connection with the next of these octets, then with the last one again.
  void answer_with(std::vector<std::string> answers);
  std::string got() const;  ///< of all connections together

 private:
  void on_accept(std::unique_ptr<TcpTransport> transport) noexcept override;

  std::unique_ptr<Listener> listener_;
};

class ProxyRig {
 public:
  ProxyRig();
  /// One listener, one cluster, one route; `change` edits them before the shard opens.
  void start(const std::function<void(config::Config&)>& change = {});
  /// A new connection to the first listener.
  RawPeer& connect();
  /// A new connection that sends `octets`.
  RawPeer& client(std::string_view octets);
  bool until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(5)) {
    return run_until(worker, done, limit);
  }

  Worker worker;
  RawOrigin origin{worker};
  std::unique_ptr<Shard> shard;
  std::vector<std::unique_ptr<RawPeer>> clients;
};

/// What an origin that reads strictly makes of `octets`: "nothing", "one" complete and unambiguous request, "cut" (the
/// beginning of one), or what is wrong. Written without the code under test.
std::string strict_view(std::string_view octets);

}  // namespace twp::test
