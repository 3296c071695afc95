// The other end of an HTTP/3 connection as plain octets on streams: a peer that may do whatever it likes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/h3_rig.h"

namespace twp::test::h3 {

/// A QUIC variable-length integer (RFC 9000 §16), in as few octets as it takes.
std::string varint(std::uint64_t v);
/// A frame (RFC 9114 §7.1).
std::string frame(std::uint64_t type, std::string_view payload);
inline constexpr std::uint64_t kData = 0, kHeaders = 1, kCancelPush = 3, kSettings = 4, kPushPromise = 5,
                               kGoaway = 7, kMaxPushId = 13;

using Lines = std::vector<std::pair<std::string_view, std::string_view>>;
/// A field section of literals that needs no table (RFC 9204 §4.5.6).
std::string section(const Lines& lines);
inline std::string headers(const Lines& lines) { return frame(kHeaders, section(lines)); }
inline Lines request(std::string_view path = "/", std::string_view method = "GET") {
  return {{":method", method}, {":scheme", "https"}, {":authority", "a.test"}, {":path", path}};
}
inline Lines with(Lines lines, std::string_view name, std::string_view value) {
  lines.emplace_back(name, value);
  return lines;
}

class RawPeer final : QuicEvents, QuicOutput {
 public:
  /// Sends `octets` on a stream, and its end.
  void send(std::int64_t id, std::string octets, bool fin = false);
  /// A new stream with these octets.
  std::int64_t open(bool bidirectional, std::string octets, bool fin = false);
  /// The control stream with SETTINGS of that payload.
  void greet(std::string_view settings = {});

  std::unique_ptr<QuicConnection> conn;
  std::map<std::int64_t, std::string> in;  ///< what came, by stream
  std::map<std::int64_t, bool> ended;
  std::map<std::int64_t, std::uint64_t> resets;  ///< codes of RESET_STREAM
  std::map<std::int64_t, bool> stops;            ///< STOP_SENDING was noticed
  std::int64_t control = -1;
  bool open_for_business = false;
  bool over = false;
  Fault fault = Fault::none;
  std::string detail;
  bool credit = true;  ///< let the peer send more when something came

  void take(std::unique_ptr<QuicConnection> c) {
    conn = std::move(c);
    conn->attach(*this, *this);
  }
  /// Code of the CONNECTION_CLOSE that came, out of `detail`: "0x105"; empty: none.
  std::string close_code() const;

 private:
  struct Out {
    std::deque<std::string> pieces;  // stay in place
    std::size_t next = 0;
    std::size_t at = 0;
    bool fin = false, fin_sent = false, stuck = false;
  };

  void on_keys() noexcept override {}
  void on_open() noexcept override { open_for_business = true; }
  void on_data(std::int64_t id, std::span<const std::byte> octets, bool fin) noexcept override;
  void on_reset(std::int64_t id, std::uint64_t code) noexcept override { resets[id] = code; }
  void on_closed(std::int64_t, std::optional<std::uint64_t>) noexcept override {}
  void on_more_streams() noexcept override {}
  void on_input_over() noexcept override {}
  void on_over(Fault why, const std::string& text) noexcept override;
  void on_flush() noexcept override {}
  Piece next() noexcept override;
  void wrote(std::int64_t id, std::size_t n) noexcept override;
  void blocked(std::int64_t id) noexcept override { out_[id].stuck = true; }
  void unblocked(std::int64_t id) noexcept override { out_[id].stuck = false; }
  void stopped(std::int64_t id) noexcept override;
  void acked(std::int64_t, std::uint64_t) noexcept override {}
  void on_flushed() noexcept override {}

