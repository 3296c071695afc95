// The link that QUIC is tested over: each condition does what it says, and equal seeds make equal runs.
#include "support/lossy_link.h"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace twp;
using namespace twp::test;
using std::chrono::milliseconds;

namespace {

std::vector<std::byte> numbered(std::uint32_t n, std::size_t size) {
  std::vector<std::byte> v(std::max<std::size_t>(size, 4));
  for (std::size_t i = 0; i < 4; ++i) v[i] = static_cast<std::byte>(n >> (8 * i));
  return v;
}

std::uint32_t number_of(const LinkDatagram& d) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4; ++i) n |= static_cast<std::uint32_t>(d.octets[i]) << (8 * i);
  return n;
}

Instant ms(std::uint64_t n) { return n * 1'000'000u; }

struct Fixture {
  explicit Fixture(std::uint64_t seed = 1) : link(seed, 0) {
    link.attach(server, true, [this](const LinkDatagram& d) { at_server.push_back(seen(d)); });
    link.attach(client, false, [this](const LinkDatagram& d) { at_client.push_back(seen(d)); });
  }
  struct Seen {
    Instant when;
    std::uint32_t number;
    Address from;
    Ecn ecn;
    std::size_t size;
  };
  Seen seen(const LinkDatagram& d) const {
    return {link.now(), number_of(d), d.from, d.ecn, d.octets.size()};
  }
  void up(std::uint32_t n, std::size_t size = 100, Ecn ecn = Ecn::ect0) {
    link.send({numbered(n, size), client, server, ecn});
  }
  void down(std::uint32_t n, const Address& to, std::size_t size = 100) {
    link.send({numbered(n, size), server, to, Ecn::ect0});
  }
  void up_many(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) up(i);
    link.advance_to(ms(1'000'000));
  }
  void balanced(Way way) {
    const WayTotals& t = link.totals(way);
    BOOST_TEST(t.offered + t.duplicated ==
               t.delivered + t.lost + t.too_large + t.overflow + t.filtered + t.dark + t.astray);
  }
  const Address server = *Address::parse("192.0.2.1", 443);
  const Address client = *Address::parse("10.0.0.1", 5000);
  const Address outside = *Address::parse("198.51.100.9", 6000);
  LossyLink link;
  std::vector<Seen> at_server, at_client;
};

/// A run with everything at once; what has happened as one number.
std::uint64_t wild_run(std::uint64_t seed) {
  Fixture f(seed);
  Conditions c;
  c.loss = c.corrupt = c.duplicate = c.congested = 0.1;
  c.burst_begin = 0.02;
  c.burst_end = 0.3;
  c.delay = milliseconds(20);
  c.jitter = milliseconds(15);
  c.bandwidth = 1'000'000;
  f.link.both_ways(c);
  f.link.at(ms(50), [&] { f.link.rebind(f.client, f.outside); });
  for (std::uint32_t i = 0; i < 300; ++i)
    f.link.at(ms(i), [&f, i] {
      f.up(i);
      f.down(i, i < 60 ? f.client : f.outside);
    });
  f.link.advance_to(ms(2000));
  f.balanced(Way::up);
  f.balanced(Way::down);
  return f.link.fingerprint();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lossy_link, Fixture)

BOOST_AUTO_TEST_CASE(a_perfect_link_delivers_in_order) {
  link.conditions(Way::up).delay = milliseconds(10);
  for (std::uint32_t i = 0; i < 5; ++i) up(i, 100 + i, Ecn::ect1);
  BOOST_TEST(at_server.empty());  // never from inside send()
  BOOST_TEST(link.next().value() == ms(10));
  link.advance_to(ms(9));
  BOOST_TEST(at_server.empty());
  link.advance_to(ms(30));
  BOOST_REQUIRE(at_server.size() == 5u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    BOOST_TEST(at_server[i].number == i);
    BOOST_TEST(at_server[i].when == ms(10));
    BOOST_TEST(at_server[i].size == 100u + i);
    BOOST_TEST((at_server[i].ecn == Ecn::ect1));
    BOOST_TEST(at_server[i].from.text() == client.text());
  }
  BOOST_TEST(link.now() == ms(30));
  BOOST_TEST(!link.next().has_value());
  BOOST_TEST(link.totals(Way::up).octets_delivered == 510u);
}

