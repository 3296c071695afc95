// Every way an exchange ends other than well: who goes, when, and what the other side sees.
#include <boost/test/unit_test.hpp>

#include "support/playbook.h"

using namespace twp;
using namespace twp::test;

namespace {

config::Config quick_timeouts() {
  config::Config c = one_cluster();
  c.timeouts.stream_idle = std::chrono::milliseconds(30);
  return c;
}

/// Turns until `done` or a generous deadline.
template <class F>
bool wait_for(Playbook& play, F done) {
  const Instant until = monotonic_now() + 10'000'000'000u;
  while (!done()) {
    if (monotonic_now() > until) return false;
    play.worker.turn(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(closing)

// ---- the client goes ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(client_gone_in_the_turn_it_came_costs_no_connection) {
  Playbook play;
  play.get();
  play.client().fail(Fault::client_reset);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.connector.started == 0u);
}

BOOST_AUTO_TEST_CASE(client_gone_while_waiting) {
  Playbook play;
  play.get();
  play.turn();
  play.client().fail(Fault::peer_closed);
  BOOST_TEST(play.pool().waiting() == 0u);
  BOOST_TEST(play.settle());
  BOOST_CHECK(play.done.fault == Fault::client_closed);
  BOOST_TEST(play.done.status == 0);
  play.connect();  // the dial nobody needs any more becomes an idle connection
  BOOST_TEST(play.pool().idle() == 1u);
}

BOOST_AUTO_TEST_CASE(a_request_refused_in_its_body_is_recorded_with_the_sessions_answer) {
  Playbook play;
  play.upload("POST", BodySize::unknown());
  play.client().fail(Fault::bad_chunk);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.status == 400);
}

BOOST_AUTO_TEST_CASE(client_gone_before_and_after_the_response_head) {
  for (const bool after : {false, true}) {
    BOOST_TEST_CONTEXT("after the head: " << after) {
      Playbook play;
      play.get();
      play.connect();
      FakeStream& origin = play.origin();
      if (after) play.respond_unended(200, BodySize::exactly(10));
      play.client().fail(Fault::peer_reset);
      BOOST_CHECK(origin.reset_with == Fault::cancelled);
      BOOST_TEST(play.settle());
      BOOST_CHECK(play.done.fault == Fault::client_reset);
      BOOST_TEST(play.done.times == 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(client_gone_in_the_upload) {
  Playbook play;
  play.upload("POST", BodySize::exactly(100));
  play.connect();
  FakeStream& origin = play.origin();
  play.client().deliver_body("part");
  play.client().fail(Fault::peer_closed);
  BOOST_CHECK(origin.reset_with == Fault::cancelled);
  BOOST_TEST(!origin.ended);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(client_gone_with_the_whole_response_leaves_the_origin_alone) {
  Playbook play;
  play.get();
  play.connect();
  FakeStream& origin = play.origin();
  play.respond(200, "x");
  play.client().fail(Fault::peer_closed);
  BOOST_CHECK(origin.reset_with == Fault::none);
  BOOST_TEST(play.settle());
}

// ---- the origin goes ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(origin_gone_before_the_head_is_502) {
  for (const Fault why : {Fault::peer_closed, Fault::origin_closed, Fault::origin_reset, Fault::origin_bad_head}) {
    Playbook play;
    play.upload("POST", BodySize::exactly(1));
    play.connect();
    play.client().deliver_body("x", End::yes);
    play.origin().fail(why);
    BOOST_TEST(play.client().head.status == 502);
    BOOST_TEST(play.client().ended);
    BOOST_TEST(play.client().head.fields.has(HeaderId::date));
    BOOST_TEST(play.settle());
    BOOST_TEST(play.done.generated);
    BOOST_TEST(play.counters.replays == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_cut_response_never_looks_whole) {
  for (const Fault why : {Fault::none, Fault::peer_closed, Fault::origin_truncated, Fault::peer_reset}) {
    Playbook play;
    play.get();
    play.connect();
    play.respond_unended(200, BodySize::exactly(1000));
    play.origin().deliver_body(std::string(500, 'x'));
    play.origin().fail(why);
    BOOST_TEST(!play.client().ended);
    BOOST_CHECK(play.client().reset_with != Fault::none);
    BOOST_TEST(play.settle());
    BOOST_CHECK(play.done.fault == (why == Fault::peer_reset ? Fault::origin_reset : Fault::origin_truncated));
    BOOST_TEST(play.done.status == 200);
  }
}

BOOST_AUTO_TEST_CASE(a_tunnel_that_breaks_breaks_on_both_sides) {
  for (const bool half : {false, true}) {
    Playbook play;
    play.websocket();
    play.connect();
    play.respond_unended(200, BodySize::unknown());
    if (half) play.origin().deliver_body({}, End::yes);
    play.origin().fail(Fault::peer_reset);
    BOOST_CHECK(play.client().reset_with != Fault::none);
    BOOST_TEST(play.settle());
  }
}

// ---- early responses ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_upload_goes_on_behind_an_early_response) {
  Playbook play;
  play.upload("POST", BodySize::exactly(6));
  play.connect();
  FakeStream& origin = play.origin();
  play.client().deliver_body("abc");
  play.respond(200, "early");
  BOOST_TEST(play.client().ended);
  BOOST_TEST(!play.settle());
  play.client().deliver_body("def", End::yes);
  BOOST_TEST(origin.body == "abcdef");
  BOOST_TEST(play.settle());
  BOOST_CHECK(play.done.fault == Fault::none);
}

BOOST_AUTO_TEST_CASE(a_long_upload_is_given_up_when_the_origin_has_answered_and_gone) {
  Playbook play;
  play.upload("POST", BodySize::exactly(100 << 20));
  play.connect();
  play.client().deliver_body(std::string(1024, 'x'));
  play.respond(413, "too much");
  play.origin().fail(Fault::early_response);
  BOOST_TEST(play.client().head.status == 413);
  BOOST_TEST(play.client().body == "too much");
  BOOST_TEST(play.client().ended);
  BOOST_CHECK(play.client().reset_with == Fault::early_response);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.status == 413);
}

BOOST_AUTO_TEST_CASE(a_short_rest_of_an_upload_is_drained_and_gets_all_its_credit) {
  Playbook play;
  play.upload("POST", BodySize::exactly(3000));
  play.connect();
  play.client().deliver_body(std::string(1000, 'x'));
  play.respond(413, "too much");
  play.origin().fail(Fault::early_response);
  BOOST_CHECK(play.client().reset_with == Fault::none);
  play.client().deliver_body(std::string(1000, 'x'));
  play.client().deliver_body(std::string(1000, 'x'), End::yes);
  BOOST_TEST(play.client().consumed() == 3000u);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(a_held_body_is_drained_when_no_connection_can_be_had) {
  Playbook play;
  play.upload("PUT", BodySize::exactly(20));
  play.client().deliver_body(std::string(10, 'x'));
  play.connector.fail(Fault::dns_failed);
  BOOST_TEST(play.client().head.status == 502);
  play.client().deliver_body(std::string(10, 'x'), End::yes);
  BOOST_TEST(play.client().consumed() == 20u);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.detail == "refused by the test");
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_100_owes_no_body) {
  Playbook play;
  play.upload("POST", BodySize::exactly(9), {{"Expect", "100-continue"}});
  play.connect();
  FakeStream& origin = play.origin();
  play.respond(401, "who?");
  BOOST_TEST(play.client().head.status == 401);
  BOOST_TEST(play.client().body == "who?");
  BOOST_CHECK(play.client().reset_with == Fault::early_response);
  BOOST_CHECK(origin.reset_with == Fault::early_response);
  BOOST_TEST(play.settle());
}

// ---- replay ------------------------------------------------------------------------------------------

namespace {

struct ReplayRow {
  const char* method;
  bool reused;
  Fault fault;
  bool replay;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_may_be_sent_twice) {
  const ReplayRow rows[] = {
      {"GET", true, Fault::origin_closed, true},      {"HEAD", true, Fault::origin_reset, true},
      {"DELETE", true, Fault::origin_closed, true},   {"OPTIONS", true, Fault::peer_reset, true},
      {"GET", false, Fault::origin_closed, false},    {"POST", true, Fault::origin_closed, false},
      {"PATCH", true, Fault::origin_reset, false},    {"BREW", true, Fault::origin_closed, false},
      {"POST", false, Fault::origin_refused_stream, true}, {"GET", true, Fault::origin_truncated, false},
      {"GET", true, Fault::origin_bad_head, false},   {"GET", true, Fault::origin_timeout, false},
  };
  for (const ReplayRow& row : rows) {
    BOOST_TEST_CONTEXT(row.method << " reused=" << row.reused << ' ' << log_word(row.fault)) {
      Playbook play;
      if (row.reused) {
        play.get();
        play.connect();
        play.respond(200);
        BOOST_TEST(play.settle());
      }
      play.request(request_head(row.method, "/again"));
      if (!row.reused) play.connect();
      play.origin().fail(row.fault);
      play.turn();
      BOOST_TEST((play.connector.dials.size() == 1u) == row.replay);
      if (row.replay) {
        BOOST_TEST(!play.client().has_head);
        play.connect();
        BOOST_TEST(play.origin().head.path == "/again");
        BOOST_TEST(play.origin().head.fields.get("x-forwarded-for") == "203.0.113.7");
        play.respond(200);
        BOOST_TEST(play.client().head.status == 200);
      } else {
        BOOST_TEST(play.client().head.status == info(row.fault).http_status);
      }
      BOOST_TEST(play.settle());
      BOOST_TEST(play.done.replayed == row.replay);
      BOOST_TEST(play.counters.replays == (row.replay ? 1u : 0u));
    }
  }
}

BOOST_AUTO_TEST_CASE(once_is_enough) {
  Playbook play;
  play.get();
  play.connect();
  play.respond(200);
  BOOST_TEST(play.settle());
  play.get();
  play.origin().fail(Fault::origin_closed);
  play.connect();
  play.origin().fail(Fault::origin_closed);
  BOOST_TEST(play.client().head.status == 502);
  play.turn();
  BOOST_TEST(play.connector.dials.empty());
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(nothing_is_replayed_once_the_origin_has_spoken_or_a_body_has_left) {
  for (const bool body : {false, true}) {
    Playbook play;
    play.get();
    play.connect();
    play.respond(200);
    BOOST_TEST(play.settle());
    if (body) {
      play.upload("PUT", BodySize::exactly(4));
      play.client().deliver_body("abcd", End::yes);
    } else {
      play.get();
      play.interim(103);
    }
    play.origin().fail(Fault::origin_closed);
    BOOST_TEST(play.client().head.status == 502);
    BOOST_TEST(play.settle());
    BOOST_TEST(play.counters.replays == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_refused_connection_is_tried_at_another_origin_with_the_held_body) {
  Playbook play(one_cluster(2));
  play.upload("POST", BodySize::exactly(4));
  play.client().deliver_body("abcd", End::yes);
  play.connector.fail(Fault::connect_refused);
  play.turn();
  BOOST_TEST(play.connector.dials.size() == 1u);
  BOOST_TEST(play.connector.dials[0]->target.host == "o2.test");
  play.connect();
  BOOST_TEST(play.origin().body == "abcd");
  play.respond(201);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.origin == "o2.test:8080");
  BOOST_TEST(play.done.status == 201);
}

BOOST_AUTO_TEST_CASE(a_dial_that_failed_is_not_repeated_at_the_only_origin) {
  Playbook play;
  play.get();
  play.connector.fail(Fault::connect_timeout);
  play.turn();
  BOOST_TEST(play.connector.dials.empty());
  BOOST_TEST(play.client().head.status == 504);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.counters.replays == 0u);
}

// ---- nth failure -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(dials_that_fail_n_times_never_lose_or_leak_a_request) {
  for (int failures = 0; failures <= 4; ++failures) {
    Playbook play(one_cluster(3));
    for (int i = 0; i < 4; ++i) play.get("/" + std::to_string(i));
    play.turn();
    for (int left = failures; left != 0 && !play.connector.dials.empty(); --left)
      play.connector.fail(Fault::connect_refused);
    for (int i = 0; i < 12; ++i) {
      while (!play.connector.dials.empty()) play.connect();
      for (FakeSession& session : play.connector.sessions)
        for (FakeStream& s : session.streams)
          if (s.active() && s.has_head && s.body.empty()) s.deliver_head(Head::response(204), End::yes);
      play.settle();
    }
    BOOST_TEST(play.over());
    BOOST_TEST(play.done.times == 4u);
    BOOST_TEST(play.counters.waiting == 0u);
    for (const FakeStream& s : play.client_session.streams) BOOST_TEST(s.ended);
  }
}

BOOST_AUTO_TEST_CASE(a_session_that_gives_no_stream_is_passed_over) {
  Playbook play;
  play.get();
  play.connect().refuse_open = false;
  play.respond(200);
  BOOST_TEST(play.settle());
  play.connector.sessions[0].refuse_open = true;
  play.get();
  play.turn();
  BOOST_TEST(play.connector.dials.size() == 1u);
  play.connect();
  play.respond(200);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.status == 200);
}

// ---- time --------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_origin_that_says_nothing_is_504) {
  Playbook play(quick_timeouts());
  play.get();
  play.connect();
  FakeStream& origin = play.origin();
  BOOST_TEST(wait_for(play, [&] { return play.client().has_head; }));
  BOOST_TEST(play.client().head.status == 504);
  BOOST_CHECK(origin.reset_with == Fault::origin_timeout);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(response_timeout_is_of_the_cluster) {
  config::Config c = one_cluster();
  c.clusters[0].response_timeout = std::chrono::milliseconds(20);
  Playbook play(c);
  play.get();
  play.connect();
  BOOST_TEST(wait_for(play, [&] { return play.client().has_head; }));
  BOOST_TEST(play.client().head.status == 504);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(response_timeout_begins_when_an_upload_has_ended) {
  config::Config c = one_cluster();
  c.clusters[0].response_timeout = std::chrono::milliseconds(20);
  Playbook play(c);
  play.upload("POST", BodySize::unknown());
  play.connect();
  play.client().deliver_body("abc", End::yes);
  BOOST_TEST(wait_for(play, [&] { return play.client().has_head; }));
  BOOST_TEST(play.client().head.status == 504);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(a_client_that_stops_in_its_upload_is_408) {
  Playbook play(quick_timeouts());
  play.upload("POST", BodySize::exactly(100 << 20));
  play.connect();
  play.client().deliver_body("abc");
  play.origin().leave();
  BOOST_TEST(wait_for(play, [&] { return play.client().has_head; }));
  BOOST_TEST(play.client().head.status == 408);
  BOOST_CHECK(play.client().reset_with == Fault::early_response);
  BOOST_TEST(play.settle());
  BOOST_CHECK(play.done.fault == Fault::body_timeout);
}

BOOST_AUTO_TEST_CASE(idle_in_the_body_cuts_both_sides) {
  Playbook play(quick_timeouts());
  play.get();
  play.connect();
  FakeStream& origin = play.origin();
  play.respond_unended(200, BodySize::exactly(10));
  BOOST_TEST(wait_for(play, [&] { return play.client().gone; }));
  BOOST_CHECK(play.client().reset_with == Fault::idle_timeout);
  BOOST_CHECK(origin.reset_with == Fault::idle_timeout);
  BOOST_TEST(!play.client().ended);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(the_timeout_is_idle_and_never_total) {
  constexpr std::uint64_t kIdle = 200'000'000;  // ns
  // A machine that stands still for most of the idle time proves nothing: then once more.
  for (int attempt = 0; attempt < 10; ++attempt) {
    config::Config c = one_cluster();
    c.timeouts.stream_idle = std::chrono::nanoseconds(kIdle);
    Playbook play(c);
    play.get();
    play.connect();
    play.respond_unended(200, BodySize::unknown());
    FakeStream& origin = play.origin();
    const Instant begin = monotonic_now();
    Instant last = begin;
    std::uint64_t longest = 0;
    while (last < begin + 3 * kIdle && longest < kIdle / 2) {
      origin.deliver_body("x");
      play.client().leave();
      play.worker.turn(std::chrono::milliseconds(2));
      const Instant now = monotonic_now();
      longest = std::max<std::uint64_t>(longest, now - last);
      last = now;
    }
    if (longest >= kIdle / 2) continue;
    BOOST_CHECK(play.client().reset_with == Fault::none);
    origin.deliver_body({}, End::yes);
    BOOST_TEST(play.settle());
    BOOST_CHECK(play.done.fault == Fault::none);
    return;
  }
  BOOST_FAIL("the machine never ran smoothly for 0.6 s");
}

BOOST_AUTO_TEST_CASE(queue_with_a_deadline) {
  config::Config c = one_cluster();
  c.clusters[0].max_connections = 1;
  c.clusters[0].max_queue = 1;
  c.clusters[0].queue_timeout = std::chrono::milliseconds(20);
  Playbook play(c);
  play.get("/first");
  play.connect();
  FakeStream& second = play.get("/second");
  FakeStream& third = play.get("/third");
  BOOST_TEST(third.head.status == 503);  // full
  BOOST_TEST(wait_for(play, [&] { return second.has_head; }));
  BOOST_TEST(second.head.status == 503);
  BOOST_TEST(play.counters.queue_timeouts == 1u);
  BOOST_TEST(play.counters.queue_full == 1u);
  play.respond(200);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_SUITE_END()
