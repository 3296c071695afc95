#include "proxy/origin_pool.h"

#include <boost/test/unit_test.hpp>

#include <deque>
#include <map>

#include "pool_rig.h"
#include "proxy/cluster.h"

using namespace twp;
using namespace twp::test;

namespace {

using Client = PoolClient;
using Rig = PoolRig;

}  // namespace

BOOST_AUTO_TEST_SUITE(origin_pool)

BOOST_AUTO_TEST_CASE(never_more_dials_than_waiters_nor_than_the_limit) {
  PoolLimits l;
  l.max_connections = 3;
  Rig rig(l);
  for (int i = 0; i < 5; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 3u);
  BOOST_TEST(rig.pool.waiting() == 5u);
  for (int i = 0; i < 3; ++i) rig.connector.succeed();
  BOOST_TEST(rig.pool.waiting() == 2u);
  BOOST_TEST(rig.pool.connections() == 3u);
  BOOST_CHECK(rig.clients[0].stream != nullptr);
  BOOST_CHECK(rig.clients[3].stream == nullptr);
  rig.clients[1].finish(rig.worker);
  BOOST_CHECK(rig.clients[3].stream != nullptr);  // in the order they came
  BOOST_TEST(rig.clients[3].reused);
  BOOST_TEST(rig.connector.started == 3u);
}

BOOST_AUTO_TEST_CASE(one_client_with_many_requests_does_not_keep_others_waiting) {
  Rig rig;
  const int greedy = 0, modest = 0;
  for (int i = 0; i < 50; ++i) rig.clients.emplace_back().ask(rig.pool, OriginPool::Reuse::yes, &greedy);
  PoolClient& other = rig.clients.emplace_back();
  other.ask(rig.pool, OriginPool::Reuse::yes, &modest);
  rig.worker.turn(Duration::zero());
  for (int i = 0; i < 2; ++i) rig.connector.succeed();
  BOOST_CHECK(rig.clients[0].stream != nullptr);
  BOOST_CHECK(other.stream != nullptr);
  BOOST_CHECK(rig.clients[1].stream == nullptr);
}

// A hundred requests of one client may come and be reset within two turns.
BOOST_AUTO_TEST_CASE(a_crowd_is_dialled_for_over_several_turns) {
  Rig rig;
  for (int i = 0; i < 100; ++i) rig.clients.emplace_back().ask(rig.pool);
  rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.connector.started == 4u);
  rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.connector.started == 8u);
  for (std::size_t i = 40; i < 100; ++i) rig.pool.cancel(rig.clients[i]);
  for (int i = 0; i < 10; ++i) rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.connector.started == 40u);
  BOOST_TEST(rig.pool.dialing() == 40u);
}

BOOST_AUTO_TEST_CASE(the_connection_used_last_is_used_first) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.ask();
  for (int i = 0; i < 3; ++i) rig.connector.succeed();
  for (const int i : {0, 2, 1}) rig.clients[static_cast<std::size_t>(i)].finish(rig.worker);
  BOOST_TEST(rig.pool.idle() == 3u);
  Client& c = rig.ask();
  BOOST_CHECK(&c.stream->session() == &rig.connector.sessions[1]);
}

BOOST_AUTO_TEST_CASE(idle_connections_are_bounded_in_number_and_age) {
  PoolLimits l;
  l.max_idle = 2;
  l.idle_timeout = std::chrono::milliseconds(20);
  Rig rig(l);
  for (int i = 0; i < 3; ++i) rig.ask();
  for (int i = 0; i < 3; ++i) rig.connector.succeed();
  for (Client& c : rig.clients) c.finish(rig.worker);
  BOOST_TEST(rig.pool.idle() == 2u);
  BOOST_TEST(rig.connector.sessions[0].over);  // idle longest
  BOOST_TEST(wait_for(rig.worker, [&] { return rig.pool.connections() == 0; }));
  BOOST_TEST(rig.counters.origin_idle == 0u);
  BOOST_TEST(rig.counters.origin_connections == 0u);
}

BOOST_AUTO_TEST_CASE(a_connection_that_dies_idle_is_forgotten) {
  Rig rig;
  rig.ask();
  rig.connector.succeed().close(Fault::peer_closed);
  BOOST_CHECK(rig.clients[0].stream == nullptr);
  BOOST_TEST(rig.pool.connections() == 0u);
  Client& c = rig.ask();
  BOOST_TEST(rig.pool.dialing() == 1u);
  rig.connector.succeed();
  c.finish(rig.worker);
  rig.connector.sessions[1].close(Fault::peer_closed);
  BOOST_TEST(rig.pool.idle() == 0u);
}

