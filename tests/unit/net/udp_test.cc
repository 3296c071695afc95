// UDP over loopback: addresses, ECN, many datagrams a call, and a kernel that will not take them.
#include "net/udp_socket.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

/// What sendmsg(2) says instead of sending; 0: sends. The argument is the number of datagrams of the call.
std::function<int(std::size_t)> g_refuse;

std::size_t datagrams_of(const msghdr& m) {
  for (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&m), const_cast<cmsghdr*>(c))) {
    if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_SEGMENT) continue;
    std::uint16_t segment = 0;
    std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
    return (m.msg_iov->iov_len + segment - 1) / segment;
  }
  return 1;
}

}  // namespace

// In front of the C library's: loopback never runs out of room and has segmentation, so nothing else makes it say so.
extern "C" ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  if (g_refuse) {
    if (const int err = g_refuse(datagrams_of(*m)); err != 0) {
      errno = err;
      return -1;
    }
  }
  return ::syscall(SYS_sendmsg, fd, m, flags);
}

namespace {

struct Got {
  std::string octets;
  Address local, remote;
  Ecn ecn;
};

struct Peer final : UdpHandler {
  void on_datagrams(UdpSocket& s, const Datagrams& in) noexcept override {
    ++batches;
    Datagrams rest = in;
    for (std::size_t i = in.count(); i != 0; --i) {
      const auto d = rest.next();
      got.push_back({{reinterpret_cast<const char*>(d.data()), d.size()}, in.local, in.remote, in.ecn});
    }
    if (close_on_input) s.close();
  }
  void on_writable(UdpSocket&) noexcept override { ++writable; }
  void on_unreachable(UdpSocket&, Fault f) noexcept override {
    ++unreachable;
    fault = f;
  }
  std::vector<Got> got;
  int batches = 0, writable = 0, unreachable = 0;
  Fault fault = Fault::none;
  bool close_on_input = false;
};

std::unique_ptr<UdpSocket> must(Result<std::unique_ptr<UdpSocket>> r) {
  BOOST_REQUIRE_MESSAGE(r.has_value(), (r ? "" : r.error().what));
  return std::move(*r);
}

Datagrams text(std::string_view octets, std::size_t segment = 0, Ecn ecn = Ecn::none) {
  Datagrams d;
  d.octets = std::as_bytes(std::span(octets));
  d.segment = segment;
  d.ecn = ecn;
  return d;
}

/// `n` datagrams of `size` octets, each filled with its own letter, the last one `last` octets long.
std::string train(std::size_t n, std::size_t size, std::size_t last) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) s.append(i + 1 == n ? last : size, static_cast<char>('a' + i % 26));
  return s;
}

struct Fixture {
  Fixture() { open("127.0.0.1"); }
  ~Fixture() { g_refuse = nullptr; }
  void open(const char* ip, UdpOptions server_options = {}, UdpOptions client_options = {}) {
    server = must(UdpSocket::open(w, *Address::parse(ip, 0), server_options, at_server));
    client = must(UdpSocket::connect(w, server->address(), client_options, at_client));
  }
  bool served(std::size_t n) {
    return turn_until(w, [&] { return at_server.got.size() >= n; });
  }
  UdpSent reply(Datagrams d) {
    d.local = at_server.got.at(0).local;
    d.remote = at_server.got.at(0).remote;
    return server->send(d);
  }
  Worker w;
  Peer at_server, at_client;
  std::unique_ptr<UdpSocket> server, client;
};

void both_ways(Fixture& f) {
  BOOST_TEST((f.client->send(text("question", 0, Ecn::ect0)) == UdpSent::sent));
  BOOST_REQUIRE(f.served(1));
  const Got q = f.at_server.got[0];
  BOOST_TEST(q.octets == "question");
  BOOST_TEST(q.local.text() == f.server->address().text());
  BOOST_TEST(q.remote.text() == f.client->address().text());
  BOOST_TEST((q.ecn == Ecn::ect0));
  BOOST_TEST((f.reply(text("answer", 0, Ecn::ce)) == UdpSent::sent));
  BOOST_REQUIRE(turn_until(f.w, [&] { return !f.at_client.got.empty(); }));
  const Got a = f.at_client.got[0];
  BOOST_TEST(a.octets == "answer");
  BOOST_TEST(a.local.text() == f.client->address().text());
  BOOST_TEST(a.remote.text() == f.server->address().text());
  BOOST_TEST((a.ecn == Ecn::ce));
}

