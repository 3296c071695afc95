// Connections over real sockets: whose datagram it is, who must prove his address, and what strangers get.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "h3/quic_endpoint.h"
#include "support/h3_rig.h"
#include "support/turn.h"

namespace twp::test {
namespace {

/// A server: one endpoint per worker index, all on this thread and one real worker each.
class Server final : public QuicAcceptor {
 public:
  explicit Server(Worker& worker, const QuicEndpointOptions& options = {}, const QuicSecrets& s = QuicSecrets::random())
      : worker_(worker), secrets(s) {
    auto e = QuicEndpoint::listen(worker, *Address::parse("127.0.0.1", 0), *tls.server, secrets, options, *this);
    BOOST_REQUIRE_MESSAGE(e, (e ? "" : e.error().what));
    endpoint = std::move(*e);
    acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& me) { me.respond(200, "hello " + me.body); }; };
  }
  ~Server() {
    for (auto& o : owners)
      if (o->session() != nullptr) o->session()->close(Fault::shutdown);
    worker_.turn(Duration::zero());
  }

  void on_quic_connection(QuicEndpoint&, std::unique_ptr<QuicConnection> c) noexcept override {
    auto& owner = *owners.emplace_back(std::make_unique<RecordingOwner>(worker_));
    owner.hold(make_h3_server(worker_, std::move(c), acceptor, owner, limits));
  }
  void on_stray(QuicEndpoint&, unsigned worker, const Datagrams& in) noexcept override {
    strays.push_back(worker);
    if (other != nullptr) other->deliver(in);
  }

  Worker& worker_;
  H3Tls tls;
  QuicSecrets secrets;
  HttpLimits limits;
  RecordingAcceptor acceptor;
  std::vector<std::unique_ptr<RecordingOwner>> owners;
  std::vector<unsigned> strays;
  QuicEndpoint* other = nullptr;
  std::unique_ptr<QuicEndpoint> endpoint;
};

class Client final : H3Opening {
 public:
  Client(Worker& worker, TlsContext& tls, const Address& to, std::vector<std::uint8_t> token = {}) : worker_(worker) {
    QuicEndpointOptions options;
    options.settings = h3_quic_settings(limits);
    auto c = QuicEndpoint::connect(worker, to, tls, {"a.test", {}, "k", std::move(token), 1}, QuicSecrets::random(), options);
    BOOST_REQUIRE_MESSAGE(c, (c ? "" : c.error().what));
    conn = c->get();
    session = owner.hold(make_h3_client(worker, std::move(*c), *this, owner, limits));
  }
  ~Client() {
    if (owner.session() == nullptr) return;
    session->close(Fault::none);
    if (!opened) static_cast<SessionOwner&>(owner).on_session_gone(*session, Fault::none);
    worker_.turn(Duration::zero());
  }
  bool wait(const std::function<bool()>& done) { return turn_until(worker_, done); }
  bool ask() {
    if (!wait([&] { return opened || failed; }) || failed) return false;
    reply = std::make_unique<Recorder>();
    reply->stream = session->open(*reply);
    Head head = Head::request(Method::post, "https", "a.test", "/", BodySize::unknown());
    reply->send_head(head, End::no);
    reply->send_body("you", End::yes);
    return wait([&] { return reply->gone; }) && reply->body == "hello you";
  }

  Worker& worker_;
  HttpLimits limits;
  RecordingOwner owner{worker_};
  Session* session = nullptr;
  QuicConnection* conn = nullptr;
  std::unique_ptr<Recorder> reply;
  bool opened = false, failed = false;
  Fault fault = Fault::none;
  std::string detail;

 private:
  void on_h3_open(Session&) noexcept override { opened = true; }
  void on_h3_open_failed(Session& s, Fault why, const std::string& text) noexcept override {
    failed = true;
    fault = why;
    detail = text;
    static_cast<SessionOwner&>(owner).on_session_gone(s, why);
  }
};