  std::map<std::int64_t, Out> out_;
  iovec piece_{};
};

/// A server session with a raw client.
class H3ServerRig {
 public:
  explicit H3ServerRig(const HttpLimits& l = {})
      : limits(l), client_end(world, "192.0.2.2", 40000, false), server_end(world, "192.0.2.1", 443, true) {
    Conditions c;
    c.delay = std::chrono::milliseconds(2);
    world.link.both_ways(c);
    server_end.on_initial = [this](const QuicInitial& i, const QuicPath& p) -> QuicConnection* {
      if (owner.session() != nullptr) return nullptr;
      auto made =
          QuicConnection::accept(world.worker, server_end, *tls.server, h3_quic_settings(limits), i, p);
      conn = made.get();
      owner.hold(make_h3_server(world.worker, std::move(made), acceptor, owner, limits));
      return conn;
    };
  }
  bool start() {
    peer.take(QuicConnection::connect(world.worker, client_end, *tls.client, {}, {"a.test", {}, "k", {}, 1},
                                      {client_end.address, server_end.address}));
    return until([this] { return peer.open_for_business; });
  }
  bool greet() {
    if (!start()) return false;
    peer.greet();
    return quiet();
  }
  /// A request of these octets, and its end.
  std::int64_t ask(std::string octets, bool fin = true) {
    const std::int64_t id = peer.open(true, std::move(octets), fin);
    quiet();
    return id;
  }
  bool quiet() {
    world.pass(std::chrono::milliseconds(200));
    return true;
  }
  bool until(const std::function<bool()>& done) { return world.until(done); }

  QuicWorld world;
  HttpLimits limits;
  H3Tls tls;
  QuicEnd client_end, server_end;
  RecordingAcceptor acceptor;
  RecordingOwner owner{world.worker};
  QuicConnection* conn = nullptr;  ///< the session's
  RawPeer peer;
};

/// A client session with a raw origin.
class H3ClientRig final : H3Opening {
 public:
  explicit H3ClientRig(const HttpLimits& l = {})
      : limits(l), client_end(world, "192.0.2.2", 40000, false), server_end(world, "192.0.2.1", 443, true) {
    Conditions c;
    c.delay = std::chrono::milliseconds(2);
    world.link.both_ways(c);
    server_end.on_initial = [this](const QuicInitial& i, const QuicPath& p) -> QuicConnection* {
      if (peer.conn != nullptr) return nullptr;
      peer.take(QuicConnection::accept(world.worker, server_end, *tls.server, server_settings, i, p));
      return peer.conn.get();
    };
  }
  bool start() {
    auto c = QuicConnection::connect(world.worker, client_end, *tls.client, h3_quic_settings(limits),
                                     {"a.test", {}, "k", {}, 1}, {client_end.address, server_end.address});
    session = owner.hold(make_h3_client(world.worker, std::move(c), *this, owner, limits));
    return world.until([this] { return opened && peer.open_for_business; });
  }
  bool greet(std::string_view settings = {}) {
    if (!start()) return false;
    peer.greet(settings);
    world.pass(std::chrono::milliseconds(100));
    return true;
  }
  Recorder* open() {
    auto r = std::make_unique<Recorder>();
    Stream* s = owner.session() == nullptr ? nullptr : session->open(*r);
    if (s == nullptr) return nullptr;
    r->stream = s;
    return streams.emplace_back(std::move(r)).get();
  }
  Recorder* get(std::string_view path = "/", Method method = Method::get) {
    Recorder* r = open();
    if (r != nullptr) r->send_head(Head::request(method, "https", "a.test", path), End::yes);
    world.pass(std::chrono::milliseconds(100));
    return r;
  }
  /// The origin's answer on the stream of the `i`-th request.
  void answer(std::int64_t i, std::string octets, bool fin = true) {
    peer.send(4 * i, std::move(octets), fin);
    world.pass(std::chrono::milliseconds(100));
  }

  QuicWorld world;
  HttpLimits limits;
  QuicSettings server_settings;
  H3Tls tls;
  QuicEnd client_end, server_end;
  RecordingOwner owner{world.worker};
  Session* session = nullptr;
  RawPeer peer;
  std::vector<std::unique_ptr<Recorder>> streams;
  bool opened = false;

 private:
  void on_h3_open(Session&) noexcept override { opened = true; }
  void on_h3_open_failed(Session& s, Fault why, const std::string&) noexcept override {
    static_cast<SessionOwner&>(owner).on_session_gone(s, why);
  }
};

}  // namespace twp::test::h3
