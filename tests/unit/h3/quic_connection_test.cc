// QUIC itself, with HTTP/3 on top only to have something to carry: handshake, loss, paths, keys, the end.
#include <boost/test/unit_test.hpp>

#include "support/h3_rig.h"

namespace twp::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Answers every request with `text`.
void answer(H3PairRig& rig, std::string text = "hello") {
  rig.acceptor.setup = [text](Recorder& r) {
    r.on_end = [text](Recorder& me) { me.respond(200, text); };
  };
}

std::string pattern(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>('a' + i * 7 % 26);
  return s;
}

BOOST_AUTO_TEST_CASE(a_request_takes_two_round_trips) {
  H3PairRig rig;
  answer(rig);
  const Instant begin = rig.world.link.now();
  BOOST_REQUIRE(rig.open_up());
  BOOST_TEST(rig.client->peer().alpn == "h3");
  BOOST_TEST(rig.client->peer().tls_version == "TLSv1.3");
  BOOST_TEST(rig.client->peer().sni == "a.test");
  BOOST_TEST(!rig.client->peer().tls_resumed);
  Recorder* r = rig.get("/x");
  BOOST_REQUIRE(r != nullptr);
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(r->body == "hello");
  BOOST_TEST((r->fault == Fault::none));
  BOOST_TEST(rig.world.link.now() - begin <= 4 * 5'000'000u + 1'000'000u);
  BOOST_TEST(rig.server->peer().sni == "a.test");
  BOOST_TEST(rig.server->peer().remote.text() == "192.0.2.2:40000");
  BOOST_TEST(rig.server_end.opened == 1u);
  BOOST_TEST(rig.client_conn->version() == 1u);
}

BOOST_AUTO_TEST_CASE(version_two_works_like_version_one) {
  H3PairRig rig;
  answer(rig);
  rig.start({.host = "a.test", .verify_name = {}, .session_key = "k", .token = {}, .version = 0x6b3343cf});
  BOOST_REQUIRE(rig.until([&] { return rig.opened; }));
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(r->body == "hello");
  BOOST_TEST(rig.server_conn->version() == 0x6b3343cfu);
}

BOOST_AUTO_TEST_CASE(a_second_connection_resumes_the_session_but_not_with_another_version) {
  H3PairRig rig;
  answer(rig);
  const auto again = [&](std::uint32_t version) {
    rig.start({.host = "a.test", .verify_name = {}, .session_key = "k", .token = {}, .version = version});
    BOOST_REQUIRE(rig.until([&] { return rig.opened; }));
    Recorder* r = rig.get();
    BOOST_REQUIRE(rig.until([&] { return r->gone; }));
    const bool resumed = rig.client->peer().tls_resumed;
    rig.client->close(Fault::none);
    BOOST_REQUIRE(rig.until([&] { return rig.server_owner.session() == nullptr; }));
    rig.opened = rig.client_owner.gone = rig.server_owner.gone = false;
    return resumed;
  };
  BOOST_TEST(!again(1));
  BOOST_TEST(again(1));
  BOOST_TEST(!again(0x6b3343cf));
  BOOST_TEST(again(0x6b3343cf));
}

BOOST_AUTO_TEST_CASE(a_certificate_for_another_name_is_refused) {
  H3PairRig rig;
  rig.start({.host = "b.test", .verify_name = {}, .session_key = "k", .token = {}, .version = 1});
  BOOST_REQUIRE(rig.until([&] { return rig.open_failed; }));
  BOOST_TEST((rig.open_fault == Fault::tls_verify));
  BOOST_TEST(rig.open_detail.find("the certificate is not for b.test") != std::string::npos, rig.open_detail);
  BOOST_REQUIRE(rig.until([&] { return rig.server_owner.gone; }));
  BOOST_TEST((rig.server_owner.fault == Fault::tls_handshake));
}

BOOST_AUTO_TEST_CASE(no_protocol_in_common_is_said) {
  H3PairRig rig;
  H3Tls other({"hq-interop"});
  rig.tls.server = std::move(other.server);
  rig.start();
  BOOST_REQUIRE(rig.until([&] { return rig.open_failed; }));
  BOOST_TEST((rig.open_fault == Fault::tls_no_protocol));
  BOOST_REQUIRE(rig.until([&] { return rig.server_owner.gone; }));
  BOOST_TEST((rig.server_owner.fault == Fault::tls_no_protocol));
}