/// A plain socket that says what it likes.
class Stranger {
 public:
  explicit Stranger(const Address& to) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    BOOST_REQUIRE(::connect(fd_, to.sa(), to.length()) == 0);
  }
  ~Stranger() { close(fd_); }
  void say(const std::string& text) { BOOST_REQUIRE(::send(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())); }
  /// What has come back; empty: nothing.
  std::string hear() {
    char buffer[2048];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    return n <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(n));
  }

 private:
  int fd_;
};

std::string long_header(std::uint32_t version, std::string_view dcid, std::size_t size) {
  std::string p("\xc0", 1);
  for (int i = 3; i >= 0; --i) p.push_back(static_cast<char>(version >> (8 * i)));
  p.push_back(static_cast<char>(dcid.size()));
  p += dcid;
  p += std::string("\x04", 1) + "scid";
  p.resize(size);
  return p;
}

BOOST_AUTO_TEST_CASE(a_request_over_sockets) {
  Worker worker;
  Server server(worker);
  Client client(worker, *server.tls.client, server.endpoint->address());
  BOOST_TEST(client.ask());
  BOOST_TEST(server.endpoint->half_open() == 0u);
  BOOST_TEST(server.endpoint->counters().accepted == 1u);
  BOOST_TEST(server.endpoint->counters().retries == 0u);
  BOOST_TEST(server.endpoint->counters().dropped == 0u);
}

BOOST_AUTO_TEST_CASE(many_connections_share_a_socket) {
  Worker worker;
  Server server(worker);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<Client>(worker, *server.tls.client, server.endpoint->address()));
  for (auto& c : clients) BOOST_TEST(c->ask());
  BOOST_TEST(server.endpoint->counters().accepted == 20u);
  clients.clear();
  BOOST_REQUIRE(turn_until(worker, [&] {
    for (const auto& o : server.owners)
      if (!o->gone) return false;
    return true;
  }));
}

BOOST_AUTO_TEST_CASE(too_many_half_open_connections_make_clients_prove_their_address) {
  Worker worker;
  QuicEndpointOptions options;
  options.retry_above = 0;
  Server server(worker, options);
  Client client(worker, *server.tls.client, server.endpoint->address());
  BOOST_TEST(client.ask());
  BOOST_TEST(server.endpoint->counters().retries == 1u);
  BOOST_TEST(server.endpoint->counters().accepted == 1u);
  // Who was here before shows the token that he was given then.
  const std::vector<std::uint8_t> token(client.conn->token().begin(), client.conn->token().end());
  BOOST_REQUIRE(!token.empty());
  Client again(worker, *server.tls.client, server.endpoint->address(), token);
  BOOST_TEST(again.ask());
  BOOST_TEST(server.endpoint->counters().retries == 1u);
}

/// Initials from nowhere: nothing is kept of them once the limit is passed.
BOOST_AUTO_TEST_CASE(strangers_leave_no_state_behind_the_limit) {
  Worker worker;
  QuicEndpointOptions options;
  options.retry_above = 3;
  Server server(worker, options);
  const Address at = server.endpoint->address();
  std::vector<std::unique_ptr<Client>> clients;  // that never get to finish: only their first packets are looked at
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 10; ++i) {
    workers.push_back(std::make_unique<Worker>());
    clients.push_back(std::make_unique<Client>(*workers.back(), *server.tls.client, at));
    workers.back()->turn(Duration::zero());
    workers.back()->turn(Duration::zero());
  }
  BOOST_REQUIRE(turn_until(worker, [&] { return server.endpoint->counters().retries == 7; }));
  BOOST_TEST(server.endpoint->half_open() == 3u);
  BOOST_TEST(server.endpoint->counters().accepted == 3u);
  clients.clear();
}

BOOST_AUTO_TEST_CASE(an_unknown_version_is_answered_with_ours) {
  Worker worker;
  Server server(worker);
  Stranger s(server.endpoint->address());
  s.say(long_header(0xabcdef01, "12345678", 1200));
  std::string answer;
  BOOST_REQUIRE(turn_until(worker, [&] { return !(answer = s.hear()).empty(); }));
  BOOST_TEST(answer.substr(1, 4) == std::string(4, '\0'));
  BOOST_TEST(answer.find(std::string("\0\0\0\x01", 4), 5) != std::string::npos);
  BOOST_TEST(server.endpoint->counters().version_negotiations == 1u);
  // Not when it is too small to be a client's first packet: that would amplify.
  s.say(long_header(0xabcdef01, "12345678", 300));
  BOOST_REQUIRE(turn_until(worker, [&] { return server.endpoint->counters().dropped == 1; }));
  BOOST_TEST(s.hear().empty());
}