bool have_ipv6(Worker& w, UdpHandler& handler) {
  return UdpSocket::open(w, *Address::parse("::1", 0), {}, handler).has_value();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(udp, Fixture)

BOOST_AUTO_TEST_CASE(both_ways_ipv4) { both_ways(*this); }

BOOST_AUTO_TEST_CASE(both_ways_ipv6) {
  if (!have_ipv6(w, at_server)) return;
  open("::1");
  both_ways(*this);
}

BOOST_AUTO_TEST_CASE(codepoints_change_with_each_datagram) {
  for (const Ecn e : {Ecn::ect0, Ecn::none, Ecn::ect1, Ecn::ce, Ecn::none}) client->send(text("x", 0, e));
  BOOST_REQUIRE(served(5));
  BOOST_TEST((at_server.got[0].ecn == Ecn::ect0));
  BOOST_TEST((at_server.got[1].ecn == Ecn::none));
  BOOST_TEST((at_server.got[2].ecn == Ecn::ect1));
  BOOST_TEST((at_server.got[3].ecn == Ecn::ce));
  BOOST_TEST((at_server.got[4].ecn == Ecn::none));
  for (const Ecn e : {Ecn::ect0, Ecn::none}) reply(text("x", 0, e));
  BOOST_REQUIRE(turn_until(w, [&] { return at_client.got.size() == 2; }));
  BOOST_TEST((at_client.got[0].ecn == Ecn::ect0));
  BOOST_TEST((at_client.got[1].ecn == Ecn::none));
}

// A wildcard socket hears on every address of the host, and answers from the one that was asked: a connected client hears
// no other.
BOOST_AUTO_TEST_CASE(wildcard_answers_from_the_address_that_was_asked) {
  server = must(UdpSocket::open(w, *Address::parse("0.0.0.0", 0), {}, at_server));
  client = must(UdpSocket::connect(w, *Address::parse("127.0.0.7", server->address().port()), {}, at_client));
  client->send(text("question"));
  BOOST_REQUIRE(served(1));
  BOOST_TEST(at_server.got[0].local.text() == "127.0.0.7:" + std::to_string(server->address().port()));
  reply(text("answer"));
  BOOST_REQUIRE(turn_until(w, [&] { return !at_client.got.empty(); }));
  BOOST_TEST(at_client.got[0].octets == "answer");
}

BOOST_AUTO_TEST_CASE(families_do_not_collide) {
  if (!have_ipv6(w, at_server)) return;
  auto v4 = must(UdpSocket::open(w, *Address::parse("0.0.0.0", 0), {}, at_server));
  auto v6 = must(UdpSocket::open(w, *Address::parse("::", v4->address().port()), {}, at_client));
  auto c = must(UdpSocket::connect(w, *Address::parse("::1", v6->address().port()), {}, at_server));
  c->send(text("six"));
  BOOST_REQUIRE(turn_until(w, [&] { return !at_client.got.empty(); }));
  BOOST_TEST(at_client.got[0].local.ip() == "::1");
}

// Whole trains go out in one call and come in in one, cut where they were joined.
BOOST_AUTO_TEST_CASE(trains) {
  const std::string octets = train(40, 1200, 700);
  BOOST_TEST((client->send(text(octets, 1200, Ecn::ect0)) == UdpSent::sent));
  BOOST_REQUIRE(served(40));
  for (std::size_t i = 0; i < 40; ++i) BOOST_TEST(at_server.got[i].octets == octets.substr(i * 1200, 1200));
  BOOST_TEST((at_server.got[39].ecn == Ecn::ect0));
  BOOST_TEST(at_server.batches == 1);
  const UdpCounters& out = client->counters();
  BOOST_TEST(out.calls_out == 1u);
  BOOST_TEST(out.datagrams_out == 40u);
  BOOST_TEST(out.octets_out == octets.size());
  BOOST_TEST(out.gso[5] == 1u);
  const UdpCounters& in = server->counters();
  BOOST_TEST(in.datagrams_in == 40u);
  BOOST_TEST(in.octets_in == octets.size());
  BOOST_TEST(in.gro[5] == 1u);
  UdpCounters sum = in;
  sum += out;
  BOOST_TEST((sum.datagrams_in == 40u && sum.datagrams_out == 40u && sum.gso[5] == 1u && sum.gro[5] == 1u));
}

// More than a call can carry, by number and by octets.
BOOST_AUTO_TEST_CASE(long_trains_take_several_calls) {
  const std::string small = train(200, 100, 100);
  client->send(text(small, 100));
  BOOST_REQUIRE(served(200));
  BOOST_TEST(client->counters().calls_out == 4u);
  const std::string large = train(20, 9000, 1);
  client->send(text(large, 9000));
  BOOST_REQUIRE(served(220));
  BOOST_TEST(client->counters().calls_out == 7u);
  for (std::size_t i = 0; i < 20; ++i)
    BOOST_TEST((at_server.got[200 + i].octets == large.substr(i * 9000, 9000)));
}

BOOST_AUTO_TEST_CASE(without_gro_and_gso) {
  UdpOptions plain;
  plain.gro = plain.gso = false;
  open("127.0.0.1", plain, plain);
  client->send(text(train(5, 1000, 10), 1000));
  BOOST_REQUIRE(served(5));
  BOOST_TEST(at_server.batches == 5);
  BOOST_TEST(client->counters().calls_out == 5u);
  BOOST_TEST(at_server.got[4].octets == "eeeeeeeeee");
}

// 65507 octets is what IPv4 has room for; a datagram without octets is one too.
BOOST_AUTO_TEST_CASE(largest_and_smallest) {
  const std::string large(65507, 'L');
  BOOST_TEST((client->send(text(large)) == UdpSent::sent));
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::sendto(fd, "", 0, 0, server->address().sa(), server->address().length());
  ::close(fd);
  BOOST_REQUIRE(served(2));
  BOOST_TEST((at_server.got[0].octets == large));
  BOOST_TEST(at_server.got[1].octets.empty());
  // Too large is lost, as on a path that has no room for it.
  BOOST_TEST((client->send(text(std::string(65508, 'x'))) == UdpSent::sent));
  BOOST_TEST(client->counters().send_errors == 1u);
}

// EIO says that this way has no segmentation: each datagram arrives all the same, and nobody asks again.
BOOST_AUTO_TEST_CASE(segmentation_refused_for_good) {
  int asked = 0;
  g_refuse = [&](std::size_t n) { return n > 1 ? (++asked, EIO) : 0; };
  const std::string octets = train(10, 500, 20);
  BOOST_TEST((client->send(text(octets, 500)) == UdpSent::sent));
  client->send(text(octets, 500));
  BOOST_REQUIRE(served(20));
  BOOST_TEST(asked == 1);
  BOOST_TEST(client->counters().datagrams_out == 20u);
  BOOST_TEST(at_server.got[9].octets == octets.substr(4500));
}

// EINVAL of a real kernel: it will not segment without checksums.
BOOST_AUTO_TEST_CASE(segmentation_invalid) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof one);
  BOOST_REQUIRE(::connect(fd, server->address().sa(), server->address().length()) == 0);
  auto odd = must(UdpSocket::adopt(w, fd, {}, at_client));
  odd->send(text(train(3, 100, 100), 100));
  BOOST_REQUIRE(served(3));
  BOOST_TEST(odd->counters().calls_out == 4u);
  odd->send(text(train(3, 100, 100), 100));
  BOOST_REQUIRE(served(6));
  BOOST_TEST(odd->counters().calls_out == 7u);
}