BOOST_AUTO_TEST_CASE(the_ways_are_apart) {
  link.conditions(Way::up).loss = 1;
  up(1);
  down(2, client);
  link.advance_to(ms(1));
  BOOST_TEST(at_server.empty());
  BOOST_TEST(at_client.size() == 1u);
}

BOOST_AUTO_TEST_CASE(equal_seeds_make_equal_runs) {
  BOOST_TEST(wild_run(7) == wild_run(7));
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 0; seed < 10; ++seed) different.insert(wild_run(seed));
  BOOST_TEST(different.size() == 10u);
}

BOOST_AUTO_TEST_CASE(loss_comes_at_its_rate) {
  link.conditions(Way::up).loss = 0.1;
  up_many(10000);
  BOOST_TEST(link.totals(Way::up).lost > 850u);
  BOOST_TEST(link.totals(Way::up).lost < 1150u);
  balanced(Way::up);
}

BOOST_AUTO_TEST_CASE(bursts_are_as_long_as_said) {
  link.conditions(Way::up).burst_begin = 0.01;
  link.conditions(Way::up).burst_end = 0.2;
  up_many(20000);
  // A gap of k numbers is a burst of k: 5 on average.
  std::uint64_t bursts = 0, lost = 0;
  for (std::size_t i = 1; i < at_server.size(); ++i) {
    const std::uint32_t gap = at_server[i].number - at_server[i - 1].number - 1;
    bursts += gap != 0;
    lost += gap;
  }
  BOOST_REQUIRE(bursts > 100u);
  const double average = static_cast<double>(lost) / static_cast<double>(bursts);
  BOOST_TEST(average > 4.0);
  BOOST_TEST(average < 6.0);
}

BOOST_AUTO_TEST_CASE(jitter_reorders_within_its_bound) {
  link.conditions(Way::up).delay = milliseconds(10);
  link.conditions(Way::up).jitter = milliseconds(5);
  for (std::uint32_t i = 0; i < 1000; ++i) up(i);
  link.advance_to(ms(100));
  BOOST_REQUIRE(at_server.size() == 1000u);
  BOOST_TEST(at_server.front().when >= ms(10));
  BOOST_TEST(at_server.back().when <= ms(15));
  std::size_t overtaken = 0;
  for (std::size_t i = 1; i < at_server.size(); ++i)
    overtaken += at_server[i].number < at_server[i - 1].number;
  BOOST_TEST(overtaken > 300u);
}

BOOST_AUTO_TEST_CASE(duplicates_and_corruption) {
  link.conditions(Way::up).duplicate = 0.5;
  link.conditions(Way::up).corrupt = 1;
  up_many(1000);
  BOOST_TEST(link.totals(Way::up).duplicated > 400u);
  BOOST_TEST(at_server.size() == 1000u + link.totals(Way::up).duplicated);
  BOOST_TEST(link.totals(Way::up).corrupted == 1000u);
  std::size_t hits = 0;  // a turned bit shows in the number now and then
  for (const Seen& s : at_server) hits += s.number >= 1000;
  BOOST_TEST(hits > 5u);
  balanced(Way::up);
}

BOOST_AUTO_TEST_CASE(ecn_marks_and_bleaches) {
  link.conditions(Way::up).congested = 1;
  up(1, 100, Ecn::ect0);
  up(2, 100, Ecn::none);
  link.advance_to(ms(1));
  BOOST_TEST((at_server.at(0).ecn == Ecn::ce));
  BOOST_TEST((at_server.at(1).ecn == Ecn::none));  // who did not offer ECN is not marked
  link.conditions(Way::up).bleach = true;
  up(3, 100, Ecn::ect0);
  link.advance_to(ms(2));
  BOOST_TEST((at_server.at(2).ecn == Ecn::none));
}

BOOST_AUTO_TEST_CASE(what_is_too_large_vanishes) {
  link.conditions(Way::up).mtu = 1252;
  up(1, 1252);
  up(2, 1253);
  link.advance_to(ms(1));
  BOOST_TEST(at_server.size() == 1u);
  BOOST_TEST(link.totals(Way::up).too_large == 1u);
}