BOOST_AUTO_TEST_CASE(a_packet_of_a_lost_connection_is_answered_with_a_reset) {
  Worker worker;
  Server server(worker);
  QuicIds ids(worker.index(), server.secrets);
  const QuicIds::Id cid = ids.make();
  Stranger s(server.endpoint->address());
  std::string packet("\x40", 1);
  packet.append(reinterpret_cast<const char*>(cid.data()), cid.size());
  packet.resize(100, 'x');
  s.say(packet);
  std::string answer;
  BOOST_REQUIRE(turn_until(worker, [&] { return !(answer = s.hear()).empty(); }));
  BOOST_TEST(answer.size() < packet.size());
  const auto token = ids.reset_token(cid).value();
  BOOST_TEST(answer.ends_with(std::string(reinterpret_cast<const char*>(token.data()), token.size())));
}

/// A server that has forgotten everything but its secrets ends its clients' connections at once.
BOOST_AUTO_TEST_CASE(a_restarted_server_resets_its_old_clients) {
  Worker worker;
  auto server = std::make_unique<Server>(worker);
  const QuicSecrets secrets = server->secrets;
  const Address at = server->endpoint->address();
  H3Tls tls = std::move(server->tls);
  Client client(worker, *tls.client, at);
  BOOST_REQUIRE(client.ask());
  // Gone without a word: its sessions are destroyed, not closed.
  server->owners.clear();
  server.reset();
  struct Mute final : QuicAcceptor {
    void on_quic_connection(QuicEndpoint&, std::unique_ptr<QuicConnection>) noexcept override {}
    void on_stray(QuicEndpoint&, unsigned, const Datagrams&) noexcept override {}
  } mute;
  auto again = QuicEndpoint::listen(worker, at, *tls.server, secrets, {}, mute);
  BOOST_REQUIRE(again);
  Recorder r;
  r.stream = client.session->open(r);
  r.send_head(Head::request(Method::get, "https", "a.test", "/"), End::yes);
  BOOST_REQUIRE(client.wait([&] { return client.owner.gone; }));
  BOOST_TEST((client.owner.fault == Fault::peer_reset));
  BOOST_TEST((r.fault == Fault::origin_reset));
  BOOST_TEST((*again)->counters().stateless_resets >= 1u);
}

/// Two workers on one address: what comes to the wrong one is handed over.
BOOST_AUTO_TEST_CASE(a_datagram_for_another_worker_gets_there) {
  Worker zero(0), one(1);
  const QuicSecrets secrets = QuicSecrets::random();
  Server a(zero, {}, secrets), b(one, {}, secrets);
  a.other = b.endpoint.get();
  b.other = a.endpoint.get();
  Client client(zero, *a.tls.client, a.endpoint->address());
  BOOST_REQUIRE(client.ask());
  // The wrong worker hears a packet of that connection.
  QuicIds ids(0, secrets);
  const QuicIds::Id cid = ids.make();
  std::string packet("\x40", 1);
  packet.append(reinterpret_cast<const char*>(cid.data()), cid.size());
  packet.resize(100, 'x');
  Stranger s(b.endpoint->address());
  s.say(packet);
  BOOST_REQUIRE(turn_until(one, [&] { return !b.strays.empty(); }));
  BOOST_TEST(b.strays.front() == 0u);
  BOOST_TEST(b.endpoint->counters().stateless_resets == 0u);
  BOOST_TEST(a.endpoint->counters().stateless_resets == 1u);  // it knows nothing of it either, and says so
  BOOST_TEST(a.strays.empty());
}