// One segment size was too large for the path: those are lost, and others may still go together.
BOOST_AUTO_TEST_CASE(segments_too_large) {
  g_refuse = [&](std::size_t n) { return n > 1 ? EINVAL : EMSGSIZE; };
  client->send(text(train(4, 100, 100), 100));
  BOOST_TEST(client->counters().send_errors == 4u);
  g_refuse = nullptr;
  client->send(text(train(4, 100, 100), 100));
  BOOST_REQUIRE(served(4));
  BOOST_TEST(client->counters().gso[2] == 1u);
}

// No room in the kernel: a copy waits, in order, and the owner hears when it is gone.
BOOST_AUTO_TEST_CASE(waits_for_room) {
  int room = 1;
  g_refuse = [&](std::size_t) { return room-- > 0 ? 0 : EAGAIN; };
  std::string octets = train(130, 10, 10);  // 64, 64, 2
  BOOST_TEST((client->send(text(octets, 10)) == UdpSent::queued));
  BOOST_TEST(!client->writable());
  octets.assign(octets.size(), '!');  // the copy does not care
  room = 1000;
  BOOST_TEST((client->send(text("later")) == UdpSent::queued));  // never in front of what waits
  room = 1;
  client->send(text("last"));
  server->send([&] {
    Datagrams d = text("wake");
    d.remote = client->address();
    return d;
  }());
  room = 1;  // one more call, then none again
  BOOST_REQUIRE(turn_until(w, [&] { return at_client.got.size() == 1; }));
  BOOST_TEST(!client->writable());
  BOOST_TEST(at_client.writable == 0);
  g_refuse = nullptr;
  server->send([&] {
    Datagrams d = text("wake");
    d.remote = client->address();
    return d;
  }());
  BOOST_REQUIRE(turn_until(w, [&] { return client->writable(); }));
  BOOST_TEST(at_client.writable == 1);
  BOOST_REQUIRE(served(132));
  const std::string expected = train(130, 10, 10);
  for (std::size_t i = 0; i < 130; ++i) BOOST_TEST(at_server.got[i].octets == expected.substr(i * 10, 10));
  BOOST_TEST(at_server.got[130].octets == "later");
  BOOST_TEST(at_server.got[131].octets == "last");
  BOOST_TEST(client->counters().queued == 68u);
}