BOOST_AUTO_TEST_CASE(nobody_there_is_a_timeout) {
  H3PairRig rig;
  rig.world.link.blackout(Way::up, 0, ~Instant{0});
  rig.start();
  const Instant begin = rig.world.link.now();
  BOOST_REQUIRE(rig.until([&] { return rig.open_failed; }));
  BOOST_TEST((rig.open_fault == Fault::connect_timeout));
  BOOST_TEST(rig.world.link.now() - begin < 11'000'000'000u);
  BOOST_TEST(rig.client_end.datagrams > 3u);  // it tried more than once
}

/// Handshakes and both directions of a body survive whatever a network does to datagrams.
BOOST_AUTO_TEST_CASE(bodies_survive_loss_and_reordering) {
  const std::string text = pattern(300 * 1024);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    H3PairRig rig({}, seed);
    Conditions c;
    c.delay = milliseconds(5);
    c.jitter = milliseconds(seed % 3 == 0 ? 0 : 4);
    c.loss = seed % 4 == 0 ? 0.0 : 0.08;
    c.duplicate = 0.05;
    c.corrupt = seed % 2 == 0 ? 0.02 : 0.0;
    rig.world.link.both_ways(c);
    rig.acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& me) { me.respond(200, me.body); }; };
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_REQUIRE(rig.open_up());
      Recorder* r = rig.post("/echo", text);
      BOOST_REQUIRE(r != nullptr);
      BOOST_REQUIRE(rig.until([&] { return r->gone; }));
      BOOST_TEST((r->fault == Fault::none));
      BOOST_TEST((r->body == text));
      BOOST_TEST(r->sent == text.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(packets_grow_to_what_the_path_takes) {
  H3PairRig rig;
  answer(rig, pattern(400 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(rig.server_end.largest >= 1444u);
  BOOST_TEST(rig.server_end.trains * 4 < rig.server_end.datagrams);  // many a call
}

BOOST_AUTO_TEST_CASE(a_path_that_takes_less_is_no_obstacle) {
  H3PairRig rig;
  Conditions c;
  c.delay = milliseconds(5);
  c.mtu = 1252;
  rig.world.link.both_ways(c);
  answer(rig, pattern(200 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(r->body.size() == 200u * 1024);
  BOOST_TEST(rig.world.link.totals(Way::down).too_large > 0u);  // probes that failed
}

BOOST_AUTO_TEST_CASE(loopback_has_room_for_large_packets) {
  H3PairRig rig({}, 1, "127.0.0.1");
  rig.client_end.move_to(*Address::parse("127.0.0.1", 40000));
  Conditions c;
  c.mtu = 65507;
  rig.world.link.both_ways(c);
  answer(rig, pattern(1024 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(rig.server_end.largest == 65487u);
}

BOOST_AUTO_TEST_CASE(congestion_marks_come_back_and_slow_down) {
  H3PairRig rig;
  answer(rig, pattern(512 * 1024));
  BOOST_REQUIRE(rig.open_up());
  rig.world.link.conditions(Way::down).congested = 0.05;
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(rig.world.link.totals(Way::down).marked > 0u);
  BOOST_TEST(r->body.size() == 512u * 1024);
}

// --- paths ------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_nat_that_forgets_in_the_middle_of_a_body_does_no_harm) {
  H3PairRig rig;
  answer(rig, pattern(600 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->body.size() > 100'000; }));
  rig.world.link.rebind(rig.client_end.address, *Address::parse("192.0.2.9", 1234));
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST((r->fault == Fault::none));
  BOOST_TEST(r->body.size() == 600u * 1024);
  BOOST_TEST(rig.server->peer().remote.text() == "192.0.2.9:1234");
}

BOOST_AUTO_TEST_CASE(a_client_moves_to_another_address_in_the_middle_of_a_body) {
  H3PairRig rig;
  answer(rig, pattern(600 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->body.size() > 100'000; }));
  const Address to = *Address::parse("198.51.100.7", 5000);
  rig.client_end.move_to(to);
  BOOST_TEST(rig.client_conn->migrate({to, rig.server_end.address}));
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST((r->fault == Fault::none));
  BOOST_TEST(r->body.size() == 600u * 1024);
  BOOST_TEST(rig.server->peer().remote.text() == "198.51.100.7:5000");
  BOOST_TEST(rig.client->peer().local.text() == "198.51.100.7:5000");
}

/// RFC 9000 §8.1: three times what came, until the address is proven.
BOOST_AUTO_TEST_CASE(a_client_that_never_proves_its_address_gets_little) {
  H3PairRig rig;
  rig.world.link.blackout(Way::down, 0, ~Instant{0});
  std::uint64_t first = 0;
  rig.world.link.set_filter([&](Way way, std::uint64_t number, const LinkDatagram& d) {
    if (way == Way::up && number == 1) first = d.octets.size();
    return way == Way::down || number == 1;
  });
  rig.start();
  rig.world.pass(seconds(9));
  BOOST_TEST(first >= 1200u);
  BOOST_TEST(rig.server_end.sent > 0u);
  BOOST_TEST(rig.server_end.sent <= 3 * first);
}

// --- keys -------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(either_side_changes_keys_in_the_middle_of_a_body) {
  H3PairRig rig;
  answer(rig, pattern(6000 * 1024));
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return r->body.size() > 100'000; }));
  BOOST_TEST(rig.server_conn->update_keys());
  BOOST_REQUIRE(rig.until([&] { return r->body.size() > 300'000; }));
  BOOST_REQUIRE(rig.until([&] { return rig.client_conn->update_keys(); }));  // not right behind the other one
  BOOST_TEST(!r->gone);
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST((r->fault == Fault::none));
}

// --- the end ----------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_close_leaves_only_its_last_packet) {
  H3PairRig rig;
  BOOST_REQUIRE(rig.open_up());
  rig.client->close(Fault::none);
  BOOST_REQUIRE(rig.until([&] { return rig.server_owner.gone; }));
  BOOST_TEST((rig.server_owner.fault == Fault::peer_closed));
  BOOST_REQUIRE(rig.client_end.farewells.size() == 1u);
  const QuicFarewell& f = rig.client_end.farewells.front();
  BOOST_TEST(!f.packet.empty());
  BOOST_TEST(!f.ids.empty());
  BOOST_TEST(f.keep.count() > 0);
  // The other side has nothing to say to it.
  BOOST_REQUIRE(rig.server_end.farewells.size() == 1u);
  BOOST_TEST(rig.server_end.farewells.front().packet.empty());
  BOOST_TEST(rig.server_end.farewells.front().keep.count() > 0);
}

BOOST_AUTO_TEST_CASE(a_network_that_goes_dark_ends_the_connection_after_the_idle_timeout) {
  HttpLimits limits;
  limits.keep_alive_timeout = seconds(20);
  H3PairRig rig(limits);
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  BOOST_REQUIRE(rig.until([&] { return !rig.acceptor.streams.empty(); }));
  const Instant dark = rig.world.link.now();
  rig.world.link.blackout(Way::up, dark, ~Instant{0});
  rig.world.link.blackout(Way::down, dark, ~Instant{0});
  BOOST_REQUIRE(rig.until([&] { return rig.client_owner.gone && rig.server_owner.gone; }));
  BOOST_TEST((rig.client_owner.fault == Fault::idle_timeout));
  BOOST_TEST(r->gone);
  BOOST_TEST((r->fault == Fault::origin_reset));
  BOOST_TEST((rig.at_server().fault == Fault::client_reset));
  BOOST_TEST(rig.world.link.now() - dark < 40'000'000'000u);
}

BOOST_AUTO_TEST_CASE(a_request_that_takes_long_keeps_the_connection_alive) {
  HttpLimits limits;
  limits.keep_alive_timeout = seconds(20);
  H3PairRig rig(limits);
  BOOST_REQUIRE(rig.open_up());
  Recorder* r = rig.get();
  rig.world.pass(seconds(100));
  BOOST_REQUIRE(!rig.client_owner.gone);
  rig.at_server().respond(200, "late");
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(r->body == "late");
}

BOOST_AUTO_TEST_CASE(a_host_that_is_full_is_asked_again) {
  H3PairRig rig;
  answer(rig, pattern(100'000));
  BOOST_REQUIRE(rig.open_up());
  rig.server_end.full = true;
  Recorder* r = rig.get();
  rig.world.pass(seconds(1));
  BOOST_TEST(!r->gone);
  rig.server_end.full = false;
  rig.server_conn->sendable();
  BOOST_REQUIRE(rig.until([&] { return r->gone; }));
  BOOST_TEST(r->body.size() == 100'000u);
}

BOOST_AUTO_TEST_CASE(a_token_is_kept_for_the_next_connection) {
  H3PairRig rig;
  rig.server_end.token = {1, 2, 3, 4};
  BOOST_REQUIRE(rig.open_up());
  BOOST_REQUIRE(rig.until([&] { return !rig.client_conn->token().empty(); }));
  BOOST_TEST(rig.client_conn->token().size() == 4u);
}

}  // namespace
}  // namespace twp::test