BOOST_AUTO_TEST_CASE(a_replay_gets_a_new_connection) {
  PoolLimits l;
  l.max_connections = 2;
  Rig rig(l);
  for (int i = 0; i < 2; ++i) rig.ask();
  for (int i = 0; i < 2; ++i) rig.connector.succeed();
  for (Client& c : rig.clients) c.finish(rig.worker);
  Client& c = rig.ask(OriginPool::Reuse::no);
  BOOST_CHECK(c.stream == nullptr);
  BOOST_TEST(rig.pool.dialing() == 1u);  // the oldest idle one made room
  BOOST_TEST(rig.connector.sessions[0].over);
  rig.connector.succeed();
  BOOST_CHECK(c.stream != nullptr);
  BOOST_TEST(!c.reused);
}

BOOST_AUTO_TEST_CASE(multiplexing_fills_one_connection_before_the_next) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.ask();
  BOOST_TEST(rig.pool.dialing() == 3u);  // nobody knows yet that one would do
  rig.connector.succeed(100);
  for (const Client& c : rig.clients) BOOST_CHECK(&c.stream->session() == &rig.connector.sessions[0]);
  for (int i = 0; i < 50; ++i) rig.ask();
  BOOST_TEST(rig.connector.sessions[0].active() == 53u);
  BOOST_TEST(rig.pool.load() == 53u);
  BOOST_TEST(rig.connector.started == 3u);
}

BOOST_AUTO_TEST_CASE(cancelled_and_destroyed_waiters_are_taken_out) {
  Rig rig;
  {
    Client gone;
    gone.ask(rig.pool);
    BOOST_TEST(rig.pool.waiting() == 1u);
  }
  BOOST_TEST(rig.pool.waiting() == 0u);
  Client& c = rig.ask();
  rig.pool.cancel(c);
  rig.pool.cancel(c);
  BOOST_TEST(rig.counters.waiting == 0u);
  rig.connector.succeed();
  BOOST_CHECK(c.stream == nullptr);
  BOOST_TEST(rig.pool.idle() == 1u);
}

BOOST_AUTO_TEST_CASE(failed_dials_fail_one_waiter_each_and_back_off) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.fail(Fault::connect_refused);
  BOOST_CHECK(rig.clients[0].failed == Fault::connect_refused);
  BOOST_CHECK(rig.clients[1].failed == Fault::none);
  BOOST_TEST(rig.pool.backing_off());
  rig.connector.succeed();
  BOOST_TEST(!rig.pool.backing_off());
  BOOST_CHECK(rig.clients[1].stream != nullptr);
  rig.connector.fail(Fault::connect_timeout);
  BOOST_CHECK(rig.clients[2].failed == Fault::connect_timeout);
  BOOST_TEST(rig.pool.dialing() == 0u);
}

