// HTTP/2 sessions over memory transports: one with a raw peer in either role, or both talking to each other.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "h2/h2_session.h"
#include "support/h2_frames.h"
#include "support/session_rig.h"

namespace twp::test {

/// The peer reads frames; those of the session are kept.
class H2RawPeer : public SessionRig, public h2::FrameLog {
 public:
  using SessionRig::SessionRig;
  void collect() override { take(peer->take()); }
};

/// A server session; `peer` is the client.
class H2ServerRig : public ServerSideRig<&make_h2_server, H2RawPeer> {
 public:
  using ServerSideRig::ServerSideRig;

  /// Starts, says hello with `settings` and acknowledges the server's.
  void greet(std::string_view settings = {}) {
    start();
    play(h2::hello(settings) + h2::frame(h2::settings, h2::ack, 0));
  }
};

/// A client session; `peer` is the origin.
class H2ClientRig : public ClientSideRig<&make_h2_client, H2RawPeer> {
 public:
  explicit H2ClientRig(const HttpLimits& l = {}) : ClientSideRig(l) { reader.expect_preface(); }

  void greet(std::string_view settings = {}) {
    start();
    play(h2::frame(h2::settings, h2::none, 0, settings) + h2::frame(h2::settings, h2::ack, 0));
  }
};

/// A client and a server session that talk to each other.
class H2PairRig : public OpenedStreams {
 public:
  explicit H2PairRig(const HttpLimits& l = {}) : limits(l) {}

  void start(Chop chop_a = whole(), Chop chop_b = whole()) {
    auto [a, b] = MemoryTransport::make_pair(worker);
    client_transport = a.get();
    server_transport = b.get();
    a->set_chop(std::move(chop_a));
    b->set_chop(std::move(chop_b));
    client = client_owner.hold(make_h2_client(worker, std::move(a), client_owner, limits));
    server = server_owner.hold(make_h2_server(worker, std::move(b), acceptor, server_owner, limits));
    run_quiet(worker);  // both have the other's SETTINGS, so there may be more than one stream
  }
  Recorder* open() { return OpenedStreams::open(client_owner.session()); }
  Recorder* get(std::string_view path = "/", Method method = Method::get) {
    return OpenedStreams::get(client_owner.session(), path, method);
  }

  Worker worker;
  HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner client_owner{worker}, server_owner{worker};
  MemoryTransport* client_transport = nullptr;
  MemoryTransport* server_transport = nullptr;
  Session* client = nullptr;
  Session* server = nullptr;
};

}  // namespace twp::test
