// Octets in both directions under every cut, ends of a connection, and what a record costs.
#include "h1/h1_session.h"
#include "net/linger.h"
#include "net/listener.h"
#include "support/recorder.h"
#include "tls_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

std::string random_text(std::size_t n, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::string s(n, '\0');
  for (std::size_t i = 0; i + 8 <= n; i += 8) {
    const std::uint64_t v = rng();
    std::memcpy(s.data() + i, &v, 8);
  }
  for (std::size_t i = n & ~std::size_t{7}; i < n; ++i) s[i] = static_cast<char>(rng());
  return s;
}

struct Accepted final : ListenHandler {
  void on_accept(std::unique_ptr<TcpTransport> t) noexcept override { accepted.push_back(std::move(t)); }
  std::vector<std::unique_ptr<TcpTransport>> accepted;
};

struct Fixture {
  Fixture() {
    const TestCert leaf = pki.leaf("a", "DNS:a.test");
    server.identities = {*TlsIdentity::load(leaf.cert_file, leaf.key_file)};
    server.ticket_keys = TlsTicketKeys::random();
    client.ca_file = pki.ca.cert_file;
    server_context = std::move(*TlsContext::server(server));
    client_context = std::move(*TlsContext::client(client));
  }
  void connect(std::function<std::size_t()> cut = {}, std::size_t capacity = 1 << 20) {
    auto [a, b] = MemTransport::pair(w);
    a->cut = b->cut = cut;
    a->capacity = b->capacity = capacity;
    client_end = a.get();
    server_end = b.get();
    c = std::make_unique<Endpoint>(make_tls_client(w, std::move(a), *client_context, "a.test", "", "a"));
    s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(30)));
    BOOST_REQUIRE(turn_until(w, [&] { return c->opened + c->failed != 0 && s->opened + s->failed != 0; }, 60));
    BOOST_REQUIRE_MESSAGE(c->opened == 1 && s->opened == 1, c->detail + s->detail);
  }
  /// A connected pair of kernel sockets, TLS on neither yet.
  std::pair<std::unique_ptr<TcpTransport>, std::unique_ptr<TcpTransport>> tcp_pair() {
    listener = std::move(*Listener::open(w, *Address::parse("127.0.0.1", 0), {}, accepted));
    auto near = TcpTransport::connect(w, listener->address(), {});
    BOOST_REQUIRE(turn_until(w, [&] { return !accepted.accepted.empty(); }));
    auto far = std::move(accepted.accepted.back());
    accepted.accepted.pop_back();
    return {std::move(near), std::move(far)};
  }
  void connect_tcp() {
    auto [near, far] = tcp_pair();
    c = std::make_unique<Endpoint>(make_tls_client(w, std::move(near), *client_context, "a.test", "", "a"));
    s = std::make_unique<Endpoint>(make_tls_server(w, std::move(far), *server_context, std::chrono::seconds(10)));
    BOOST_REQUIRE(turn_until(w, [&] { return c->opened + c->failed != 0 && s->opened + s->failed != 0; }));
    BOOST_REQUIRE_MESSAGE(c->opened == 1 && s->opened == 1, c->detail + s->detail);
  }
  /// Compares without printing megabytes.
  static bool same(const std::string& a, const std::string& b) { return a == b; }

  Worker w;
  TestPki pki;
  TlsServerOptions server;
  TlsClientOptions client;
  std::unique_ptr<TlsContext> server_context, client_context;
  Accepted accepted;
  std::unique_ptr<Listener> listener;
  MemTransport* client_end = nullptr;
  MemTransport* server_end = nullptr;
  std::unique_ptr<Endpoint> c, s;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(data, Fixture)

BOOST_AUTO_TEST_CASE(octet_by_octet) {
  connect([] { return std::size_t{1}; });
  const std::string up = random_text(3000, 1);
  const std::string down = random_text(5000, 2);
  c->send(up);
  s->send(down);
  BOOST_REQUIRE(turn_until(w, [&] { return s->in.size() >= up.size() && c->in.size() >= down.size(); }, 60));
  BOOST_TEST(same(s->in, up));
  BOOST_TEST(same(c->in, down));
}

