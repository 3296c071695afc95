// HTTP/2 sessions over memory transports: one with a raw peer in either role, or both talking to each other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h2/h2_session.h"
#include "support/h2_frames.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {

/// What both raw rigs do with the peer.
class H2RawPeer {
 public:
  /// Sends `octets` and lets everything happen that happens without time passing.
  void play(std::string_view octets) {
    peer->send(octets);
    run_quiet(worker);
    collect();
  }
  void collect() {
    for (h2::Frame& f : reader.read(peer->take())) frames.push_back(std::move(f));
  }
  /// The first frame of `type` (on `stream`, unless it is 0); null when there is none.
  const h2::Frame* find(std::uint8_t type, std::uint32_t stream = 0) const {
    for (const h2::Frame& f : frames)
      if (f.type == type && (stream == 0 || f.stream == stream)) return &f;
    return nullptr;
  }
  /// Error code of the first RST_STREAM of `stream` or, with 0, of the last GOAWAY; -1 when there is none.
  std::int64_t error(std::uint32_t stream) const {
    std::int64_t code = -1;
    for (const h2::Frame& f : frames) {
      if (stream == 0 && f.type == h2::goaway) code = f.u32(4);
      if (stream != 0 && f.type == h2::rst_stream && f.stream == stream) return f.u32(0);
    }
    return code;
  }
  /// All DATA of `stream`.
  std::string body(std::uint32_t stream) const {
    std::string out;
    for (const h2::Frame& f : frames)
      if (f.type == h2::data && f.stream == stream) out += f.payload;
    return out;
  }
  bool ended(std::uint32_t stream) const {
    for (const h2::Frame& f : frames)
      if (f.stream == stream && (f.type == h2::data || f.type == h2::headers) &&
          (f.flags & h2::end_stream) != 0)
        return true;
    return false;
  }
  std::size_t count(std::uint8_t type) const {
    std::size_t n = 0;
    for (const h2::Frame& f : frames) n += f.type == type;
    return n;
  }

  Worker worker;
  HttpLimits limits;
  RecordingOwner owner{worker};
  MemoryTransport* transport = nullptr;  ///< the session's; dies with it
  std::unique_ptr<RawPeer> peer;
  h2::FrameReader reader;
  std::vector<h2::Frame> frames;  ///< everything that came from the session
};

/// A server session; `peer` is the client.
class H2ServerRig : public H2RawPeer {
 public:
  explicit H2ServerRig(const HttpLimits& l = {}) { limits = l; }

  void start(Chop chop = whole(), std::string_view first = {}) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    transport = ours.get();
    transport->set_chop(std::move(chop));
    peer = std::make_unique<RawPeer>(std::move(theirs));
    Chain sniffed;
    sniffed.append_copy(first);
    owner.hold(make_h2_server(worker, std::move(ours), acceptor, owner, limits, std::move(sniffed)));
  }
  /// Starts, says hello with `settings` and acknowledges the server's.
  void greet(std::string_view settings = {}) {
    start();
    play(h2::hello(settings) + h2::frame(h2::settings, h2::ack, 0));
  }
  Recorder& stream(std::size_t i = 0) { return *acceptor.streams.at(i); }

  RecordingAcceptor acceptor;
};

/// A client session; `peer` is the origin.
class H2ClientRig : public H2RawPeer {
 public:
  explicit H2ClientRig(const HttpLimits& l = {}) { limits = l; }

  void start(Chop chop = whole()) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    transport = ours.get();
    transport->set_chop(std::move(chop));
    peer = std::make_unique<RawPeer>(std::move(theirs));
    reader.expect_preface();
    owner.hold(make_h2_client(worker, std::move(ours), owner, limits));
  }
  void greet(std::string_view settings = {}) {
    start();
    play(h2::frame(h2::settings, h2::none, 0, settings) + h2::frame(h2::settings, h2::ack, 0));
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
    collect();
    return r;
  }

  std::vector<std::unique_ptr<Recorder>> streams;
};

/// A client and a server session that talk to each other.
class H2PairRig {
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
  }
  Recorder* open() {
    if (client_owner.session() == nullptr) return nullptr;
    auto r = std::make_unique<Recorder>();
    Stream* s = client->open(*r);
    if (s == nullptr) return nullptr;
    r->stream = s;
    return streams.emplace_back(std::move(r)).get();
  }
  Recorder* get(std::string_view path = "/", Method method = Method::get) {
    Recorder* r = open();
    if (r != nullptr) r->send_head(Head::request(method, "http", "a.test", path), End::yes);
    return r;
  }

  Worker worker;
  HttpLimits limits;
  std::vector<std::unique_ptr<Recorder>> streams;
  RecordingAcceptor acceptor;
  RecordingOwner client_owner{worker}, server_owner{worker};
  MemoryTransport* client_transport = nullptr;
  MemoryTransport* server_transport = nullptr;
  Session* client = nullptr;
  Session* server = nullptr;
};

}  // namespace twp::test
