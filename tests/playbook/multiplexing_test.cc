// Exchanges with origins whose connections carry many requests: what such an origin may refuse, and what is sent again.
#include <boost/test/unit_test.hpp>

#include "support/playbook.h"

using namespace twp;
using namespace twp::test;

namespace {

const std::string kSmall(1000, 's');

}  // namespace

BOOST_AUTO_TEST_SUITE(multiplexing)

BOOST_AUTO_TEST_CASE(a_refused_request_goes_to_a_new_connection_with_its_body) {
  for (const char* method : {"GET", "POST", "PATCH"}) {
    for (const bool ended : {false, true}) {
      BOOST_TEST_CONTEXT(method << " ended=" << ended) {
        Playbook play;
        play.upload(method, BodySize::exactly(2000));
        play.connect(100);
        play.client().deliver_body(kSmall);
        if (ended) play.client().deliver_body(kSmall, End::yes);
        FakeStream& refused = play.origin();
        refused.fail(Fault::origin_refused_stream);
        BOOST_TEST(!play.client().has_head);
        FakeSession& next = play.connect(100);
        BOOST_TEST(&play.origin().session() == &next);
        BOOST_TEST(play.origin().body == (ended ? kSmall + kSmall : kSmall));
        if (!ended) play.client().deliver_body(kSmall, End::yes);
        BOOST_TEST(play.origin().body == kSmall + kSmall);
        BOOST_TEST(play.origin().ended);
        play.respond(200, "done");
        BOOST_TEST(play.settle());
        BOOST_TEST(play.client().body == "done");
        BOOST_TEST(play.done.replayed);
        BOOST_TEST(play.done.request_octets == 2000u);
      }
    }
  }
}

/// What left for the first origin was credited; the same octets leaving for the second are not credited again.
BOOST_AUTO_TEST_CASE(credit_is_given_once_for_octets_that_are_sent_twice) {
  Playbook play;
  play.upload("POST", BodySize::unknown());
  play.connect(100);
  play.client().deliver_body(kSmall);
  play.client().deliver_body(kSmall);
  play.origin().leave(1500);
  BOOST_TEST(play.client().consumed() == 1500u);
  play.origin().fail(Fault::origin_refused_stream);
  play.connect(100);
  play.origin().leave(700);
  BOOST_TEST(play.client().consumed() == 1500u);
  play.origin().leave(1000);
  BOOST_TEST(play.client().consumed() == 1700u);
  play.origin().fail(Fault::origin_refused_stream);
  play.connect(100);
  play.client().deliver_body(kSmall, End::yes);
  play.origin().leave();
  BOOST_TEST(play.client().consumed() == 3000u);
  BOOST_TEST(play.origin().body.size() == 3000u);
  play.respond(204);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(trailers_are_sent_again_too) {
  Playbook play;
  play.upload("POST", BodySize::unknown());
  play.connect(100);
  play.client().deliver_body("message");
  play.client().deliver_trailers("x-check", "1");
  play.origin().fail(Fault::origin_refused_stream);
  play.connect(100);
  BOOST_TEST(play.origin().body == "message");
  BOOST_TEST(play.origin().trailers == "x-check: 1\n");
  BOOST_TEST(play.origin().ended);
  play.respond(200);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(a_refusal_is_believed_twice_and_not_for_ever) {
  Playbook play;
  play.get();
  for (int i = 0; i < 3; ++i) {
    play.turn();
    BOOST_TEST(play.connector.dials.size() == 1u);
    play.connect(100);
    play.origin().fail(Fault::origin_refused_stream);
  }
  play.turn();
  BOOST_TEST(play.connector.dials.empty());
  BOOST_TEST(play.client().head.status == 502);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.counters.replays == 2u);
}

/// A body that is longer than what is put by, one that came in too many pieces, and an answer that has begun.
BOOST_AUTO_TEST_CASE(what_cannot_be_sent_again_is_502) {
  const std::string large(20'000, 'l');
  for (const int which : {0, 1, 2}) {
    BOOST_TEST_CONTEXT(which) {
      Playbook play;
      play.upload("POST", which == 0 ? BodySize::exactly(large.size()) : BodySize::unknown());
      play.connect(100);
      if (which == 2) {
        play.client().deliver_body("abc");
        play.interim(103);
      } else {
        for (std::size_t i = 0; i < large.size(); i += 500) play.client().deliver_body(large.substr(i, 500));
      }
      const std::size_t blocks = BlockPool::local().live_blocks();
      play.origin().fail(Fault::origin_refused_stream);
      BOOST_TEST(play.client().head.status == 502);
      play.turn();
      BOOST_TEST(play.connector.dials.empty());
      BOOST_TEST(BlockPool::local().live_blocks() <= blocks);
      play.settle();
      play.client().fail(Fault::peer_closed);
      BOOST_TEST(play.settle());
      BOOST_TEST(play.counters.replays == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_connection_with_one_stream_puts_nothing_by) {
  Playbook play;
  play.upload("POST", BodySize::exactly(4));
  play.connect(1);
  play.client().deliver_body("abcd", End::yes);
  play.origin().fail(Fault::origin_refused_stream);
  BOOST_TEST(play.client().head.status == 502);
  BOOST_TEST(play.settle());
}

/// The first request of a connection that will take many, sent before its origin has said so.
BOOST_AUTO_TEST_CASE(what_goes_ahead_of_the_origins_settings_can_be_sent_again) {
  Playbook play;
  play.upload("POST", BodySize::exactly(4));
  play.connector.succeed_unsettled();
  play.client().deliver_body("abcd", End::yes);
  play.origin().fail(Fault::origin_refused_stream);
  play.connect(100);
  BOOST_TEST(play.origin().body == "abcd");
  play.respond(204);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_between_two_tries_ends_it) {
  Playbook play;
  play.upload("POST", BodySize::exactly(4));
  play.connect(100);
  play.client().deliver_body("abcd", End::yes);
  play.origin().fail(Fault::origin_refused_stream);
  play.client().fail(Fault::peer_closed);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.pool().waiting() == 0u);
  BOOST_CHECK(play.done.fault == Fault::client_closed);
}

BOOST_AUTO_TEST_CASE(the_scheme_is_that_of_the_leg_and_the_record_has_the_clients) {
  Playbook play;
  Head h = request_head("GET", "/");
  h.scheme = "https";
  play.request(std::move(h));
  play.connect(100);
  BOOST_TEST(play.origin().head.scheme == "http");
  play.respond(200);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.scheme == "https");
}

/// Where a stream is one of many, a client whose WebSocket was refused need not end its side: nothing is kept for it.
BOOST_AUTO_TEST_CASE(a_refused_websocket_is_over_with_its_answer) {
  for (const bool by_origin : {true, false}) {
    Playbook play;
    play.websocket();
    if (by_origin) {
      play.connect(100);
      play.respond(403, "no");
    } else {
      play.connect(100);
      play.origin().fail(Fault::origin_no_tunnel);
    }
    BOOST_TEST(play.client().head.status == (by_origin ? 403 : 501));
    BOOST_TEST(play.client().ended);
    BOOST_CHECK(play.client().reset_with == Fault::early_response);
    BOOST_TEST(play.settle());
    BOOST_TEST(log_word(play.done.fault) == (by_origin ? "ok" : "origin-no-extended-connect"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
