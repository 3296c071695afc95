// The pool with connections that carry many requests at once.
#include <boost/test/unit_test.hpp>

#include "pool_rig.h"

using namespace twp;
using namespace twp::test;

namespace {

struct Rig : PoolRig {
  explicit Rig(PoolLimits l = {}, const std::string& http = "h2") : PoolRig(l, http) {}
  FakeSession& session(std::size_t i) { return connector.sessions[i]; }
  bool on(const PoolClient& c, std::size_t i) {
    return c.stream != nullptr && &c.stream->session() == &session(i);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(multiplexing)

BOOST_AUTO_TEST_CASE(a_burst_shares_one_dial) {
  Rig rig;
  for (int i = 0; i < 60; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed(100);
  for (const PoolClient& c : rig.clients) BOOST_TEST(rig.on(c, 0));
  BOOST_TEST(rig.pool.connections() == 1u);
  BOOST_TEST(rig.pool.load() == 60u);
}

BOOST_AUTO_TEST_CASE(a_burst_beyond_one_connection_dials_as_many_as_are_needed) {
  Rig rig;
  for (int i = 0; i < 250; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 3u);
  for (int i = 0; i < 3; ++i) rig.connector.succeed(100);
  BOOST_TEST(rig.pool.waiting() == 0u);
  BOOST_TEST(rig.session(0).active() == 100u);
  BOOST_TEST(rig.session(2).active() == 50u);
}

BOOST_AUTO_TEST_CASE(fewer_streams_than_expected_make_more_dials) {
  Rig rig;
  for (int i = 0; i < 30; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed(10);
  BOOST_TEST(rig.pool.expected_streams() == 10u);
  BOOST_TEST(rig.pool.waiting() == 20u);
  BOOST_TEST(rig.pool.dialing() == 2u);
  rig.connector.succeed(10);
  rig.connector.succeed(10);
  BOOST_TEST(rig.pool.waiting() == 0u);
}

/// What "auto" turns out to be is remembered: the first burst waits for one handshake, later ones do not.
BOOST_AUTO_TEST_CASE(an_origin_that_turns_out_to_take_one_at_a_time) {
  Rig rig({}, "auto");
  for (int i = 0; i < 5; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed(1);
  BOOST_TEST(rig.pool.expected_streams() == 1u);
  BOOST_TEST(rig.pool.dialing() == 4u);
  for (int i = 0; i < 4; ++i) rig.connector.succeed(1);
  BOOST_TEST(rig.pool.waiting() == 0u);
  for (int i = 0; i < 3; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 3u);
}

/// Until the origin has said how many it takes, it gets one request; the others wait for its word and not for more dials.
BOOST_AUTO_TEST_CASE(one_request_goes_ahead_of_the_origins_settings) {
  Rig rig;
  for (int i = 0; i < 50; ++i) rig.ask();
  rig.connector.succeed_unsettled();
  BOOST_TEST(rig.session(0).active() == 1u);
  BOOST_TEST(rig.pool.waiting() == 49u);
  BOOST_TEST(rig.pool.dialing() == 0u);
  for (int i = 0; i < 10; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 0u);
  BOOST_TEST(rig.pool.expected_streams() == 100u);
  rig.session(0).set_max(100);
  BOOST_TEST(rig.pool.waiting() == 0u);
  BOOST_TEST(rig.session(0).active() == 60u);
  BOOST_TEST(rig.connector.started == 1u);
}

BOOST_AUTO_TEST_CASE(an_origin_that_takes_few_gets_as_many_connections_as_are_needed) {
  Rig rig;
  for (int i = 0; i < 50; ++i) rig.ask();
  rig.connector.succeed_unsettled().set_max(2);
  BOOST_TEST(rig.pool.expected_streams() == 2u);
  for (int i = 0; i < 5; ++i) rig.worker.turn(Duration::zero());  // more than are dialled in one turn
  BOOST_TEST(rig.pool.dialing() == 24u);
  for (int i = 0; i < 24; ++i) rig.connector.succeed_unsettled();
  BOOST_TEST(rig.pool.waiting() == 24u);
  BOOST_TEST(rig.pool.dialing() == 0u);
  for (std::size_t i = 1; i < 25; ++i) rig.session(i).set_max(2);
  BOOST_TEST(rig.pool.waiting() == 0u);
  BOOST_TEST(rig.connector.started == 25u);
  for (const PoolClient& c : rig.clients) BOOST_CHECK(c.stream != nullptr);
}

BOOST_AUTO_TEST_CASE(an_origin_that_takes_one_at_a_time_is_no_queue_of_dials) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.ask();
  rig.connector.succeed_unsettled().set_max(1);
  BOOST_TEST(rig.pool.expected_streams() == 1u);
  BOOST_TEST(rig.pool.dialing() == 4u);
  for (int i = 0; i < 4; ++i) rig.connector.succeed_unsettled().set_max(1);
  BOOST_TEST(rig.pool.waiting() == 0u);
  BOOST_TEST(rig.connector.started == 5u);
}

/// An idle one of which nothing is known yet: the next request goes ahead, the one behind it waits.
BOOST_AUTO_TEST_CASE(a_connection_whose_request_has_gone_before_it_was_settled) {
  Rig rig;
  rig.pool.cancel(rig.ask());
  rig.connector.succeed_unsettled();
  BOOST_TEST(rig.pool.idle() == 1u);
  BOOST_TEST(rig.on(rig.ask(), 0));
  PoolClient& behind = rig.ask();
  BOOST_CHECK(behind.stream == nullptr);
  BOOST_TEST(rig.connector.started == 1u);
  rig.clients[1].finish(rig.worker);  // answered before SETTINGS came: no origin does it, and nothing hangs
  BOOST_TEST(rig.on(behind, 0));
  rig.session(0).set_max(10);
  BOOST_TEST(rig.pool.expected_streams() == 10u);
}

BOOST_AUTO_TEST_CASE(an_origin_that_never_says_it_keeps_nobody_for_ever) {
  PoolLimits l;
  l.queue_timeout = std::chrono::milliseconds(30);
  Rig rig(l);
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.succeed_unsettled();
  BOOST_TEST(rig.on(rig.clients[0], 0));
  BOOST_TEST(wait_for(rig.worker, [&] { return rig.clients[2].failed != Fault::none; }));
  BOOST_CHECK(rig.clients[1].failed == Fault::queue_timeout);
  BOOST_TEST(rig.connector.started == 1u);
}

BOOST_AUTO_TEST_CASE(one_that_dies_before_it_has_said_it_is_dialled_again_for_the_rest) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.succeed_unsettled().close(Fault::origin_timeout);
  BOOST_CHECK(rig.clients[0].stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed_unsettled();
  BOOST_TEST(rig.pool.dialing() == 0u);
  rig.session(1).set_max(100);
  BOOST_TEST(rig.pool.waiting() == 0u);
  BOOST_TEST(rig.connector.started == 2u);
}

BOOST_AUTO_TEST_CASE(the_connection_in_use_is_filled_before_another_is) {
  Rig rig;
  for (int i = 0; i < 12; ++i) rig.ask();
  rig.connector.succeed(10);
  rig.connector.succeed(10);
  BOOST_TEST(rig.session(0).active() == 10u);
  BOOST_TEST(rig.session(1).active() == 2u);
  rig.clients[3].finish(rig.worker);  // room on the full one, which is used again before the other fills up
  BOOST_TEST(rig.on(rig.ask(), 0));
  BOOST_TEST(rig.on(rig.ask(), 1));
  BOOST_TEST(rig.connector.started == 2u);
}

BOOST_AUTO_TEST_CASE(one_is_idle_when_its_last_stream_has_gone_and_not_before) {
  PoolLimits l;
  l.idle_timeout = std::chrono::milliseconds(20);
  Rig rig(l);
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.succeed(100);
  for (const std::size_t i : {1, 0}) {
    rig.clients[i].finish(rig.worker);
    BOOST_TEST(rig.pool.idle() == 0u);
  }
  BOOST_TEST(rig.pool.load() == 1u);
  for (int i = 0; i < 20; ++i) rig.worker.turn(std::chrono::milliseconds(2));
  BOOST_TEST(rig.pool.connections() == 1u);
  rig.clients[2].finish(rig.worker);
  BOOST_TEST(rig.pool.idle() == 1u);
  BOOST_TEST(rig.counters.origin_idle == 1u);
  BOOST_TEST(rig.pool.load() == 0u);
  BOOST_TEST(wait_for(rig.worker, [&] { return rig.pool.connections() == 0; }));
  BOOST_TEST(rig.counters.origin_idle == 0u);
}

BOOST_AUTO_TEST_CASE(a_connection_that_is_going_takes_no_more_and_its_streams_finish) {
  Rig rig;
  for (int i = 0; i < 2; ++i) rig.ask();
  rig.connector.succeed(100);
  rig.session(0).go_away();
  PoolClient& next = rig.ask();
  BOOST_CHECK(next.stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed(100);
  BOOST_TEST(rig.on(next, 1));
  for (const std::size_t i : {0, 1}) rig.clients[i].finish(rig.worker);
  BOOST_TEST(rig.session(0).over);
  BOOST_TEST(rig.pool.connections() == 1u);
  BOOST_TEST(rig.pool.load() == 1u);
}

BOOST_AUTO_TEST_CASE(at_the_limit_of_connections_requests_wait_for_a_stream) {
  PoolLimits l;
  l.max_connections = 1;
  Rig rig(l);
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.succeed(2);
  BOOST_CHECK(rig.clients[2].stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 0u);
  rig.clients[0].finish(rig.worker);
  BOOST_TEST(rig.on(rig.clients[2], 0));
}

BOOST_AUTO_TEST_CASE(a_replay_never_meets_a_connection_that_was_open_before) {
  Rig rig;
  for (int i = 0; i < 2; ++i) rig.ask();
  rig.connector.succeed(100);
  PoolClient& again = rig.ask(OriginPool::Reuse::no);
  rig.clients[0].finish(rig.worker);  // room on the old one, of which the pool hears
  BOOST_CHECK(again.stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 1u);
  BOOST_TEST(rig.on(rig.ask(), 0));  // who does not mind is not kept waiting
  rig.connector.succeed(100);
  BOOST_TEST(rig.on(again, 1));
}

BOOST_AUTO_TEST_CASE(a_replay_takes_what_there_is_when_no_other_can_be_had) {
  PoolLimits l;
  l.max_connections = 1;
  Rig full(l);
  full.ask();
  full.connector.succeed(100);
  BOOST_TEST(full.on(full.ask(OriginPool::Reuse::no), 0));

  Rig rig;
  rig.ask();
  rig.connector.succeed(100);
  PoolClient& again = rig.ask(OriginPool::Reuse::no);
  rig.connector.fail(Fault::connect_refused);
  BOOST_TEST(rig.on(again, 0));
  BOOST_CHECK(again.failed == Fault::none);
  BOOST_TEST(rig.on(rig.ask(OriginPool::Reuse::no), 0));  // nothing is dialled while the origin backs off
  BOOST_TEST(rig.pool.dialing() == 0u);
}

BOOST_AUTO_TEST_CASE(a_dial_that_fails_beside_a_connection_that_works_fails_nobody) {
  PoolLimits l;
  l.queue_timeout = std::chrono::milliseconds(30);
  Rig rig(l);
  for (int i = 0; i < 2; ++i) rig.ask();
  rig.connector.succeed(2);
  PoolClient& first = rig.ask();
  PoolClient& second = rig.ask();
  rig.connector.fail(Fault::connect_refused);
  BOOST_TEST(rig.pool.waiting() == 2u);
  BOOST_TEST(rig.pool.dialing() == 0u);  // no dial after the other in a circle
  rig.clients[0].finish(rig.worker);
  BOOST_TEST(rig.on(first, 0));
  BOOST_TEST(wait_for(rig.worker, [&] { return second.failed != Fault::none; }));
  BOOST_CHECK(second.failed == Fault::queue_timeout);
}

BOOST_AUTO_TEST_CASE(a_dial_that_fails_with_nothing_connected_fails_all_who_shared_it) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.fail(Fault::connect_refused);
  for (const PoolClient& c : rig.clients) BOOST_CHECK(c.failed == Fault::connect_refused);
  BOOST_TEST(rig.connector.started == 1u);
}

BOOST_AUTO_TEST_CASE(a_connection_that_dies_takes_its_streams_and_no_count_is_lost) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.ask();
  rig.connector.succeed(100);
  rig.session(0).close(Fault::peer_reset);
  for (const PoolClient& c : rig.clients) BOOST_CHECK(c.stream == nullptr);
  BOOST_TEST(rig.pool.load() == 0u);
  BOOST_TEST(rig.pool.connections() == 0u);
  BOOST_TEST(rig.counters.origin_connections == 0u);
}

BOOST_AUTO_TEST_CASE(the_origin_changes_its_mind_about_how_many) {
  Rig rig;
  for (int i = 0; i < 4; ++i) rig.ask();
  rig.connector.succeed(100);
  rig.session(0).set_max(4);  // SETTINGS: full now
  PoolClient& waits = rig.ask();
  BOOST_CHECK(waits.stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.session(0).set_max(50);
  BOOST_TEST(rig.on(waits, 0));
  BOOST_TEST(rig.pool.expected_streams() == 50u);
}

BOOST_AUTO_TEST_SUITE_END()
