// TCP over loopback: connecting, moving octets against a slow reader, and every way to end; the lingering close.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "net/linger.h"
#include "net_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

struct Fixture {
  Fixture() { listener = std::move(*Listener::open(w, *Address::parse("127.0.0.1", 0), {}, acceptor)); }
  void connect() {
    c = std::make_unique<Reader>(TcpTransport::connect(w, listener->address(), {}));
    BOOST_REQUIRE(turn_until(w, [&] { return c->opened != 0 && !acceptor.accepted.empty(); }));
    s = std::make_unique<Reader>(std::move(acceptor.accepted.back()));
    acceptor.accepted.clear();
  }
  Worker w;
  Acceptor acceptor;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Reader> c, s;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tcp, Fixture)

BOOST_AUTO_TEST_CASE(addresses_are_known) {
  connect();
  BOOST_TEST(c->transport->peer().remote.text() == listener->address().text());
  BOOST_TEST(s->transport->peer().local.text() == listener->address().text());
  BOOST_TEST(s->transport->peer().remote.text() == c->transport->peer().local.text());
  BOOST_TEST(c->transport->raw_fd() >= 0);
}

BOOST_AUTO_TEST_CASE(wildcard_listeners_learn_the_local_address) {
  auto any = std::move(*Listener::open(w, *Address::parse("0.0.0.0", 0), {}, acceptor));
  c = std::make_unique<Reader>(TcpTransport::connect(w, *Address::parse("127.0.0.1", any->address().port()), {}));
  BOOST_REQUIRE(turn_until(w, [&] { return !acceptor.accepted.empty(); }));
  BOOST_TEST(acceptor.accepted[0]->peer().local.ip() == "127.0.0.1");
  BOOST_TEST(acceptor.accepted[0]->peer().local.port() == any->address().port());
}

BOOST_AUTO_TEST_CASE(refused) {
  const Address at = listener->address();
  listener.reset();
  c = std::make_unique<Reader>(TcpTransport::connect(w, at, {}));
  BOOST_TEST(c->failed == 0);  // never from inside connect()
  BOOST_REQUIRE(turn_until(w, [&] { return c->failed != 0; }));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::connect_refused));
  BOOST_TEST(c->detail == at.text() + ": Connection refused");
  BOOST_TEST(c->opened == 0);
}

BOOST_AUTO_TEST_CASE(failing_at_once_reports_later_and_never_after_close) {
  TcpOptions options;
  options.source = *Address::parse("192.0.2.1", 0);  // not ours
  c = std::make_unique<Reader>(TcpTransport::connect(w, listener->address(), options));
  BOOST_TEST(c->failed == 0);
  BOOST_REQUIRE(turn_until(w, [&] { return c->failed != 0; }));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::connect_failed));
  c = std::make_unique<Reader>(TcpTransport::connect(w, listener->address(), options));
  c->transport->close(Fault::none);
  for (int i = 0; i < 5; ++i) w.turn(Duration::zero());
  BOOST_TEST(c->failed == 0);
}

BOOST_AUTO_TEST_CASE(source_address) {
  TcpOptions options;
  options.source = *Address::parse("127.0.0.3", 0);
  c = std::make_unique<Reader>(TcpTransport::connect(w, listener->address(), options));
  BOOST_REQUIRE(turn_until(w, [&] { return !acceptor.accepted.empty(); }));
  BOOST_TEST(acceptor.accepted[0]->peer().remote.ip() == "127.0.0.3");
}

BOOST_AUTO_TEST_CASE(half_close) {
  connect();
  c->out.append_copy("question");
  c->pump();
  c->transport->shutdown_write();
  BOOST_REQUIRE(turn_until(w, [&] { return s->eof; }));
  BOOST_TEST(s->in == "question");
  s->out.append_copy("answer");
  s->pump();
  s->transport->close(Fault::none);
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof; }));
  BOOST_TEST(c->in == "answer");
}

BOOST_AUTO_TEST_CASE(reset_is_not_an_end_of_file) {
  connect();
  s->out.append_copy("half");
  s->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return c->in == "half"; }));
  s->transport->close(Fault::origin_truncated);
  BOOST_REQUIRE(turn_until(w, [&] { return c->fault != Fault::none || c->eof; }));
  BOOST_TEST(!c->eof);
  BOOST_TEST(log_word(c->fault) == log_word(Fault::peer_reset));
  Chain more;
  more.append_copy("x");
  BOOST_TEST((c->transport->write(more).status != IoStatus::ok));
}

