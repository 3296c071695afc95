#include <boost/test/unit_test.hpp>
#include <csignal>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "event/worker.h"

using namespace twp;

namespace {

struct Late final : PollHandler, Timer {
  explicit Late(Worker& w) : worker(w) {}
  void on_poll(Ready) noexcept override {
    seen = worker.now();
    worker.arm(*this, std::chrono::milliseconds(50));
  }
  void on_timer() noexcept override { fired = monotonic_now(); }
  Worker& worker;
  Instant seen = 0, fired = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(turn_time)

// A worker that slept for long must not count its sleep into a timer that the first event arms.
BOOST_AUTO_TEST_CASE(an_event_sees_the_time_after_the_wait) {
  Worker worker;
  Late late(worker);
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  PollFd poll;
  BOOST_REQUIRE(poll.open_level(worker, fd, late));
  worker.turn(Duration::zero());
  const Instant wait_until = monotonic_now() + 100'000'000u;
  Instant woken = 0;
  std::thread waker([&] {
    while (monotonic_now() < wait_until) std::this_thread::yield();
    woken = monotonic_now();
    const std::uint64_t one = 1;
    BOOST_REQUIRE(::write(fd, &one, sizeof one) == static_cast<ssize_t>(sizeof one));
  });
  while (late.seen == 0) worker.turn(std::chrono::seconds(10));
  waker.join();
  BOOST_TEST(late.seen >= woken);
  poll.close();
  while (late.fired == 0) worker.turn(std::chrono::seconds(10));
  BOOST_TEST(late.fired >= woken + 50'000'000u);
}

BOOST_AUTO_TEST_CASE(so_does_a_signal) {
  Worker worker;
  Instant seen = 0;
  BOOST_REQUIRE(worker.on_signal(SIGUSR1, [&] { seen = worker.now(); }));
  worker.turn(Duration::zero());
  const Instant until = monotonic_now() + 20'000'000u;
  while (monotonic_now() < until) {}
  const Instant raised = monotonic_now();
  ::raise(SIGUSR1);
  while (seen == 0) worker.turn(std::chrono::seconds(10));
  BOOST_TEST(seen >= raised);
}

BOOST_AUTO_TEST_SUITE_END()