BOOST_AUTO_TEST_CASE(the_queue_has_an_end) {
  UdpOptions options;
  options.queue = 1000;
  open("127.0.0.1", {}, options);
  g_refuse = [](std::size_t) { return EAGAIN; };
  BOOST_TEST((client->send(text(std::string(900, 'a'), 100)) == UdpSent::queued));
  BOOST_TEST((client->send(text(std::string(200, 'b'), 100)) == UdpSent::dropped));
  BOOST_TEST((client->send(text(std::string(100, 'c'), 100)) == UdpSent::queued));
  BOOST_TEST(client->counters().queue_drops == 2u);
  client->close();
  BOOST_TEST((client->send(text("x")) == UdpSent::dropped));
}

BOOST_AUTO_TEST_CASE(nobody_there) {
  server->close();
  client->send(text("question"));
  BOOST_TEST(at_client.unreachable == 0);
  BOOST_REQUIRE(turn_until(w, [&] { return at_client.unreachable != 0; }));
  BOOST_TEST(log_word(at_client.fault) == log_word(Fault::connect_refused));
}

// What an earlier datagram met must not swallow the next one.
BOOST_AUTO_TEST_CASE(an_old_error_costs_no_datagram) {
  const Address at = server->address();
  server->close();
  client->send(text("lost"));
  server = must(UdpSocket::open(w, at, {}, at_server));
  BOOST_TEST((client->send(text("heard")) == UdpSent::sent));
  BOOST_REQUIRE(served(1));
  BOOST_TEST(at_server.got[0].octets == "heard");
  BOOST_TEST(client->counters().send_errors == 0u);
  BOOST_REQUIRE(turn_until(w, [&] { return at_client.unreachable == 1; }));
}

BOOST_AUTO_TEST_CASE(a_connected_socket_hears_its_peer_only) {
  Peer at_third;
  auto third = must(UdpSocket::open(w, *Address::parse("127.0.0.1", 0), {}, at_third));
  Datagrams d = text("forged");
  d.remote = client->address();
  third->send(d);
  client->send(text("question"));
  BOOST_REQUIRE(served(1));
  reply(text("answer"));
  BOOST_REQUIRE(turn_until(w, [&] { return !at_client.got.empty(); }));
  BOOST_TEST(at_client.got.size() == 1u);
  BOOST_TEST(at_client.got[0].octets == "answer");
}

BOOST_AUTO_TEST_CASE(source_address) {
  UdpOptions options;
  options.source = *Address::parse("127.0.0.3", 0);
  client = must(UdpSocket::connect(w, server->address(), options, at_client));
  client->send(text("x"));
  BOOST_REQUIRE(served(1));
  BOOST_TEST(at_server.got[0].remote.ip() == "127.0.0.3");
  options.source = *Address::parse("192.0.2.1", 0);  // not ours
  BOOST_TEST(!UdpSocket::connect(w, server->address(), options, at_client).has_value());
}