// The peer answered, did not take the rest and went: its answer is there after our write has failed, however late we look.
BOOST_AUTO_TEST_CASE(a_failed_write_leaves_the_answer_readable) {
  connect();
  c->paused = true;
  s->out.append_copy("413 Content Too Large");
  s->pump();
  s->transport->close(Fault::early_response);  // RST behind the answer
  c->out.append_copy("more");
  BOOST_REQUIRE(turn_until(w, [&] {
    c->out.append_copy("x");
    c->pump();
    return c->write_failed;
  }));
  BOOST_TEST(!c->transport->drained());
  c->paused = false;
  c->read_size = 7;
  BOOST_REQUIRE(turn_until(w, [&] {
    c->pump();
    return c->eof || c->fault != Fault::none;
  }, 5));
  BOOST_TEST(c->in == "413 Content Too Large");
  BOOST_TEST(!c->eof);  // cut, not ended
  BOOST_TEST(log_word(c->fault) == log_word(Fault::peer_reset));
}

BOOST_AUTO_TEST_CASE(big_transfers_both_ways_against_a_slow_reader) {
  connect();
  std::mt19937 rng(3);
  std::string up(6 << 20, '\0');
  for (char& ch : up) ch = static_cast<char>(rng());
  std::string down(up.rbegin(), up.rend());
  c->out.append_copy(up);
  s->out.append_copy(down);
  s->paused = true;
  c->pump();
  s->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return c->in.size() == down.size(); }, 60));
  BOOST_TEST(!c->out.empty());  // the kernel's buffers are full, the rest waits with us
  s->paused = false;
  s->read_size = 7777;
  s->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return s->in.size() == up.size(); }, 60));
  BOOST_TEST((s->in == up));
  BOOST_TEST((c->in == down));
}

BOOST_AUTO_TEST_CASE(a_short_read_needs_no_second) {
  connect();
  c->out.append_copy("ping");
  c->pump();
  s->paused = true;
  BOOST_REQUIRE(turn_until(w, [&] {
    std::array<std::byte, 1> b;
    return ::recv(s->transport->raw_fd(), b.data(), 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }));
  std::array<std::byte, 100> buf;
  BOOST_TEST((s->transport->read(buf).n == 4u));
  BOOST_TEST(s->transport->drained());
  BOOST_TEST((s->transport->read(buf).status == IoStatus::again));
}

BOOST_AUTO_TEST_CASE(fin_right_behind_the_data_is_seen) {
  connect();
  s->paused = true;
  c->out.append_copy("bye");
  c->pump();
  c->transport->close(Fault::none);
  for (int i = 0; i < 20; ++i) w.turn(std::chrono::milliseconds(1));
  s->paused = false;
  s->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return s->eof; }));
  BOOST_TEST(s->in == "bye");
}

BOOST_AUTO_TEST_CASE(listen_errors_name_the_address) {
  ListenOptions alone;
  alone.reuse_port = false;
  const auto r = Listener::open(w, listener->address(), alone, acceptor);
  BOOST_REQUIRE(!r.has_value());
  BOOST_TEST(r.error().what == "cannot listen on " + listener->address().text() + ": Address already in use");
  ListenOptions odd;
  odd.tcp.congestion = "nosuch";
  const auto r2 = Listener::open(w, *Address::parse("127.0.0.1", 0), odd, acceptor);
  BOOST_REQUIRE(!r2.has_value());
  BOOST_TEST(r2.error().what == "cannot listen on 127.0.0.1:0: congestion control: No such file or directory");
}

BOOST_AUTO_TEST_CASE(several_listeners_on_one_address) {
  BOOST_TEST(Listener::open(w, listener->address(), {}, acceptor).has_value());
}

BOOST_AUTO_TEST_CASE(a_probe_finds_a_port_that_others_could_share) {
  const Address at = listener->address();
  auto taken = Listener::probe(at);
  BOOST_REQUIRE(!taken.has_value());
  BOOST_TEST(taken.error().what == "cannot listen on " + at.text() + ": Address already in use");
  BOOST_TEST(!Listener::probe(*Address::parse("0.0.0.0", at.port())).has_value());
  BOOST_TEST(Listener::probe(*Address::parse("127.0.0.2", at.port())).has_value());
  BOOST_TEST(Listener::probe(*Address::parse("127.0.0.1", 0)).has_value());
  listener.reset();
  BOOST_TEST(Listener::probe(at).has_value());
  BOOST_TEST(Listener::probe(at).has_value());  // it keeps no socket
}

