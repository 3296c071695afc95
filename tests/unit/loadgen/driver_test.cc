// One thread's load against an origin that answers by script: what is counted, when, and as what.
#include "loadgen/driver.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "scripted_origin.h"

using namespace twp;
using namespace twp::load;

namespace {

constexpr Instant kMs = 1'000'000;
constexpr Instant kLater = 3'600'000 * kMs;  // ends when the test says so

bool until(const std::function<bool()>& done) {
  const Instant end = monotonic_now() + 20'000 * kMs;
  while (!done()) {
    if (monotonic_now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::string page(std::string_view body, int status = 200) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}
ScriptedOrigin::Answer ok(unsigned) { return {page("ok")}; }

std::uint64_t failures(const Counters& c, Failure f) { return c.failures[static_cast<std::size_t>(f)]; }

// A driver on its thread, with a connection for each lane.
struct LoadRun {
  LoadRun(const ScriptedOrigin& origin, unsigned lanes,
          const std::function<void(Plan&, Load&)>& change = {}) {
    plan.url = *config::parse_url(origin.url);
    Load load;
    load.plan = &plan;
    load.spread = {lanes, lanes};
    load.connections = lanes;
    if (change) change(plan, load);
    BOOST_REQUIRE(complete(plan).has_value());
    plan.http = "h1";  // gRPC too: a lane does not know which version of HTTP its session speaks
    load.payload = Payload::generated(plan.body_size);
    auto made = Driver::create(std::move(load));
    BOOST_REQUIRE(made.has_value());
    driver = std::move(*made);
    thread = std::thread([d = driver.get()] { d->run(); });
  }
  ~LoadRun() { join(); }

  /// Load from now on; what ends `warmup` later, or after that, counts.
  Instant go(Instant warmup = 0, Instant measured = kLater) {
    BOOST_REQUIRE(until([&] { return driver->state() == Driver::State::ready; }));
    const Instant now = monotonic_now();
    driver->go({now, now + warmup, now + warmup + measured});
    return now;
  }
  /// Right or wrong.
  bool await_answers(std::uint64_t n) {
    return until([&] { return driver->answers() + driver->wrong() >= n; });
  }
  void finish(Instant at = monotonic_now()) {
    driver->finish(at);
    BOOST_REQUIRE(until([&] { return driver->state() == Driver::State::done; }));
  }
  const Counters& counters() {
    join();
    return driver->counters();
  }
  void join() {
    driver->stop();
    if (thread.joinable()) thread.join();
  }

  Plan plan;
  std::unique_ptr<Driver> driver;
  std::thread thread;
};

struct Wrong {
  const char* name;
  Failure kind;
  ScriptedOrigin::Answer answer;
  Workload workload = Workload::request;
  std::uint64_t right = 0;  // answers that were taken as right
};
std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.name; }

std::string grpc_answer(std::string_view message, std::string_view trailers,
                        std::string_view type = "application/grpc") {
  std::string framed = std::string(4, '\0') + static_cast<char>(message.size()) + std::string(message);
  framed.insert(0, {'\r', '\n'});
  return "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
         std::to_string(framed.size() - 2) + framed + "\r\n0\r\n" + std::string(trailers) + "\r\n";
}

const std::vector<Wrong>& wrong_answers() {
  static const std::vector<Wrong> all{
      {"status", Failure::status, {page("ok", 500)}},
      {"length", Failure::length, {page("three")}},
      {"body", Failure::body, {page("no")}},
      {"cut short", Failure::transport, {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", true}},
      {"no answer but the end", Failure::transport, {"", true}},
      {"no HTTP", Failure::transport, {"220 mail.test ESMTP\r\n\r\n", true}},
      {"stray", Failure::stray, {page("ok") + "more"}, Workload::request, 1},
      {"gRPC over a page of status 503", Failure::status, {page("", 503)}, Workload::grpc},
      {"a page for gRPC",
       Failure::grpc,
       {grpc_answer("", "grpc-status: 0\r\n", "text/html")},
       Workload::grpc},
      {"grpc-status", Failure::grpc, {grpc_answer("", "grpc-status: 13\r\n")}, Workload::grpc},
      {"no grpc-status", Failure::grpc, {grpc_answer("ab", "")}, Workload::grpc},
      {"no message",
       Failure::grpc,
       {page("", 200).insert(16, "Content-Type: application/grpc\r\ngrpc-status: 0\r\n")},
       Workload::grpc},
      {"length of the message", Failure::length, {grpc_answer("a", "grpc-status: 0\r\n")}, Workload::grpc},
      {"octets of the message", Failure::body, {grpc_answer("ab", "grpc-status: 0\r\n")}, Workload::grpc},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(driver)

BOOST_AUTO_TEST_CASE(closed_loop_every_request_is_right_wrong_or_in_flight) {
  constexpr unsigned kLanes = 4, kAnswers = 100;
  ScriptedOrigin origin(
      [](unsigned n) { return ScriptedOrigin::Answer{n % 10 == 0 ? page("no", 500) : page("ok")}; },
      kAnswers);
  LoadRun run(origin, kLanes);
  run.go();
  BOOST_REQUIRE(run.await_answers(kAnswers));
  BOOST_REQUIRE(until([&] { return origin.received() == kAnswers + kLanes; }));
  run.finish();
  // What was in flight then comes too late, and nothing follows it.
  origin.let(~0u);
  BOOST_TEST(run.await_answers(kAnswers + kLanes));
  const Counters& c = run.counters();
  BOOST_TEST(origin.received() == kAnswers + kLanes);
  BOOST_TEST(c.requests == kAnswers);
  BOOST_TEST(c.errors() == kAnswers / 10);
  BOOST_TEST(failures(c, Failure::status) == kAnswers / 10);
  BOOST_TEST(c.latency.count() == kAnswers - kAnswers / 10);
  BOOST_TEST(c.octets == 2 * (kAnswers - kAnswers / 10));
  BOOST_TEST(c.connecting.count() == kLanes);
  BOOST_TEST(c.unfinished == 0u);
  BOOST_TEST(c.first_error == "status 500");
}

BOOST_AUTO_TEST_CASE(closed_loop_the_warm_up_does_not_count) {
  constexpr unsigned kWarm = 50, kMeasured = 30;
  ScriptedOrigin origin([](unsigned n) { return ScriptedOrigin::Answer{page("ok", n == 7 ? 500 : 200)}; },
                        kWarm);
  LoadRun run(origin, 4);
  const Instant began = run.go(1'000 * kMs);
  BOOST_REQUIRE(run.await_answers(kWarm));
  BOOST_REQUIRE(monotonic_now() < began + 1'000 * kMs);
  BOOST_REQUIRE(until([&] { return monotonic_now() >= began + 1'000 * kMs; }));
  origin.let(kWarm + kMeasured);  // the first four began in the warm-up; they end in the window
  BOOST_REQUIRE(run.await_answers(kWarm + kMeasured));
  run.finish();
  const Counters& c = run.counters();
  BOOST_TEST(c.requests == kMeasured);
  BOOST_TEST(c.latency.count() == kMeasured);
  BOOST_TEST(c.octets == 2 * kMeasured);
  BOOST_TEST(c.errors() == 0u);  // the wrong one was answered in the warm-up
}

BOOST_AUTO_TEST_CASE(open_loop_a_stall_counts_for_all_that_were_due_in_it) {
  constexpr double kRate = 200;
  constexpr Instant kStall = 200 * kMs, kWindow = 500 * kMs;
  ScriptedOrigin origin(ok, 0);
  LoadRun run(origin, 1, [](Plan& p, Load&) { p.rate = kRate; });
  const Instant began = run.go(0, kWindow);
  BOOST_REQUIRE(until([&] { return monotonic_now() >= began + kStall; }));
  origin.let(~0u);
  BOOST_REQUIRE(until([&] { return monotonic_now() >= began + kWindow; }));
  run.finish(began + kWindow);
  const Counters& c = run.counters();
  BOOST_TEST(c.requests + c.unfinished == Pacer(began, kRate, 0).untaken_until(began + kWindow));
  BOOST_TEST(c.requests + c.unfinished == 100u);
  BOOST_TEST(c.latency.count() == 100u);
  BOOST_TEST(c.errors() == 0u);
  // The 21 that were due in the first half of the stall have waited at least for the other half (buckets: 0.4 %). Only one of
  // them was on its way, so what was measured from the sending (the service time) does not show it.
  BOOST_TEST(c.latency.percentile_us(80) >= 99'500u);
  BOOST_TEST(c.latency.max_us() >= 199'000u);
  BOOST_TEST(c.service.percentile_us(80) < c.latency.percentile_us(80));
}

BOOST_AUTO_TEST_CASE(open_loop_what_has_no_answer_at_the_end_counts_with_its_wait) {
  constexpr Instant kWindow = 200 * kMs;
  ScriptedOrigin origin(ok, 0);
  LoadRun run(origin, 1, [](Plan& p, Load&) {
    p.rate = 100;
    p.timeout = std::chrono::milliseconds(300);
  });
  const Instant began = run.go(0, kWindow);
  BOOST_REQUIRE(until([&] { return monotonic_now() >= began + kWindow; }));
  run.finish(began + kWindow);
  const Counters& c = run.counters();
  BOOST_TEST(c.requests + c.unfinished == 20u);
  BOOST_TEST(c.requests == c.errors());
  BOOST_TEST(c.errors() == failures(c, Failure::timeout));
  BOOST_TEST(c.latency.count() == c.unfinished);
  BOOST_TEST(c.unfinished >= 19u);  // one was on its way and may have timed out
  BOOST_TEST(c.latency.min_us() >= 9'000u);
}

BOOST_AUTO_TEST_CASE(open_loop_what_was_due_in_the_warm_up_does_not_count) {
  ScriptedOrigin origin(ok);
  LoadRun run(origin, 2, [](Plan& p, Load&) { p.rate = 200; });
  const Instant began = run.go(100 * kMs, 100 * kMs);
  BOOST_REQUIRE(until([&] { return monotonic_now() >= began + 200 * kMs; }));
  run.finish(began + 200 * kMs);
  const Counters& c = run.counters();
  BOOST_TEST(c.requests + c.unfinished == 20u);
  BOOST_TEST(origin.received() >= 20u + c.requests);  // those of the warm-up were sent all the same
}

BOOST_DATA_TEST_CASE(a_wrong_answer_counts_once_as_what_it_is, wrong_answers(), wrong) {
  ScriptedOrigin origin([&](unsigned) { return wrong.answer; }, 1);
  LoadRun run(origin, 1, [&](Plan& p, Load& load) {
    p.workload = wrong.workload;
    if (wrong.workload == Workload::grpc) {
      p.http = "h2";
      p.body_size = 2;
    } else {
      p.expect_length = 2;
      load.check_hash = true;
      BodyHash hash;
      hash.feed(std::as_bytes(std::span("ok", 2)));
      load.expected_hash = hash.value();
    }
  });
  run.go();
  BOOST_REQUIRE(run.await_answers(1 + wrong.right));
  run.finish();
  const Counters& c = run.counters();
  BOOST_TEST(c.requests == 1u);
  BOOST_TEST(c.errors() == 1u);
  BOOST_TEST(failures(c, wrong.kind) == 1u);
  BOOST_TEST(c.latency.count() == wrong.right);
  BOOST_TEST(!c.first_error.empty());
}

BOOST_AUTO_TEST_CASE(a_request_without_an_answer_times_out_and_the_lane_goes_on) {
  ScriptedOrigin origin([](unsigned n) { return n == 0 ? ScriptedOrigin::Answer{} : ok(n); });
  LoadRun run(origin, 1, [](Plan& p, Load&) { p.timeout = std::chrono::milliseconds(300); });
  run.go();
  BOOST_REQUIRE(run.await_answers(11));
  run.finish();
  const Counters& c = run.counters();
  BOOST_TEST(failures(c, Failure::timeout) == 1u);
  BOOST_TEST(c.errors() == 1u);
  BOOST_TEST(c.latency.count() == c.requests - 1);
  BOOST_TEST(c.connecting.count() == 2u);  // HTTP/1.1 gives a request up with its connection
}

BOOST_AUTO_TEST_CASE(an_origin_that_goes_away_counts_as_a_broken_request_and_failed_dials) {
  ScriptedOrigin origin(ok, 5);
  LoadRun run(origin, 1);
  run.go();
  BOOST_REQUIRE(run.await_answers(5));
  BOOST_REQUIRE(until([&] { return origin.received() == 6; }));
  origin.go_away();
  BOOST_REQUIRE(run.await_answers(5 + 3));
  run.finish();
  const Counters& c = run.counters();
  BOOST_TEST(failures(c, Failure::transport) == 1u);
  BOOST_TEST(failures(c, Failure::connect) >= 2u);
  BOOST_TEST(c.connect_retries >= failures(c, Failure::connect));
  BOOST_TEST(c.errors() == 1 + failures(c, Failure::connect));
  BOOST_TEST(c.requests == 5 + c.errors());
}

BOOST_AUTO_TEST_CASE(a_refused_websocket_handshake_ends_the_run_before_it_began) {
  ScriptedOrigin origin([](unsigned) { return ScriptedOrigin::Answer{page("no", 403)}; });
  LoadRun run(origin, 1, [](Plan& p, Load&) { p.workload = Workload::ws; });
  BOOST_REQUIRE(until([&] { return run.driver->state() == Driver::State::failed; }));
  BOOST_TEST(run.driver->failure() == "the WebSocket handshake was answered with status 403");
  BOOST_TEST(run.counters().requests == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
