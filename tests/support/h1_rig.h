// One HTTP/1 session over a memory transport with a raw peer, in either role.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "h1/h1_session.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {

/// A server session; `peer` is the client.
class ServerRig {
 public:
  explicit ServerRig(const HttpLimits& l = {}) : limits(l) {}

  void start(Chop chop = whole(), std::string_view first = {}) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    transport = ours.get();
    transport->set_chop(std::move(chop));
    peer = std::make_unique<RawPeer>(std::move(theirs));
    Chain sniffed;
    sniffed.append_copy(first);
    owner.hold(make_h1_server(worker, std::move(ours), acceptor, owner, limits, std::move(sniffed)));
  }
  /// Sends `octets` and lets everything happen that happens without time passing.
  void play(std::string_view octets) {
    peer->send(octets);
    run_quiet(worker);
  }
  Recorder& stream(std::size_t i = 0) { return *acceptor.streams.at(i); }

  Worker worker;
  HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner owner{worker};
  MemoryTransport* transport = nullptr;  ///< the session's; dies with it
  std::unique_ptr<RawPeer> peer;
};

/// A client session; `peer` is the origin.
class ClientRig {
 public:
  explicit ClientRig(const HttpLimits& l = {}) : limits(l) {}

  void start(Chop chop = whole()) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    transport = ours.get();
    transport->set_chop(std::move(chop));
    peer = std::make_unique<RawPeer>(std::move(theirs));
    owner.hold(make_h1_client(worker, std::move(ours), owner, limits));
  }
  /// A new stream with its recorder; the request is not sent yet. Null when the session has no capacity.
  Recorder* open() {
    auto r = std::make_unique<Recorder>();
    Stream* s = owner.session() == nullptr ? nullptr : owner.session()->open(*r);
    if (s == nullptr) return nullptr;
    r->stream = s;
    return streams.emplace_back(std::move(r)).get();
  }
  Recorder* get(std::string_view path = "/", Method method = Method::get) {
    Recorder* r = open();
    if (r != nullptr) r->send_head(Head::request(method, "http", "a.test", path), End::yes);
    run_quiet(worker);
    return r;
  }
  void play(std::string_view octets) {
    peer->send(octets);
    run_quiet(worker);
  }

  Worker worker;
  HttpLimits limits;
  std::vector<std::unique_ptr<Recorder>> streams;
  RecordingOwner owner{worker};
  MemoryTransport* transport = nullptr;  ///< the session's; dies with it
  std::unique_ptr<RawPeer> peer;
};

}  // namespace twp::test