BOOST_AUTO_TEST_CASE(ipv4_and_ipv6_do_not_collide) {
  auto v6 = Listener::open(w, *Address::parse("::", listener->address().port()), {}, acceptor);
  if (!v6) return;  // a host without IPv6
  ListenOptions alone;
  alone.reuse_port = false;
  auto any6 = std::move(*Listener::open(w, *Address::parse("::", 0), alone, acceptor));
  BOOST_TEST(Listener::open(w, *Address::parse("0.0.0.0", any6->address().port()), alone, acceptor).has_value());
}

BOOST_AUTO_TEST_CASE(a_closed_listener_accepts_no_more) {
  const Address at = listener->address();
  listener->close();
  c = std::make_unique<Reader>(TcpTransport::connect(w, at, {}));
  BOOST_REQUIRE(turn_until(w, [&] { return c->failed != 0; }));
}

// Lingering: the answer must arrive although we never read what the client was sending.
BOOST_AUTO_TEST_CASE(linger_lets_the_answer_through) {
  connect();
  s->paused = true;
  std::array<std::byte, 16384> piece{};
  for (int i = 0; i < 20; ++i) c->out.append_copy(piece);
  c->pump();
  s->out.append_copy("413");
  s->pump();
  linger_and_close(w, std::move(s->transport));
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof || c->fault != Fault::none; }));
  BOOST_TEST(c->in == "413");
  BOOST_TEST(c->eof);
}

BOOST_AUTO_TEST_CASE(linger_ends_when_the_peer_does) {
  connect();
  const int fd = s->transport->raw_fd();
  linger_and_close(w, std::move(s->transport));
  BOOST_REQUIRE(turn_until(w, [&] { return c->eof; }));
  BOOST_TEST(::fcntl(fd, F_GETFD) >= 0);  // still waiting for our end
  c->transport->close(Fault::none);
  BOOST_REQUIRE(turn_until(w, [&] { return ::fcntl(fd, F_GETFD) < 0; }));
}

BOOST_AUTO_TEST_CASE(linger_ends_by_time_and_by_amount) {
  connect();
  const Instant begin = monotonic_now();
  const int fd = s->transport->raw_fd();
  linger_and_close(w, std::move(s->transport));
  BOOST_REQUIRE(turn_until(w, [&] { return ::fcntl(fd, F_GETFD) < 0; }));
  BOOST_TEST(monotonic_now() - begin >= 1'900'000'000u);
  connect();
  const int fd2 = s->transport->raw_fd();
  linger_and_close(w, std::move(s->transport));
  std::array<std::byte, 16384> piece{};
  for (int i = 0; i < 1024; ++i) c->out.append_copy(piece);
  const Instant before = monotonic_now();
  c->pump();
  BOOST_REQUIRE(turn_until(w, [&] { return ::fcntl(fd2, F_GETFD) < 0; }));
  BOOST_TEST(monotonic_now() - before < 1'900'000'000u);
}

// Who goes on sending when it was told to stop gets no more of a turn than a piece.
BOOST_AUTO_TEST_CASE(linger_discards_piece_by_piece) {
  connect();
  s->paused = true;
  const int fd = s->transport->raw_fd();
  const int room = 512 * 1024;
  BOOST_REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0);
  std::array<std::byte, 16384> piece{};
  for (int i = 0; i < 64; ++i) c->out.append_copy(piece);
  c->pump();
  const auto waiting = [fd] {
    int n = 0;
    BOOST_REQUIRE(::ioctl(fd, FIONREAD, &n) == 0);
    return n;
  };
  constexpr int kPiece = 64 * 1024;
  BOOST_REQUIRE(turn_until(w, [&] { return waiting() > 2 * kPiece; }));
  const int before = waiting();
  linger_and_close(w, std::move(s->transport));
  w.turn(Duration::zero());
  BOOST_TEST(waiting() >= before - kPiece);
  BOOST_REQUIRE(turn_until(w, [&] { return c->out.empty(); }));  // and yet it goes on
}

BOOST_AUTO_TEST_CASE(linger_dies_with_its_worker) {
  connect();
  linger_and_close(w, std::move(s->transport));  // the leak checker watches
  w.turn(Duration::zero());
}

BOOST_AUTO_TEST_SUITE_END()