// Far more than a turn reads: all of it comes, though there is one edge only.
BOOST_AUTO_TEST_CASE(nothing_is_left_behind) {
  constexpr std::size_t kMany = 1000;
  for (std::size_t i = 0; i < kMany; ++i) client->send(text(std::to_string(i)));
  BOOST_REQUIRE(served(kMany));
  for (std::size_t i = 0; i < kMany; ++i) BOOST_TEST(at_server.got[i].octets == std::to_string(i));
  BOOST_TEST(server->counters().calls_in < kMany / 8);
}

BOOST_AUTO_TEST_CASE(closing_inside_the_callback) {
  at_server.close_on_input = true;
  for (int i = 0; i < 10; ++i) client->send(text("x"));
  BOOST_REQUIRE(served(1));
  for (int i = 0; i < 5; ++i) w.turn(Duration::zero());
  BOOST_TEST(at_server.got.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_kernel_tells_what_it_threw_away) {
  UdpOptions small;
  small.buffer = 1;  // the least that the kernel gives
  open("127.0.0.1", small);
  for (int i = 0; i < 500; ++i) client->send(text(std::string(1000, 'x')));
  BOOST_REQUIRE(served(1));
  client->send(text("after"));
  BOOST_REQUIRE(turn_until(w, [&] { return at_server.got.back().octets == "after"; }));
  const UdpCounters& c = server->counters();
  BOOST_TEST(c.kernel_drops > 0u);
  BOOST_TEST(c.kernel_drops + c.datagrams_in == 501u);
}

BOOST_AUTO_TEST_CASE(buffers_are_large) {
  const int probe = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int asked = 4 * 1024 * 1024;
  int allowed = 0;
  socklen_t n = sizeof allowed;
  ::setsockopt(probe, SOL_SOCKET, SO_RCVBUF, &asked, sizeof asked);
  ::getsockopt(probe, SOL_SOCKET, SO_RCVBUF, &allowed, &n);
  BOOST_REQUIRE(::connect(probe, server->address().sa(), server->address().length()) == 0);
  auto adopted = must(UdpSocket::adopt(w, ::dup(probe), {}, at_client));
  int value = 0;
  n = sizeof value;
  ::getsockopt(probe, SOL_SOCKET, SO_RCVBUF, &value, &n);
  BOOST_TEST(value == allowed);
  n = sizeof value;
  ::getsockopt(probe, IPPROTO_IP, IP_MTU_DISCOVER, &value, &n);
  BOOST_TEST(value == IP_PMTUDISC_PROBE);
  BOOST_TEST((::fcntl(probe, F_GETFL) & O_NONBLOCK) != 0);
  ::close(probe);
}

// A reload keeps the port: what is bound already goes on under a new owner, and what came in between is there.
BOOST_AUTO_TEST_CASE(adopts_a_bound_socket) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const Address any = *Address::parse("127.0.0.1", 0);
  BOOST_REQUIRE(::bind(fd, any.sa(), any.length()) == 0);
  sockaddr_in name{};
  socklen_t n = sizeof name;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &n);
  const Address at = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&name));
  client = must(UdpSocket::connect(w, at, {}, at_client));
  client->send(text("early"));
  server = must(UdpSocket::adopt(w, fd, {}, at_server));
  BOOST_TEST(server->address().text() == at.text());
  BOOST_REQUIRE(served(1));
  BOOST_TEST(at_server.got[0].octets == "early");
  reply(text("answer"));
  BOOST_REQUIRE(turn_until(w, [&] { return !at_client.got.empty(); }));
}

BOOST_AUTO_TEST_CASE(adopts_nothing_else) {
  const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_TEST(!UdpSocket::adopt(w, tcp, {}, at_server).has_value());
  BOOST_TEST(::fcntl(tcp, F_GETFD) == -1);  // closed
  BOOST_TEST(!UdpSocket::adopt(w, -1, {}, at_server).has_value());
}

BOOST_AUTO_TEST_CASE(several_workers_share_a_port_and_strangers_do_not) {
  auto second = must(UdpSocket::open(w, server->address(), {}, at_server));
  BOOST_TEST(second->address().port() == server->address().port());
  const auto probe = probe_udp(server->address());
  BOOST_REQUIRE(!probe.has_value());
  BOOST_TEST(probe.error().what ==
             "cannot open UDP " + server->address().text() + ": Address already in use");
  UdpOptions alone;
  alone.reuse_port = false;
  BOOST_TEST(!UdpSocket::open(w, server->address(), alone, at_server).has_value());
  const Address at = server->address();
  server->close();
  second->close();
  BOOST_TEST(probe_udp(at).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
