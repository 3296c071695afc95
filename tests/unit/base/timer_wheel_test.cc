// The wheel against a model: never early, never late by more than a tick, and next() never later than the truth.
#include "base/timer_wheel.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <random>
#include <vector>

using namespace twp;

namespace {

constexpr Instant kMs = 1'000'000;
constexpr Instant kDay = 24 * 3600 * 1000 * kMs;

struct Probe final : Timer {
  void on_timer() noexcept override {
    ++fired;
    at = *now;
    if (then) then(*this);
  }
  const Instant* now = nullptr;
  int fired = 0;
  Instant at = 0;
  std::function<void(Probe&)> then;
};

/// Distances that meet every level and its edges.
Instant distance(std::mt19937_64& rng) {
  const unsigned bits = static_cast<unsigned>(rng() % 34);
  Instant ticks = rng() % (Instant{1} << bits);
  if (rng() % 4 == 0) ticks = (Instant{1} << (6 * (rng() % 5))) + rng() % 3 - 1;
  return ticks * kMs + rng() % kMs;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(timer_wheel)

BOOST_AUTO_TEST_CASE(random_arms_and_cancels_against_a_model) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 rng(seed);
    Instant now = rng() % (Instant{1} << 50);
    TimerWheel wheel(now);
    std::vector<Probe> timers(60);
    std::vector<Instant> due(timers.size(), kNever);
    for (Probe& p : timers) p.now = &now;
    for (int step = 0; step < 3000; ++step) {
      for (int k = static_cast<int>(rng() % 4); k > 0; --k) {
        const std::size_t i = rng() % timers.size();
        if (rng() % 4 == 0) {
          timers[i].cancel();
          due[i] = kNever;
        } else {
          due[i] = now + distance(rng);
          timers[i].fired = 0;
          wheel.arm(timers[i], due[i]);
        }
      }
      Instant earliest = kNever;
      for (const Instant d : due)
        if (d != kNever && (earliest == kNever || d < earliest)) earliest = d;
      const Instant next = wheel.next();
      BOOST_REQUIRE((next == kNever) == (earliest == kNever));
      if (next != kNever) BOOST_REQUIRE(next <= earliest + kMs);
      // As the worker does: to what next() says, or wherever something else wakes it.
      if (next != kNever && rng() % 2 == 0)
        now = std::max(now, next);
      else
        now += distance(rng) >> (rng() % 30);
      wheel.advance(now);
      for (std::size_t i = 0; i < timers.size(); ++i) {
        if (timers[i].fired != 0) {
          BOOST_REQUIRE(timers[i].fired == 1);
          BOOST_REQUIRE(due[i] != kNever);
          BOOST_REQUIRE(timers[i].at >= due[i]);  // never early
          BOOST_REQUIRE(!timers[i].armed());
          timers[i].fired = 0;
          due[i] = kNever;
        } else if (due[i] != kNever) {
          BOOST_REQUIRE(timers[i].armed());
          BOOST_REQUIRE(due[i] + kMs > now - now % kMs);  // late by less than a tick
        }
      }
    }
  }
}

// A slot under the hand holds a timer of the next revolution; it must not hide the slots behind it.
BOOST_AUTO_TEST_CASE(next_sees_past_the_slot_under_the_hand) {
  Instant now = 70 * kMs;  // in the middle of a slot of the second level
  TimerWheel wheel(now);
  Probe far, near;
  far.now = near.now = &now;
  wheel.arm(far, now + (64 * 64 - 1) * kMs);
  wheel.arm(near, now + 100 * kMs);
  BOOST_TEST(wheel.next() <= now + 100 * kMs);
  while (near.fired == 0) {
    const Instant next = wheel.next();
    BOOST_REQUIRE(next <= 171 * kMs);
    now = std::max(now + kMs, next);
    wheel.advance(now);
  }
  BOOST_TEST(near.at <= 171 * kMs);
  BOOST_TEST(far.fired == 0);
}

BOOST_AUTO_TEST_CASE(a_year_of_sleep_is_skipped_at_once) {
  Instant now = 123 * kMs;
  TimerWheel wheel(now);
  Probe p;
  p.now = &now;
  wheel.arm(p, now + 90 * kDay);
  wheel.advance(now += 80 * kDay);
  BOOST_TEST(p.fired == 0);
  const Instant before = monotonic_now();
  wheel.advance(now += 285 * kDay);
  BOOST_TEST(p.fired == 1);
  wheel.advance(now += 10 * 365 * kDay);
  BOOST_TEST(monotonic_now() - before < 500 * kMs);
}

BOOST_AUTO_TEST_CASE(timers_may_arm_and_cancel_from_inside) {
  Instant now = 5 * kMs;
  TimerWheel wheel(now);
  Probe a, b, c;
  a.now = b.now = c.now = &now;
  a.then = [&](Probe& self) {
    b.cancel();
    if (self.fired < 3) wheel.arm(self, now);
    wheel.arm(c, now + 2 * kMs);
  };
  wheel.arm(a, now + kMs);
  wheel.arm(b, now + kMs);
  for (int i = 0; i < 10; ++i) wheel.advance(now += kMs);
  BOOST_TEST(a.fired == 3);
  BOOST_TEST(b.fired == 0);
  BOOST_TEST(c.fired == 1);
  BOOST_TEST(wheel.next() == kNever);
}

BOOST_AUTO_TEST_CASE(a_timer_that_dies_does_not_fire) {
  Instant now = 0;
  TimerWheel wheel(now);
  auto p = std::make_unique<Probe>();
  p->now = &now;
  wheel.arm(*p, kMs);
  p.reset();
  wheel.advance(now = 10 * kMs);
  BOOST_TEST(wheel.next() == kNever);
}

BOOST_AUTO_TEST_SUITE_END()
