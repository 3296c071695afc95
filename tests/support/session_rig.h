// One session over a memory transport with a raw peer, in either role: what does not depend on the version of HTTP.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "http/limits.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {

class SessionRig {
 public:
  explicit SessionRig(const HttpLimits& l) : limits(l) {}
  virtual ~SessionRig() = default;
  SessionRig(const SessionRig&) = delete;
  SessionRig& operator=(const SessionRig&) = delete;

  /// Sends `octets` and lets everything happen that happens without time passing.
  void play(std::string_view octets) {
    peer->send(octets);
    settle();
  }
  void settle() {
    run_quiet(worker);
    collect();
  }
  /// Reads what the peer has got.
  virtual void collect() {}

  Worker worker;
  HttpLimits limits;
  RecordingOwner owner{worker};
  MemoryTransport* transport = nullptr;  ///< the session's; dies with it
  std::unique_ptr<RawPeer> peer;

 protected:
  /// A new connection; the session's end of it.
  std::unique_ptr<Transport> connect(Chop chop) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    transport = ours.get();
    transport->set_chop(std::move(chop));
    peer = std::make_unique<RawPeer>(std::move(theirs));
    return std::move(ours);
  }
};

/// The streams of a client session, opened by the test.
class OpenedStreams {
 public:
  /// A new stream with its recorder; the request is not sent yet. Null when the session has no capacity.
  Recorder* open(Session* session) {
    auto r = std::make_unique<Recorder>();
    Stream* s = session == nullptr ? nullptr : session->open(*r);
    if (s == nullptr) return nullptr;
    r->stream = s;
    return streams.emplace_back(std::move(r)).get();
  }
  Recorder* get(Session* session, std::string_view path, Method method) {
    Recorder* r = open(session);
    if (r != nullptr) r->send_head(Head::request(method, "http", "a.test", path), End::yes);
    return r;
  }

  std::vector<std::unique_ptr<Recorder>> streams;
};

/// `Make` is make_h1_server or make_h2_server; `peer` is the client.
template <auto Make, class Base = SessionRig>
class ServerSideRig : public Base {
 public:
  explicit ServerSideRig(const HttpLimits& l = {}) : Base(l) {}

  void start(Chop chop = whole(), std::string_view first = {}) {
    Chain sniffed;
    sniffed.append_copy(first);
    this->owner.hold(Make(this->worker, this->connect(std::move(chop)), acceptor, this->owner, this->limits,
                          std::move(sniffed)));
  }
  Recorder& stream(std::size_t i = 0) { return *acceptor.streams.at(i); }

  RecordingAcceptor acceptor;
};

/// `Make` is make_h1_client or make_h2_client; `peer` is the origin.
template <auto Make, class Base = SessionRig>
class ClientSideRig : public Base, public OpenedStreams {
 public:
  explicit ClientSideRig(const HttpLimits& l = {}) : Base(l) {}

  void start(Chop chop = whole()) {
    this->owner.hold(Make(this->worker, this->connect(std::move(chop)), this->owner, this->limits));
  }
  Recorder* open() { return OpenedStreams::open(this->owner.session()); }
  Recorder* get(std::string_view path = "/", Method method = Method::get) {
    Recorder* r = OpenedStreams::get(this->owner.session(), path, method);
    this->settle();
    return r;
  }
};

}  // namespace twp::test
