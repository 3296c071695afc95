// How an HTTP/3 connection lives and ends: timeouts, slow peers, draining.
#include <boost/test/unit_test.hpp>

#include "support/h3_raw.h"

namespace twp::test {
namespace {

using h3::frame;
using h3::headers;
using h3::request;
using h3::with;
using std::chrono::seconds;

BOOST_AUTO_TEST_CASE(an_idle_connection_ends_in_order) {
  HttpLimits limits;
  limits.keep_alive_timeout = seconds(20);
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  rig.acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& s) { s.respond(200, "ok"); }; };
  rig.world.pass(seconds(15));
  BOOST_TEST(!rig.owner.gone);
  rig.ask(headers(request()));
  rig.world.pass(seconds(15));
  BOOST_TEST(!rig.owner.gone);
  rig.world.pass(seconds(10));
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST((rig.owner.fault == Fault::none));
  BOOST_TEST(rig.peer.over);
  BOOST_TEST((rig.peer.fault == Fault::peer_closed));  // H3_NO_ERROR
}

BOOST_AUTO_TEST_CASE(a_head_that_does_not_end_is_not_waited_for) {
  HttpLimits limits;
  limits.head_timeout = seconds(5);
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  const std::string whole = headers(request());
  const auto id = rig.ask(whole.substr(0, whole.size() - 3), false);
  rig.world.pass(seconds(20));
  BOOST_TEST(rig.acceptor.streams.empty());
  BOOST_REQUIRE(rig.acceptor.rejects.size() == 1u);
  BOOST_TEST(log_word(rig.acceptor.rejects[0]) == "head-timeout");
  BOOST_TEST(rig.peer.in[id].find("408") != std::string::npos);
  BOOST_TEST(!rig.owner.gone);
}

/// Chats, watches, subscriptions: who leads them says something when there is something to say.
BOOST_AUTO_TEST_CASE(a_conversation_has_no_rate) {
  HttpLimits limits;
  limits.body_rate_window = seconds(3);
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  const auto id = rig.ask(headers(request("/", "POST")), false);
  rig.acceptor.streams.at(0)->send_head(Head::response(200, BodySize::unknown()), End::no);
  for (int i = 0; i < 10; ++i) {
    rig.peer.send(id, frame(h3::kData, "x"));
    rig.world.pass(seconds(1));
  }
  BOOST_TEST(!rig.acceptor.streams.at(0)->gone);
}