BOOST_AUTO_TEST_CASE(ten_mebibytes_each_way_in_random_pieces) {
  std::mt19937 rng(7);
  connect([&] { return std::size_t{1} + rng() % 40000; }, 200000);
  const std::string up = random_text(10 << 20, 3);
  const std::string down = random_text(10 << 20, 4);
  c->read_size = 1 + rng() % 16384;
  s->read_size = 1 + rng() % 16384;
  std::size_t sent_up = 0;
  std::size_t sent_down = 0;
  const auto feed = [&](Endpoint& e, const std::string& text, std::size_t& sent) {
    if (e.out.size() > 100000) return;
    const std::size_t n = std::min(text.size() - sent, std::size_t{1} + rng() % 70000);
    e.send(std::string_view(text).substr(sent, n));
    sent += n;
  };
  const auto all = [&] {
    feed(*c, up, sent_up);
    feed(*s, down, sent_down);
    return s->in.size() >= up.size() && c->in.size() >= down.size();
  };
  BOOST_REQUIRE(turn_until(w, all, 120));
  BOOST_TEST(same(s->in, up));
  BOOST_TEST(same(c->in, down));
}

BOOST_AUTO_TEST_CASE(every_read_size) {
  connect();
  std::string expected;
  for (std::size_t size : {1u, 2u, 5u, 100u, 4095u, 16383u, 16384u, 20000u}) {
    c->read_size = size;
    const std::string text = random_text(40000, static_cast<unsigned>(size));
    expected += text;
    s->send(text);
    BOOST_REQUIRE(turn_until(w, [&] { return c->in.size() >= expected.size(); }));
  }
  BOOST_TEST(same(c->in, expected));
}

BOOST_AUTO_TEST_CASE(a_reader_that_stops_keeps_its_octets_while_others_use_the_buffer) {
  connect();
  auto first_c = std::move(c);
  auto first_s = std::move(s);
  connect();
  first_c->paused = true;
  const std::string text = random_text(60000, 5);
  first_s->send(text);
  // Half a record is taken, the rest stays where it is.
  for (int i = 0; i < 3; ++i) w.turn(Duration::zero());
  std::array<std::byte, 1000> some;
  const IoResult r = first_c->transport->read(some);
  BOOST_REQUIRE(r.status == IoStatus::ok);
  first_c->in.append(reinterpret_cast<const char*>(some.data()), r.n);
  const std::string other = random_text(60000, 6);
  s->send(other);
  BOOST_REQUIRE(turn_until(w, [&] { return c->in.size() >= other.size(); }));
  first_c->paused = false;
  first_c->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return first_c->in.size() >= text.size(); }));
  BOOST_TEST(same(first_c->in, text));
  BOOST_TEST(same(c->in, other));
}

BOOST_AUTO_TEST_CASE(a_slow_receiver_bounds_what_is_taken) {
  connect({}, 50000);
  c->paused = true;
  std::array<std::byte, 16384> piece{};
  Chain big;
  for (int i = 0; i < 256; ++i) big.append_copy(piece);
  const std::size_t before = big.size();
  for (int i = 0; i < 10; ++i) {
    s->transport->write(big);
    w.turn(Duration::zero());
  }
  // 128 KiB of ciphertext and a record more may wait, beside the 50,000 octets below.
  BOOST_TEST(before - big.size() <= 128 * 1024 + 50000 + 2 * 16384);
  BOOST_TEST(before - big.size() >= 50000 - 2000);
}

BOOST_AUTO_TEST_CASE(head_and_body_share_a_record_and_a_write) {
  connect();
  c->send("?");
  BOOST_REQUIRE(turn_until(w, [&] { return s->in == "?"; }));
  Chain answer;
  answer.append(Slice::copy_of(std::string(150, 'h')));
  Block* own = BlockPool::local().take();
  own->used = own->size;
  answer.append(Slice(own, 0, 1000));
  BOOST_REQUIRE(answer.slices() == 2u);
  const std::size_t writes = server_end->writes;
  const std::size_t sent = server_end->sent;
  s->transport->write(answer);
  BOOST_TEST(server_end->writes - writes == 1u);
  BOOST_TEST(server_end->sent - sent == 1150u + 5 + 1 + 16);  // one record: header, inner type, tag
}