/// Stands between a client and a server, and keeps what it has seen.
class Relay {
 public:
  explicit Relay(const Address& server) : in_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)), out_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    const Address any = *Address::parse("127.0.0.1", 0);
    BOOST_REQUIRE(bind(in_, any.sa(), any.length()) == 0);
    BOOST_REQUIRE(::connect(out_, server.sa(), server.length()) == 0);
    socklen_t n = sizeof client_;
    BOOST_REQUIRE(getsockname(in_, reinterpret_cast<sockaddr*>(&client_), &n) == 0);
    address = Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&client_));
  }
  ~Relay() {
    close(in_);
    close(out_);
  }
  void pump() {
    char buffer[65536];
    socklen_t n = sizeof client_;
    for (ssize_t got; (got = recvfrom(in_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&client_), &n)) > 0;) {
      if (!relays) continue;
      last.assign(buffer, static_cast<std::size_t>(got));
      send_again();
    }
    for (ssize_t got; (got = recv(out_, buffer, sizeof buffer, 0)) > 0;) {
      answers.emplace_back(buffer, static_cast<std::size_t>(got));
      if (relays) sendto(in_, buffer, static_cast<std::size_t>(got), 0, reinterpret_cast<const sockaddr*>(&client_), sizeof client_);
    }
  }
  void send_again() { BOOST_REQUIRE(::send(out_, last.data(), last.size(), 0) == static_cast<ssize_t>(last.size())); }

  Address address;
  std::string last;                  ///< from the client
  std::vector<std::string> answers;  ///< from the server
  bool relays = true;

 private:
  int in_, out_;
  sockaddr_in client_{};
};

/// RFC 9000 §10.2.1: the same octets again, more and more rarely, and after a while nothing is left.
BOOST_AUTO_TEST_CASE(a_closed_connection_answers_with_its_last_words) {
  Worker worker;
  Server server(worker);
  Relay relay(server.endpoint->address());
  Client client(worker, *server.tls.client, relay.address);
  const auto until = [&](const std::function<bool()>& done) {
    return turn_until(worker, [&] {
      relay.pump();
      return done();
    });
  };
  Recorder r;
  BOOST_REQUIRE(until([&] { return client.opened; }));
  r.stream = client.session->open(r);
  r.send_head(Head::request(Method::get, "https", "a.test", "/"), End::yes);
  BOOST_REQUIRE(until([&] { return r.gone; }));
  relay.pump();
  relay.relays = false;
  const std::size_t ids = server.endpoint->ids();
  BOOST_TEST(ids > 1u);
  server.owners.at(0)->session()->close(Fault::none);
  BOOST_TEST(server.endpoint->ids() == ids);  // still lead to what is left of it
  relay.answers.clear();
  BOOST_REQUIRE(until([&] { return relay.answers.size() == 1; }));
  for (int i = 0; i < 8; ++i) relay.send_again();
  BOOST_REQUIRE(until([&] { return relay.answers.size() == 5; }));  // to the 1st, 2nd, 4th and 8th
  for (const std::string& a : relay.answers) BOOST_TEST((a == relay.answers.front()));
  BOOST_REQUIRE(until([&] { return server.endpoint->ids() == 0; }));
  BOOST_TEST(relay.answers.size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_port_where_nobody_listens_is_noticed_at_once) {
  Worker worker;
  H3Tls tls;
  Address nobody;
  {
    Server server(worker);
    nobody = server.endpoint->address();
  }
  const Instant begin = monotonic_now();
  Client client(worker, *tls.client, nobody);
  BOOST_REQUIRE(client.wait([&] { return client.failed; }));
  BOOST_TEST((client.fault == Fault::connect_refused));
  BOOST_TEST(monotonic_now() - begin < 5'000'000'000u);
  BOOST_TEST(client.detail.find("nobody listens") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_draining_endpoint_takes_no_new_connections) {
  Worker worker;
  Server server(worker);
  Client client(worker, *server.tls.client, server.endpoint->address());
  BOOST_REQUIRE(client.ask());
  server.endpoint->drain();
  BOOST_TEST(client.ask());
  Client late(worker, *server.tls.client, server.endpoint->address());
  BOOST_REQUIRE(turn_until(worker, [&] { return server.endpoint->counters().dropped >= 1; }));
  BOOST_TEST(server.endpoint->counters().accepted == 1u);
}

}  // namespace
}  // namespace twp::test