BOOST_AUTO_TEST_CASE(bandwidth_spreads_and_its_buffer_overflows) {
  link.conditions(Way::up).bandwidth = 100'000;  // 1000 octets take 10 ms
  link.conditions(Way::up).buffer = 5000;
  for (std::uint32_t i = 0; i < 8; ++i) up(i, 1000);
  link.advance_to(ms(1000));
  BOOST_REQUIRE(at_server.size() == 5u);
  for (std::uint32_t i = 0; i < 5; ++i) BOOST_TEST(at_server[i].when == ms(10 * (i + 1)));
  BOOST_TEST(link.totals(Way::up).overflow == 3u);
  up(9, 1000);  // idle since: no debt, and no credit either
  link.advance_to(ms(2000));
  BOOST_TEST(at_server.back().when == ms(1010));
}

BOOST_AUTO_TEST_CASE(blackouts_begin_and_end) {
  link.blackout(Way::up, ms(10), ms(20));
  for (const std::uint64_t t : {9u, 10u, 19u, 20u})
    link.at(ms(t), [this, t] { up(static_cast<std::uint32_t>(t)); });
  link.at(ms(15), [this] { down(15, client); });
  link.advance_to(ms(100));
  BOOST_REQUIRE(at_server.size() == 2u);
  BOOST_TEST(at_server[0].number == 9u);
  BOOST_TEST(at_server[1].number == 20u);
  BOOST_TEST(at_client.size() == 1u);
  BOOST_TEST(link.totals(Way::up).dark == 2u);
}

// The NAT forgets: new datagrams have another source, the old address leads nowhere, and the client knows nothing of it.
BOOST_AUTO_TEST_CASE(rebinding) {
  link.conditions(Way::down).delay = milliseconds(10);
  up(1);
  link.advance_to(ms(1));
  down(1, client);  // under way when it happens
  link.rebind(client, outside);
  up(2);
  link.advance_to(ms(50));
  BOOST_TEST(at_client.empty());
  BOOST_TEST(link.totals(Way::down).astray == 1u);
  BOOST_REQUIRE(at_server.size() == 2u);
  BOOST_TEST(at_server[0].from.text() == client.text());
  BOOST_TEST(at_server[1].from.text() == outside.text());
  down(2, outside);
  link.advance_to(ms(100));
  BOOST_TEST(at_client.size() == 1u);
  const Address third = *Address::parse("198.51.100.9", 6001);
  link.rebind(client, third);
  down(3, outside);
  down(4, third);
  up(3);
  link.advance_to(ms(200));
  BOOST_REQUIRE(at_client.size() == 2u);
  BOOST_TEST(at_client[1].number == 4u);
  BOOST_TEST(at_server[2].from.text() == third.text());
  balanced(Way::down);
}

BOOST_AUTO_TEST_CASE(the_filter_sees_numbers_and_octets) {
  link.set_filter([](Way way, std::uint64_t n, const LinkDatagram& d) {
    return way == Way::down || (n != 2 && number_of(d) != 7);
  });
  for (const std::uint32_t n : {5u, 6u, 7u, 8u}) up(n);
  down(7, client);
  link.advance_to(ms(1));
  BOOST_REQUIRE(at_server.size() == 2u);
  BOOST_TEST(at_server[0].number == 5u);
  BOOST_TEST(at_server[1].number == 8u);
  BOOST_TEST(at_client.size() == 1u);
  BOOST_TEST(link.totals(Way::up).filtered == 2u);
}

// Two ends that answer each other: what is sent from inside an arrival arrives, in order of time.
BOOST_AUTO_TEST_CASE(answers_from_inside) {
  Conditions c;
  c.delay = milliseconds(10);
  link.both_ways(c);
  link.attach(server, true, [this](const LinkDatagram& d) { link.send({d.octets, d.to, d.from, d.ecn}); });
  up(1);
  link.at(ms(5), [this] { up(2); });
  link.advance_to(ms(100));
  BOOST_REQUIRE(at_client.size() == 2u);
  BOOST_TEST(at_client[0].when == ms(20));
  BOOST_TEST(at_client[1].when == ms(25));
  link.detach(client);
  up(3);
  link.advance_to(ms(200));
  BOOST_TEST(at_client.size() == 2u);
  BOOST_TEST(link.totals(Way::down).astray == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
