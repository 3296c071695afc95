// The whole data path of one worker over real sockets.
#include "proxy/shard.h"

#include <boost/test/unit_test.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

using namespace twp;

namespace {

/// A non-blocking socket of the test's own.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept : fd_(std::exchange(o.fd_, -1)), text(std::move(o.text)), eof(o.eof), reset(o.reset) {}
  ~Socket() { close(); }
  static Socket connect(const Address& to) {
    const int fd = ::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    BOOST_REQUIRE(::connect(fd, to.sa(), to.length()) == 0);
    return Socket(fd);
  }
  void send(std::string_view s) { BOOST_REQUIRE(::send(fd_, s.data(), s.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(s.size())); }
  /// Sends what the socket takes now.
  std::size_t offer(std::string_view s) {
    const ssize_t n = ::send(fd_, s.data(), s.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  void read() {
    char b[65536];
    ssize_t n = 0;
    while ((n = ::recv(fd_, b, sizeof b, MSG_DONTWAIT)) > 0) text.append(b, static_cast<std::size_t>(n));
    if (n == 0) eof = true;
    if (n < 0 && errno == ECONNRESET) reset = true;
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int fd() const { return fd_; }

 private:
  int fd_;

 public:
  std::string text;
  bool eof = false, reset = false;
};

class OriginServer {
 public:
  OriginServer() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const Address any = *Address::parse("127.0.0.1", 0);
    BOOST_REQUIRE(::bind(fd_, any.sa(), any.length()) == 0);
    BOOST_REQUIRE(::listen(fd_, 64) == 0);
    sockaddr_in sa{};
    socklen_t n = sizeof sa;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&sa), &n);
    port = ntohs(sa.sin_port);
  }
  ~OriginServer() { ::close(fd_); }
  void poll() {
    for (int fd; (fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) connections.push_back(std::make_unique<Socket>(fd));
    if (paused) return;
    for (auto& c : connections) c->read();
  }
  /// Accepted sockets hold little that is not read.
  void keep_little() const {
    const int little = 8192;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  }
  bool paused = false;  ///< reads nothing
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<Socket>> connections;

 private:
  int fd_;
};

struct Observer final : ExchangeObserver {
  void on_exchange_done(const ExchangeRecord& r) noexcept override {
    ++done;
    status = r.status;
    fault = r.fault;
  }
  void on_rejected(const PeerInfo&, Fault) noexcept override { ++rejected; }
  int done = 0, rejected = 0;
  std::uint16_t status = 0;
  Fault fault = Fault::none;
};

struct Rig {
  explicit Rig(std::vector<std::string> listen = {"http://127.0.0.1:0"}, Duration stream_idle = std::chrono::minutes(5))
      : idle(stream_idle) {
    auto opened = Shard::open(worker, snapshot(std::move(listen)), &observer);
    BOOST_REQUIRE_MESSAGE(opened.has_value(), (opened ? "" : opened.error().what));
    shard = std::move(*opened);
  }
  std::shared_ptr<const Snapshot> snapshot(std::vector<std::string> listen, std::string path = "/") {
    config::Config c;
    for (auto& url : listen) c.listeners.push_back({url, std::nullopt});
    config::Cluster k;
    k.name = "k";
    k.origins.push_back({"http://127.0.0.1:" + std::to_string(origin.port), 1});
    c.clusters.push_back(k);
    config::Route r;
    r.cluster = "k";
    r.path_prefix = std::move(path);
    c.routes.push_back(r);
    c.timeouts.drain = std::chrono::seconds(1);
    c.timeouts.stream_idle = idle;
    return *Snapshot::prepare(std::move(c), {{}, "test"});
  }
  Socket client(std::size_t i = 0) { return Socket::connect(shard->addresses().at(i)); }
  template <class F>
  bool until(F done) {
    const Instant end = monotonic_now() + 10'000'000'000u;
    while (true) {
      origin.poll();
      if (done()) return true;
      if (monotonic_now() > end) return false;
      worker.turn(std::chrono::milliseconds(1));
    }
  }
  /// One request and its response over `c`.
  void exchange(Socket& c) {
    c.send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    BOOST_REQUIRE(until([&] { return request() != nullptr; }));
    request()->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    request()->text.clear();
    BOOST_REQUIRE(until([&] { c.read(); return c.text.ends_with("ok"); }));
    c.text.clear();
  }
  /// The origin connection with a whole request head on it.
  Socket* request() {
    for (auto& c : origin.connections)
      if (c->text.find("\r\n\r\n") != std::string::npos) return c.get();
    return nullptr;
  }

  /// Begins an upload of 100 MB and sends until nothing more is taken, for the origin has read the head and no more.
  Instant fill_upload(Socket& c) {
    origin.keep_little();
    c.send("POST /up HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000000\r\n\r\n");
    BOOST_REQUIRE(until([&] { return request() != nullptr; }));
    origin.paused = true;
    const std::string some(1 << 18, 'x');
    Instant last = monotonic_now();
    for (int idle_turns = 0; idle_turns < 100; ++idle_turns) {
      if (c.offer(some) != 0) {
        idle_turns = 0;
        last = monotonic_now();
      }
      worker.turn(std::chrono::milliseconds(1));
    }
    BOOST_TEST(shard->counters().spliced_octets + shard->counters().request_octets != 0u);
    return last;
  }

  const Duration idle;
  OriginServer origin;
  Worker worker;
  Observer observer;
  std::unique_ptr<Shard> shard;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shard)

BOOST_AUTO_TEST_CASE(keep_alive_on_both_legs) {
  Rig rig;
  Socket c = rig.client();
  for (int i = 0; i < 10; ++i) rig.exchange(c);
  BOOST_TEST(rig.origin.connections.size() == 1u);
  BOOST_TEST(rig.shard->counters().requests == 10u);
  BOOST_TEST(rig.shard->counters().reuses == 9u);
  BOOST_TEST(rig.shard->counters().connections == 1u);
  BOOST_TEST(rig.observer.done == 10);
}

BOOST_AUTO_TEST_CASE(a_stale_connection_costs_the_client_nothing) {
  Rig rig;
  Socket c = rig.client();
  rig.exchange(c);
  // The origin gives the idle connection up just as the next request is sent.
  rig.origin.connections[0]->close();
  rig.origin.connections.clear();
  c.send("GET /again HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  rig.request()->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  BOOST_TEST(rig.until([&] { c.read(); return c.text.ends_with("ok"); }));
  BOOST_TEST(c.text.starts_with("HTTP/1.1 200"));
}

BOOST_AUTO_TEST_CASE(refused_requests_are_counted) {
  Rig rig;
  Socket c = rig.client();
  c.send("GET / HTTP/1.1\r\nHost : a\r\n\r\n");
  BOOST_TEST(rig.until([&] { c.read(); return c.eof; }));
  BOOST_TEST(c.text.starts_with("HTTP/1.1 400"));
  BOOST_TEST(rig.observer.rejected == 1);
  BOOST_TEST(rig.shard->counters().rejected == 1u);
}

BOOST_AUTO_TEST_CASE(large_bodies_are_spliced_both_ways_and_stay_whole) {
  Rig rig;
  std::string body(8'000'000, 0);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 131 + i / 65536);
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  Socket c = rig.client();
  c.send("POST /up HTTP/1.1\r\nHost: a.test\r\n" + length);
  std::size_t sent = 0;
  BOOST_REQUIRE(rig.until([&] {
    sent += c.offer(std::string_view(body).substr(sent));
    return !rig.origin.connections.empty() && rig.origin.connections[0]->text.size() > body.size();
  }));
  Socket& o = *rig.origin.connections[0];
  BOOST_TEST(rig.until([&] { return o.text.ends_with(std::string_view(body).substr(body.size() - 1000)); }));
  BOOST_TEST((o.text.substr(o.text.find("\r\n\r\n") + 4) == body));

  o.send("HTTP/1.1 200 OK\r\n" + length);
  sent = 0;
  BOOST_TEST(rig.until([&] {
    sent += o.offer(std::string_view(body).substr(sent));
    c.read();
    return rig.observer.done == 1;
  }));
  c.read();
  BOOST_TEST((c.text.substr(c.text.find("\r\n\r\n") + 4) == body));
  BOOST_CHECK(rig.observer.fault == Fault::none);
  BOOST_TEST(rig.shard->counters().spliced_octets > 12'000'000u);
  c.text.clear();
  o.text.clear();
  rig.exchange(c);  // both connections are in step
  BOOST_TEST(rig.origin.connections.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_origin_that_dies_in_a_spliced_body_resets_the_client) {
  Rig rig;
  Socket c = rig.client();
  c.send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  Socket& o = *rig.request();
  o.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(100'000, 'x'));
  BOOST_REQUIRE(rig.until([&] { c.read(); return c.text.size() > 100'000; }));
  o.send(std::string(100'000, 'y'));
  o.close();
  BOOST_TEST(rig.until([&] { c.read(); return c.reset || c.eof; }));
  BOOST_TEST(c.reset);
  BOOST_TEST(rig.until([&] { return rig.observer.done == 1; }));
  BOOST_CHECK(rig.observer.fault == Fault::origin_truncated);
}

BOOST_AUTO_TEST_CASE(a_client_that_dies_in_a_spliced_body_ends_the_exchange) {
  Rig rig;
  Socket c = rig.client();
  c.send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  Socket& o = *rig.request();
  o.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  const std::string some(1'000'000, 'x');
  BOOST_REQUIRE(rig.until([&] { o.offer(some); c.read(); return c.text.size() > 2'000'000; }));
  c.close();
  BOOST_TEST(rig.until([&] { o.offer(some); return rig.observer.done == 1; }));
  BOOST_TEST(rig.until([&] { return o.eof || o.reset; }));
}

// The octets wait in the pipe of a relay, and the origin is who lets them.
BOOST_AUTO_TEST_CASE(a_spliced_upload_that_the_origin_does_not_take_is_504) {
  Rig rig({"http://127.0.0.1:0"}, std::chrono::seconds(1));
  Socket c = rig.client();
  const Instant last = rig.fill_upload(c);
  BOOST_TEST(rig.until([&] { c.read(); return !c.text.empty() || c.eof || c.reset; }));
  BOOST_TEST(c.text.starts_with("HTTP/1.1 504 "), c.text);
  BOOST_TEST(monotonic_now() - last < 1'900'000'000u);  // of the last movement, not of the second look at the clock
  BOOST_TEST(rig.shard->counters().spliced_octets != 0u);
  rig.origin.paused = false;
  BOOST_TEST(rig.until([&] { return rig.origin.connections[0]->reset; }));
  c.close();
  BOOST_TEST(rig.until([&] { return rig.observer.done == 1; }));
  BOOST_TEST(log_word(rig.observer.fault) == "origin-timeout");
  BOOST_TEST(rig.observer.status == 504);
}

// A relay with a full pipe does not look at its source.
BOOST_AUTO_TEST_CASE(a_client_that_resets_a_stuck_spliced_upload_is_noticed) {
  Rig rig;
  Socket c = rig.client();
  rig.fill_upload(c);
  const linger reset{1, 0};
  ::setsockopt(c.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  c.close();
  BOOST_TEST(rig.until([&] { return rig.observer.done == 1; }));
  BOOST_TEST(log_word(rig.observer.fault) == "client-reset");
  rig.origin.paused = false;
  BOOST_TEST(rig.until([&] { return rig.origin.connections[0]->reset; }));
}

// The mirror image: what the origin sent before its reset is the client's, and then it sees that it is not whole.
BOOST_AUTO_TEST_CASE(an_origin_that_resets_behind_a_stuck_spliced_download) {
  Rig rig;
  Socket c = rig.client();
  c.send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  Socket& o = *rig.request();
  o.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  const std::string some(1 << 18, 'x');
  std::size_t sent = 0;
  for (int idle_turns = 0; idle_turns < 100; ++idle_turns) {
    if (const std::size_t n = o.offer(some); n != 0) {
      idle_turns = 0;
      sent += n;
    }
    rig.worker.turn(std::chrono::milliseconds(1));
  }
  const linger reset{1, 0};
  ::setsockopt(o.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  o.close();
  BOOST_TEST(rig.until([&] { c.read(); return c.reset || c.eof; }));
  BOOST_TEST(c.reset);
  BOOST_TEST(c.text.size() < sent + 200);
  BOOST_TEST(rig.until([&] { return rig.observer.done == 1; }));
  BOOST_TEST(log_word(rig.observer.fault) == "origin-truncated");
}

BOOST_AUTO_TEST_CASE(websocket_tunnels_relay_and_half_close) {
  Rig rig;
  Socket c = rig.client();
  c.send("GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  Socket& o = *rig.request();
  o.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfrom-origin");
  BOOST_TEST(rig.until([&] { c.read(); return c.text.ends_with("from-origin"); }));
  o.text.clear();
  ::shutdown(o.fd(), SHUT_WR);  // the origin is the first to end
  BOOST_TEST(rig.until([&] { c.read(); return c.eof; }));
  c.send("still");
  BOOST_TEST(rig.until([&] { return o.text == "still"; }));
  ::shutdown(c.fd(), SHUT_WR);
  BOOST_TEST(rig.until([&] { return rig.observer.done == 1; }));
  BOOST_CHECK(rig.observer.fault == Fault::none);
}

BOOST_AUTO_TEST_CASE(a_reload_keeps_sockets_connections_and_what_is_in_flight) {
  Rig rig({"http://127.0.0.1:0", "http://[::1]:0"});
  Socket c = rig.client();
  rig.exchange(c);
  c.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  const auto before = rig.shard->addresses();
  // The second listener goes, the routes change under the request.
  BOOST_REQUIRE(rig.shard->reload(rig.snapshot({"http://127.0.0.1:0"}, "/new")).has_value());
  BOOST_TEST((rig.shard->addresses().at(0) == before.at(0)));
  BOOST_TEST(rig.shard->addresses().size() == 1u);
  rig.request()->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  rig.request()->text.clear();
  BOOST_TEST(rig.until([&] { c.read(); return c.text.ends_with("ok"); }));
  c.text.clear();
  c.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_TEST(rig.until([&] { c.read(); return c.text.find("\r\n\r\n") != std::string::npos; }));
  BOOST_TEST(c.text.starts_with("HTTP/1.1 404"));
  c.text.clear();
  c.send("GET /new HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  BOOST_TEST(rig.origin.connections.size() == 1u);  // the pool was kept
  Socket other(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_TEST(::connect(other.fd(), before[1].sa(), before[1].length()) != 0);
}

BOOST_AUTO_TEST_CASE(a_failed_reload_changes_nothing) {
  Rig rig;
  OriginServer taken;
  auto bad = rig.shard->reload(rig.snapshot({"http://127.0.0.1:0", "http://127.0.0.1:" + std::to_string(taken.port)}));
  BOOST_REQUIRE(!bad.has_value());
  BOOST_TEST(bad.error().what.find("Address already in use") != std::string::npos);
  Socket c = rig.client();
  rig.exchange(c);
}

BOOST_AUTO_TEST_CASE(drain_finishes_what_is_in_flight_and_says_when) {
  Rig rig;
  Socket busy = rig.client();
  Socket idle = rig.client();
  rig.exchange(idle);
  busy.send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_REQUIRE(rig.until([&] { return rig.request() != nullptr; }));
  bool done = false;
  const Address at = rig.shard->addresses()[0];
  rig.shard->drain([&] { done = true; });
  BOOST_TEST(rig.until([&] { idle.read(); return idle.eof; }));
  BOOST_TEST(!done);
  rig.request()->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  BOOST_TEST(rig.until([&] { busy.read(); return busy.eof; }));
  BOOST_TEST(busy.text.ends_with("ok"));
  BOOST_TEST(busy.text.find("Connection: close") != std::string::npos);
  busy.close();
  BOOST_TEST(rig.until([&] { return done; }));
  Socket late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_TEST(::connect(late.fd(), at.sa(), at.length()) != 0);
}

BOOST_AUTO_TEST_CASE(drain_serves_who_waits_to_be_accepted) {
  Rig rig;
  std::vector<Socket> waiting;
  for (int i = 0; i < 100; ++i) {  // more than one wake-up takes
    waiting.push_back(rig.client());
    waiting.back().send("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  }
  bool done = false;
  rig.shard->drain([&] { done = true; });
  BOOST_TEST(rig.shard->client_connections() == 100u);
  const auto answer = [&] {
    for (Socket* o; (o = rig.request()) != nullptr;) {
      o->text.clear();
      o->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  };
  for (Socket& c : waiting) {
    BOOST_TEST(rig.until([&] { answer(); c.read(); return c.eof || c.reset; }));
    BOOST_TEST(c.text.starts_with("HTTP/1.1 200 "));
    BOOST_TEST(c.text.find("\r\nConnection: close\r\n") != std::string::npos);
    c.close();
  }
  BOOST_TEST(rig.until([&] { return done; }));
}

BOOST_AUTO_TEST_CASE(a_shard_may_be_destroyed_with_everything_in_flight) {
  Rig rig;
  std::vector<Socket> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(rig.client());
    clients.back().send("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\npart");
  }
  BOOST_REQUIRE(rig.until([&] { return rig.origin.connections.size() == 5; }));
  rig.shard.reset();
  BOOST_TEST(rig.observer.done == 5);
}

BOOST_AUTO_TEST_SUITE_END()