BOOST_AUTO_TEST_CASE(without_descriptors_requests_wait) {
  PoolLimits limits;
  limits.queue_timeout = std::chrono::milliseconds(400);
  Rig rig(limits);
  for (int i = 0; i < 3; ++i) rig.ask();
  rig.connector.succeed();
  rig.connector.fail(Fault::too_many_files);
  rig.connector.fail(Fault::too_many_files);
  BOOST_CHECK(rig.clients[1].failed == Fault::none);
  BOOST_TEST(!rig.pool.backing_off());
  BOOST_TEST(rig.pool.dialing() == 0u);
  // The connection there is serves the next one; and after a moment, not at once, a dial is tried for the last.
  rig.clients[0].finish(rig.worker);
  BOOST_CHECK(rig.clients[1].stream != nullptr);
  BOOST_TEST(rig.connector.started == 3u);
  const auto turn_until = [&](auto done) {
    for (const Instant end = monotonic_now() + 10'000'000'000u; !done() && monotonic_now() < end;) rig.worker.turn(std::chrono::milliseconds(5));
    return done();
  };
  BOOST_TEST(turn_until([&] { return rig.connector.started == 4u; }));
  rig.connector.fail(Fault::too_many_files);
  // But not for ever.
  BOOST_TEST(turn_until([&] {
    while (!rig.connector.dials.empty()) rig.connector.fail(Fault::too_many_files);
    return rig.clients[2].failed != Fault::none;
  }));
  BOOST_CHECK(rig.clients[2].failed == Fault::queue_timeout);
}

BOOST_AUTO_TEST_CASE(shutting_down_closes_idle_lets_the_rest_end_and_says_when) {
  Rig rig;
  for (int i = 0; i < 4; ++i) rig.ask();
  for (int i = 0; i < 2; ++i) rig.connector.succeed();
  rig.clients[0].finish(rig.worker);  // serves the third
  rig.clients[1].finish(rig.worker);  // serves the fourth; two dials are left over
  rig.clients[2].finish(rig.worker);
  BOOST_TEST(rig.pool.idle() == 1u);
  rig.pool.shut_down();
  BOOST_TEST(rig.pool.dialing() == 0u);
  BOOST_TEST(rig.pool.connections() == 1u);
  BOOST_TEST(rig.empty == 0);
  BOOST_CHECK(rig.ask().failed == Fault::shutdown);
  rig.clients[3].finish(rig.worker);
  rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.empty == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(balancing)

namespace {

struct ClusterRig {
  explicit ClusterRig(config::Balance balance, std::vector<unsigned> weights) : cluster("c", balance, 12345) {
    for (const unsigned w : weights) {
      const std::string host = "o" + std::to_string(targets.size() + 1) + ".test";
      targets.emplace_back().host = host;
      pools.emplace_back(worker, connector, targets.back(), PoolLimits{}, counters);
      cluster.add({&pools.back(), "", targets.back().host, w, 0});
    }
  }
  std::map<std::string, int> draw(int n) {
    std::map<std::string, int> out;
    for (int i = 0; i < n; ++i) ++out[cluster.pick()->label];
    return out;
  }
  Worker worker;
  Counters counters;
  FakeConnector connector{worker};
  std::deque<DialTarget> targets;
  std::deque<OriginPool> pools;
  Cluster cluster;
};

}  // namespace

BOOST_AUTO_TEST_CASE(round_robin_is_smooth_and_weighted) {
  ClusterRig rig(config::Balance::round_robin, {5, 1, 1});
  std::string order;
  for (int i = 0; i < 7; ++i) order += rig.cluster.pick()->label[1];
  BOOST_TEST(order == "1121311");
}

BOOST_AUTO_TEST_CASE(random_follows_the_weights) {
  ClusterRig rig(config::Balance::random, {3, 1, 0});
  auto n = rig.draw(4000);
  BOOST_TEST(n["o1.test"] > 2800);
  BOOST_TEST(n["o1.test"] < 3200);
  BOOST_TEST(n["o3.test"] == 0);
}

BOOST_AUTO_TEST_CASE(of_two_the_less_loaded) {
  ClusterRig rig(config::Balance::least_of_two, {1, 1});
  std::deque<Client> busy(3);
  for (Client& c : busy) c.ask(rig.pools[0]);
  auto n = rig.draw(100);
  BOOST_TEST(n["o2.test"] == 100);
}

BOOST_AUTO_TEST_CASE(an_origin_in_back_off_is_passed_over_unless_all_are) {
  for (const auto balance : {config::Balance::round_robin, config::Balance::random, config::Balance::least_of_two}) {
    ClusterRig rig(balance, {1, 1});
    const auto break_pool = [&](OriginPool& pool) {
      Client c;
      c.ask(pool);
      rig.connector.fail(Fault::connect_refused);
    };
    break_pool(rig.pools[0]);
    BOOST_TEST(rig.draw(20)["o2.test"] == 20);
    break_pool(rig.pools[1]);
    auto n = rig.draw(40);
    BOOST_TEST(n["o1.test"] > 0);
    BOOST_TEST(n["o2.test"] > 0);
    BOOST_TEST(rig.cluster.pick(&rig.cluster.members()[0])->label == "o2.test");
  }
}

BOOST_AUTO_TEST_CASE(one_member_and_none) {
  ClusterRig one(config::Balance::least_of_two, {1});
  BOOST_TEST(one.cluster.pick(&one.cluster.members()[0])->label == "o1.test");
  ClusterRig none(config::Balance::round_robin, {0, 0});
  BOOST_CHECK(none.cluster.pick() == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
