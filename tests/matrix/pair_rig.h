// A client, the proxy and an origin in one process on one worker, over loopback sockets: the client dials as the proxy
// dials, the origin is a Front with an acceptor of the test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "matrix/wires.h"
#include "proxy/dialer.h"
#include "proxy/front.h"
#include "proxy/shard.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {

class PairRig final : DialHandler {
 public:
  explicit PairRig(const Pair& p);
  ~PairRig();

  /// A stream to the proxy, on the open session or a new one; waits for the connection.
  Recorder& open();
  /// Sends a whole request with `text` as its body, if any.
  Recorder& request(Method method, std::string_view path, std::string_view text = {});
  Recorder& send(Recorder& r, Method method, std::string_view path, std::string_view text = {});
  bool until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(10)) {
    return run_until(worker, done, limit);
  }
  bool quiet() {
    return until([this] { return shard->counters().exchanges_active == 0; });
  }

  const Pair& pair;
  Worker worker;
  HttpLimits limits;
  RecordingAcceptor origin;          ///< its streams are the requests that reached the origin
  std::unique_ptr<Front> front;
  std::unique_ptr<Shard> shard;
  std::vector<std::unique_ptr<Recorder>> streams;  ///< of the client

 private:
  void on_dialed(Dial& dial, std::unique_ptr<Session> session) noexcept override;
  void on_dial_failed(Dial& dial, Fault fault, const std::string& detail) noexcept override;

  std::unique_ptr<TlsContext> origin_tls_, client_tls_;
  Resolver resolver_;
  DialTarget target_;
  std::unique_ptr<Dial> dial_;
  std::vector<std::unique_ptr<RecordingOwner>> owners_;
  std::string failed_;
};

}  // namespace twp::test