BOOST_AUTO_TEST_CASE(an_upload_that_drips_is_answered) {
  HttpLimits limits;
  limits.body_rate_window = seconds(3);
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  const auto id = rig.ask(headers(request("/", "POST")), false);
  for (int i = 0; i < 10; ++i) {
    rig.peer.send(id, frame(h3::kData, "x"));
    rig.world.pass(seconds(1));
  }
  BOOST_TEST(rig.acceptor.streams.at(0)->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "too-slow");
  BOOST_TEST(rig.peer.in[id].find("408") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_upload_that_waits_for_us_is_not_slow) {
  HttpLimits limits;
  limits.body_rate_window = seconds(3);
  limits.stream_window = 10'000;
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  rig.ask(headers(request("/", "POST")) + frame(h3::kData, std::string(50'000, 'x')), false);
  rig.world.pass(seconds(30));
  BOOST_TEST(!rig.acceptor.streams.at(0)->gone);
}

BOOST_AUTO_TEST_CASE(an_answer_that_nobody_takes_is_given_up) {
  HttpLimits limits;
  limits.stream_idle_timeout = seconds(30);
  h3::H3ServerRig rig(limits);
  BOOST_REQUIRE(rig.greet());
  rig.peer.credit = false;
  rig.acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& s) { s.respond(200, std::string(1 << 20, 'y')); }; };
  rig.ask(headers(request()));
  rig.world.pass(seconds(20));
  BOOST_TEST(!rig.acceptor.streams.at(0)->gone);
  rig.world.pass(seconds(20));
  BOOST_TEST(rig.acceptor.streams.at(0)->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "idle");
  BOOST_TEST(!rig.owner.gone);
}

/// RFC 9114 §5.2: first "no more", then which were the last; what came in between is served.
BOOST_AUTO_TEST_CASE(draining_says_so_twice) {
  h3::H3ServerRig rig;
  BOOST_REQUIRE(rig.greet());
  const auto first = rig.ask(headers(request("/a")));
  std::int64_t control = -1;
  for (const auto& [id, octets] : rig.peer.in)
    if (id % 4 == 3 && octets.starts_with('\0')) control = id;
  BOOST_REQUIRE(control >= 0);
  const std::size_t before = rig.peer.in[control].size();
  rig.owner.session()->drain();
  rig.world.pass(std::chrono::milliseconds(10));
  BOOST_TEST(rig.peer.in[control].substr(before) == frame(h3::kGoaway, h3::varint((std::uint64_t{1} << 62) - 4)));
  const auto second = rig.ask(headers(request("/b")));
  rig.world.pass(seconds(2));
  BOOST_TEST(rig.peer.in[control].ends_with(frame(h3::kGoaway, h3::varint(static_cast<std::uint64_t>(second) + 4))));
  const auto late = rig.ask(headers(request("/c")));
  BOOST_TEST(rig.peer.resets[late] == 0x10bu);
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
  for (const auto& r : rig.acceptor.streams) r->respond(200, "last");
  rig.world.pass(seconds(1));
  BOOST_TEST(rig.peer.in[first].ends_with("last"));
  BOOST_TEST(rig.peer.in[second].ends_with("last"));
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST((rig.peer.fault == Fault::peer_closed));
}

BOOST_AUTO_TEST_CASE(a_draining_client_goes_when_it_is_empty) {
  h3::H3ClientRig rig;
  BOOST_REQUIRE(rig.greet());
  Recorder* r = rig.get();
  rig.session->drain();
  BOOST_TEST(rig.session->capacity() == 0u);
  rig.world.pass(seconds(1));
  BOOST_TEST(!rig.owner.gone);
  rig.answer(0, headers({{":status", "200"}}) + frame(h3::kData, "last"));
  BOOST_TEST(r->body == "last");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST((rig.peer.fault == Fault::peer_closed));
}

BOOST_AUTO_TEST_CASE(a_lost_connection_tells_what_was_sent) {
  h3::H3ClientRig rig;
  BOOST_REQUIRE(rig.greet());
  Recorder* asked = rig.get();
  rig.peer.conn->close(0x102, Fault::internal);
  Recorder* unsent = rig.open();
  if (unsent != nullptr) unsent->send_head(Head::request(Method::get, "https", "a.test", "/"), End::yes);
  rig.world.pass(seconds(1));
  BOOST_TEST(log_word(asked->fault) == "origin-reset");
  BOOST_TEST(rig.owner.gone);
}

/// A request by urgency (RFC 9218): the small and urgent answer does not wait behind the large one.
BOOST_AUTO_TEST_CASE(a_response_leaves_by_urgency) {
  h3::H3ServerRig rig;
  BOOST_REQUIRE(rig.greet());
  const auto large = rig.peer.open(true, headers(with(request("/large"), "priority", "u=6")), true);
  const auto small = rig.peer.open(true, headers(with(request("/small"), "priority", "u=1")), true);
  rig.quiet();
  BOOST_REQUIRE(rig.acceptor.streams.size() == 2u);
  for (const auto& r : rig.acceptor.streams) r->respond(200, std::string(150'000, r->head->path == "/large" ? 'l' : 's'));
  BOOST_REQUIRE(rig.until([&] { return rig.peer.ended[small] || rig.peer.ended[large]; }));
  BOOST_TEST(rig.peer.ended[small]);
  BOOST_TEST(!rig.peer.ended[large]);
}

}  // namespace
}  // namespace twp::test
