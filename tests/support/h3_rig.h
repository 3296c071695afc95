// HTTP/3 sessions over a LossyLink: a client and a server that talk to each other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h3/h3_session.h"
#include "support/quic_rig.h"
#include "support/recorder.h"
#include "support/test_pki.h"
#include "tls/tls_context.h"

namespace twp::test {

/// The contexts of both sides; the server's certificate is for a.test.
struct H3Tls {
  explicit H3Tls(std::vector<std::string> server_alpn = {"h3"});
  std::unique_ptr<TlsContext> server, client;
};

class H3PairRig : H3Opening {
 public:
  explicit H3PairRig(const HttpLimits& l = {}, std::uint64_t seed = 1, const char* server_ip = "192.0.2.1");
  virtual ~H3PairRig() = default;

  /// Connects; the handshake has not happened yet.
  void start(
      QuicTarget target = {
          .host = "a.test", .verify_name = {}, .session_key = "a.test:443", .token = {}, .version = 1});
  /// Connects and waits for the handshake.
  bool open_up() {
    start();
    return world.until([this] { return opened; });
  }
  Recorder* open();
  Recorder* get(std::string_view path = "/", Method method = Method::get);
  /// A request with `text` as its body.
  Recorder* post(std::string_view path, std::string_view text);
  Recorder& at_server(std::size_t i = 0) { return *acceptor.streams.at(i); }
  bool until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(60)) {
    return world.until(done, limit);
  }

  QuicWorld world;
  HttpLimits limits;
  H3Tls tls;
  QuicEnd client_end, server_end;
  RecordingAcceptor acceptor;
  RecordingOwner client_owner{world.worker}, server_owner{world.worker};
  Session* client = nullptr;
  Session* server = nullptr;
  QuicConnection* client_conn = nullptr;  ///< dies with its session
  QuicConnection* server_conn = nullptr;
  std::vector<std::unique_ptr<Recorder>> streams;
  bool opened = false;
  bool open_failed = false;
  Fault open_fault = Fault::none;
  std::string open_detail;

 private:
  void on_h3_open(Session&) noexcept override { opened = true; }
  void on_h3_open_failed(Session&, Fault why, const std::string& detail) noexcept override;
  QuicConnection* accept(const QuicInitial& initial, const QuicPath& path);
};

}  // namespace twp::test