BOOST_AUTO_TEST_CASE(one_lower_read_and_one_lower_write_a_request) {
  connect();
  c->send("?");
  s->send("!");
  BOOST_REQUIRE(turn_until(w, [&] { return s->in == "?" && c->in == "!"; }));
  const std::size_t reads = server_end->reads;
  const std::size_t writes = server_end->writes;
  constexpr int kRequests = 100;
  for (int i = 0; i < kRequests; ++i) {
    const std::size_t up = s->in.size();
    const std::size_t down = c->in.size();
    c->send(std::string(200, 'q'));
    BOOST_REQUIRE(turn_until(w, [&] { return s->in.size() == up + 200; }));
    s->send(std::string(300, 'a'));
    BOOST_REQUIRE(turn_until(w, [&] { return c->in.size() == down + 300; }));
  }
  BOOST_TEST(server_end->reads - reads == static_cast<std::size_t>(kRequests));
  BOOST_TEST(server_end->writes - writes == static_cast<std::size_t>(kRequests));
}

BOOST_AUTO_TEST_CASE(orderly_end_comes_after_the_data_and_leaves_the_other_direction_open) {
  connect();
  const std::string text = random_text(300000, 8);
  s->send(text);
  s->transport->shutdown_write();
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof; }));
  BOOST_TEST(same(c->in, text.substr(0, c->in.size())));
  BOOST_TEST(c->in.size() == text.size());
  BOOST_TEST(log_word(c->fault) == log_word(Fault::none));
  c->send("still here");
  BOOST_REQUIRE(turn_until(w, [&] { return s->in == "still here"; }));
  c->transport->shutdown_write();
  BOOST_REQUIRE(turn_until(w, [&] { return s->eof; }));
}

BOOST_AUTO_TEST_CASE(close_in_order_says_so) {
  connect();
  s->send("last");
  s->transport->close(Fault::none);
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof || c->fault != Fault::none; }));
  BOOST_TEST(c->eof);
  BOOST_TEST(c->in == "last");
}

BOOST_AUTO_TEST_CASE(a_fin_without_close_notify_is_a_truncation) {
  connect();
  s->send("half of a mess");
  BOOST_REQUIRE(turn_until(w, [&] { return !c->in.empty(); }));
  server_end->shutdown_write();  // below TLS
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof || c->fault != Fault::none; }));
  BOOST_TEST(!c->eof);
  BOOST_TEST(log_word(c->fault) == log_word(Fault::tls_truncated));
  BOOST_TEST(c->transport->drained());
}

BOOST_AUTO_TEST_CASE(who_ended_without_close_notify_gets_ours_all_the_same) {
  connect();
  client_end->shutdown_write();  // below TLS: it goes on reading
  BOOST_REQUIRE(turn_until(w, [&] { return s->fault != Fault::none; }));
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_truncated));
  s->send("whole");
  BOOST_REQUIRE(turn_until(w, [&] { return c->in == "whole"; }));
  s->transport->close(Fault::none);
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof || c->fault != Fault::none; }));
  BOOST_TEST(c->eof);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_breaks_the_connection) {
  connect();
  c->send("?");
  BOOST_REQUIRE(turn_until(w, [&] { return s->in == "?"; }));
  Chain junk;
  junk.append_copy(std::string_view("\x17\x03\x03\x00\x20", 5));
  junk.append_copy(std::string(32, 'x'));
  client_end->write(junk);
  BOOST_REQUIRE(turn_until(w, [&] { return s->fault != Fault::none; }));
  BOOST_TEST(log_word(s->fault) == log_word(Fault::protocol_error));
  // The alert tells the other side.
  BOOST_REQUIRE(turn_until(w, [&] { return c->fault != Fault::none; }));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::peer_reset));
}

BOOST_AUTO_TEST_CASE(data_behind_the_handshake_reaches_a_handler_set_later) {
  auto [a, b] = MemTransport::pair(w);
  c = std::make_unique<Endpoint>(make_tls_client(w, std::move(a), *client_context, "a.test", "", "a"));
  c->out.append_copy("early bird");
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(10)));
  s->paused = true;
  BOOST_REQUIRE(turn_until(w, [&] { return s->opened != 0 && c->out.empty(); }));
  for (int i = 0; i < 5; ++i) w.turn(Duration::zero());
  BOOST_TEST(s->in == "");
  Endpoint later(std::move(s->transport));
  later.opened = 1;
  BOOST_REQUIRE(turn_until(w, [&] { return later.in == "early bird"; }));
}

BOOST_AUTO_TEST_CASE(an_idle_connection_holds_no_block) {
  connect();
  c->send(random_text(100000, 9));
  BOOST_REQUIRE(turn_until(w, [&] { return s->in.size() == 100000; }));
  // Two per thread stay: the blocks that copies and arrivals are written into.
  BOOST_TEST(BlockPool::local().live_blocks() <= 2u);
}

// The same over sockets, with everything that a kernel does to it.
BOOST_AUTO_TEST_CASE(over_tcp) {
  connect_tcp();
  const std::string up = random_text(3 << 20, 10);
  const std::string down = random_text(3 << 20, 11);
  c->out.append_copy(up);
  s->out.append_copy(down);
  BOOST_REQUIRE(turn_until(w, [&] { return s->in.size() >= up.size() && c->in.size() >= down.size(); }, 60));
  BOOST_TEST(same(s->in, up));
  BOOST_TEST(same(c->in, down));
  BOOST_TEST(c->transport->peer().remote.text() == listener->address().text());
  linger_and_close(w, std::move(s->transport));
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof; }));
}

// The kernel reports octets and the reset behind them in one edge, and a short read looks as if that were all.
BOOST_AUTO_TEST_CASE(a_reset_right_behind_octets_is_seen_by_who_asks_again) {
  connect_tcp();
  s->send("half of a mess");
  s->transport->close(Fault::io_error);
  BOOST_REQUIRE(turn_until(w, [&] { return !c->in.empty(); }));
  BOOST_TEST(c->in == "half of a mess");
  std::array<std::byte, 100> more;
  const IoResult r = c->transport->read(more);
  BOOST_TEST((r.status == IoStatus::error));
  BOOST_TEST(log_word(r.fault) == log_word(Fault::peer_reset));
}

BOOST_AUTO_TEST_CASE(a_reset_right_behind_part_of_a_record) {
  auto [near, far] = tcp_pair();
  c = std::make_unique<Endpoint>(make_tls_client(w, std::move(near), *client_context, "a.test", "", "a"));
  TcpTransport* below = far.get();
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(far), *server_context, std::chrono::seconds(10)));
  BOOST_REQUIRE(turn_until(w, [&] { return c->opened == 1 && s->opened == 1; }));
  Chain part;
  part.append_copy(std::string_view("\x17\x03\x03\x01\x00half", 9));
  below->write(part);
  below->close(Fault::io_error);
  BOOST_REQUIRE(turn_until(w, [&] { return c->fault != Fault::none; }, 5));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::peer_reset));
}

BOOST_AUTO_TEST_CASE(a_reset_right_behind_part_of_the_handshake) {
  auto [near, far] = tcp_pair();
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(far), *server_context, std::chrono::seconds(3600)));
  Chain part;
  part.append_copy(std::string_view("\x16\x03\x01\x01\x00\x01", 6));
  BOOST_REQUIRE(turn_until(w, [&] {
    near->write(part);
    return part.empty();
  }));
  near->close(Fault::io_error);
  BOOST_REQUIRE(turn_until(w, [&] { return s->failed != 0; }, 5));
  BOOST_TEST(log_word(s->fault) == log_word(Fault::client_reset));
}

BOOST_AUTO_TEST_CASE(a_reset_right_behind_part_of_a_response) {
  connect_tcp();
  const HttpLimits limits;
  RecordingOwner owner(w);
  Session* session = owner.hold(make_h1_client(w, std::move(c->transport), owner, limits));
  Recorder r;
  r.stream = session->open(r);
  r.send_head(Head::request(Method::get, "https", "a.test", "/"), End::yes);
  BOOST_REQUIRE(turn_until(w, [&] { return s->in.ends_with("\r\n\r\n"); }));
  s->send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
  s->transport->close(Fault::io_error);
  BOOST_TEST(turn_until(w, [&] { return r.gone; }, 5));
  BOOST_TEST(log_word(r.fault) == "origin-truncated");
  BOOST_TEST(!r.ended);
}

BOOST_AUTO_TEST_CASE(a_refused_connection_is_passed_through) {
  const Address gone = (*Listener::open(w, *Address::parse("127.0.0.1", 0), {}, accepted))->address();
  c = std::make_unique<Endpoint>(make_tls_client(w, TcpTransport::connect(w, gone, {}), *client_context, "a.test", "", "a"));
  BOOST_REQUIRE(turn_until(w, [&] { return c->failed != 0; }));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::connect_refused));
  BOOST_TEST(c->detail.find("Connection refused") != std::string::npos, c->detail);
}

BOOST_AUTO_TEST_SUITE_END()
