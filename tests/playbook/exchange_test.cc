// The ordinary course of an exchange: heads, bodies, trailers, interim responses, tunnels and credit.
#include <boost/test/unit_test.hpp>

#include "support/playbook.h"

using namespace twp;
using namespace twp::test;

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_AUTO_TEST_CASE(get_is_forwarded_and_answered) {
  Playbook play;
  play.get("/a%2Fb?x=%7C");
  play.turn();
  BOOST_TEST(play.connector.dials.size() == 1u);
  play.connect();
  BOOST_TEST(play.origin().head.path == "/a%2Fb?x=%7C");
  BOOST_TEST(play.origin().head.authority == "a.test");
  BOOST_TEST(play.origin().ended);
  BOOST_TEST(play.origin().head.fields.get("via") == "1.1 twp-0badcafe");
  BOOST_TEST(play.origin().head.fields.get("x-forwarded-for") == "203.0.113.7");
  play.respond(200, "hello");
  BOOST_TEST(play.client().head.status == 200);
  BOOST_TEST(play.client().body == "hello");
  BOOST_TEST(play.client().ended);
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.times == 1u);
  BOOST_TEST(play.done.status == 200);
  BOOST_CHECK(play.done.fault == Fault::none);
  BOOST_TEST(play.done.response_octets == 5u);
  BOOST_TEST(play.counters.responses[2] == 1u);
}

BOOST_AUTO_TEST_CASE(a_connection_is_used_again) {
  Playbook play;
  for (int i = 0; i < 5; ++i) {
    play.get();
    if (i == 0) play.connect();
    play.respond(200, "x");
    BOOST_TEST(play.settle());
  }
  BOOST_TEST(play.connector.started == 1u);
  BOOST_TEST(play.counters.reuses == 4u);
  BOOST_TEST(play.done.reused);
}

BOOST_AUTO_TEST_CASE(body_that_came_before_the_connection_follows_the_head) {
  Playbook play;
  play.upload("POST", BodySize::exactly(6));
  play.client().deliver_body("abc");
  play.client().deliver_body("def", End::yes);
  BOOST_TEST(play.client().consumed() == 0u);  // nothing has left: no credit
  play.connect();
  BOOST_TEST(play.origin().body == "abcdef");
  BOOST_TEST(play.origin().ended);
  play.origin().leave();
  BOOST_TEST(play.client().consumed() == 6u);
  play.respond(204);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(trailers_travel_both_ways) {
  for (const bool early : {true, false}) {
    BOOST_TEST_CONTEXT("trailers before the connection: " << early) {
      Playbook play;
      play.upload("POST", BodySize::unknown());
      play.client().deliver_body("q");
      if (!early) play.connect();
      play.client().deliver_trailers("x-t", "1");
      if (early) play.connect();
      BOOST_TEST(play.origin().body == "q");
      BOOST_TEST(play.origin().trailers == "x-t: 1\n");
      play.respond_unended(200, BodySize::unknown());
      play.origin().deliver_body("r");
      play.origin().deliver_trailers("grpc-status", "0");
      BOOST_TEST(play.client().body == "r");
      BOOST_TEST(play.client().trailers == "grpc-status: 0\n");
      BOOST_TEST(play.settle());
    }
  }
}

BOOST_AUTO_TEST_CASE(trailers_that_frame_or_route_are_dropped) {
  Playbook play;
  play.get();
  play.connect();
  play.respond_unended(200, BodySize::unknown());
  play.origin().deliver_trailers("content-length", "9");
  BOOST_TEST(play.client().trailers == "");
  BOOST_TEST(play.client().ended);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(interim_heads_are_forwarded_and_counted_as_nothing) {
  Playbook play;
  play.upload("POST", BodySize::exactly(2), {{"Expect", "100-continue"}});
  play.connect();
  BOOST_TEST(play.origin().head.fields.get("expect") == "100-continue");
  play.interim(100);
  play.interim(103);
  BOOST_TEST(play.client().interims.size() == 2u);
  BOOST_TEST(!play.client().has_head);
  play.client().deliver_body("ok", End::yes);
  play.respond(200, "ok");
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.status == 200);
}

BOOST_AUTO_TEST_CASE(http_1_0_clients_see_no_interim_head_and_cannot_ask_for_one) {
  Playbook play;
  play.request(request_head("POST", "/", BodySize::exactly(2), {{"Expect", "100-continue"}}, {1, 0}), End::no);
  play.connect();
  BOOST_TEST(!play.origin().head.fields.has(HeaderId::expect));
  play.interim(103);
  BOOST_TEST(play.client().interims.empty());
  play.client().deliver_body("ok", End::yes);
  play.respond(200, "ok");
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(credit_returns_when_octets_have_left_and_not_before) {
  Playbook play;
  play.upload("POST", BodySize::exactly(300));
  play.connect();
  play.respond_unended(200, BodySize::exactly(500));
  FakeStream& origin = play.origin();
  FakeStream& client = play.client();
  client.deliver_body(std::string(300, 'u'), End::yes);
  origin.deliver_body(std::string(500, 'd'), End::yes);
  BOOST_TEST(client.consumed() == 0u);
  BOOST_TEST(origin.consumed() == 0u);
  std::size_t up = 0, down = 0;
  for (const std::size_t n : {1u, 99u, 200u}) {
    origin.leave(n);
    up += n;
    BOOST_TEST(client.consumed() == up);
    client.leave(n + 50);
    down += n + 50;
    BOOST_TEST(origin.consumed() == std::min<std::size_t>(down, 500));
  }
  BOOST_TEST(play.settle());
  BOOST_TEST(client.consumed() == client.delivered());
  BOOST_TEST(origin.consumed() == origin.delivered());
}

BOOST_AUTO_TEST_CASE(a_tunnel_ends_each_direction_by_itself) {
  for (const bool client_first : {true, false}) {
    BOOST_TEST_CONTEXT("client ends first: " << client_first) {
      Playbook play;
      play.websocket();
      play.connect();
      BOOST_TEST(play.origin().head.protocol == "websocket");
      FakeStream& origin = play.origin();
      play.client().deliver_body("too early");
      BOOST_TEST(origin.body == "");  // not before the tunnel is granted
      play.respond_unended(200, BodySize::unknown());
      BOOST_TEST(origin.body == "too early");
      origin.deliver_body("hi");
      if (client_first) {
        play.client().deliver_body("bye", End::yes);
        BOOST_TEST(origin.ended);
        BOOST_TEST(!play.client().ended);
        BOOST_TEST(!play.settle());
        origin.deliver_body(" there", End::yes);
      } else {
        origin.deliver_body(" there", End::yes);
        BOOST_TEST(play.client().ended);
        BOOST_TEST(!origin.ended);
        BOOST_TEST(!play.settle());
        play.client().deliver_body("bye", End::yes);
      }
      BOOST_TEST(play.client().body == "hi there");
      BOOST_TEST(origin.body == "too earlybye");
      BOOST_TEST(play.settle());
      BOOST_TEST(play.done.tunnel);
      BOOST_CHECK(play.done.fault == Fault::none);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_refused_tunnel_discards_what_was_sent_early) {
  Playbook play;
  play.websocket();
  play.connect();
  FakeStream& origin = play.origin();
  play.client().deliver_body("GET /smuggled HTTP/1.1\r\n\r\n");
  play.respond(403, "no");
  BOOST_TEST(play.client().head.status == 403);
  BOOST_TEST(origin.body == "");
  BOOST_TEST(origin.ended);
  BOOST_TEST(!play.done.tunnel);
}

/// An HTTP/1 origin may answer the handshake as it answers any GET. Only HTTP/1 can tell that from a tunnel.
BOOST_AUTO_TEST_CASE(a_2xx_that_grants_no_tunnel_never_looks_like_one) {
  for (const bool http2 : {false, true}) {
    BOOST_TEST_CONTEXT("HTTP/2 client: " << http2) {
      Playbook play;
      Head h = request_head("CONNECT", "/ws", BodySize::none(), {}, http2 ? HttpVersion{2, 0} : HttpVersion{1, 1});
      h.protocol = "websocket";
      play.request(std::move(h), End::no);
      play.connect();
      FakeStream& origin = play.origin();
      play.client().deliver_body("a frame");
      play.respond(200, "no");
      BOOST_TEST(play.client().head.status == (http2 ? 501 : 200));
      if (!http2) BOOST_TEST(play.client().body == "no");
      BOOST_TEST(play.client().ended);
      BOOST_TEST(origin.body == "");
      BOOST_TEST(play.settle());
      BOOST_TEST(!play.done.tunnel);
    }
  }
}

BOOST_AUTO_TEST_CASE(plain_connect_is_not_for_a_reverse_proxy) {
  Playbook play;
  Head h = request_head("CONNECT", "");
  h.set_authority("b.test:443");
  play.request(std::move(h), End::no);
  BOOST_TEST(play.client().head.status == 405);
  BOOST_TEST(play.client().head.fields.has(HeaderId::allow));
  BOOST_TEST(play.connector.started == 0u);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(a_request_that_was_here_before_is_a_loop) {
  Playbook play;
  play.get("/", {{"Via", "1.0 fred, 1.1 twp-0badcafe (x)"}});
  BOOST_TEST(play.client().head.status == 508);
  BOOST_TEST(play.client().head.fields.get("proxy-status") == "twp; error=proxy_loop_detected; details=\"loop\"");
  BOOST_TEST(play.settle());
  BOOST_TEST(play.done.generated);
}

BOOST_AUTO_TEST_CASE(no_route_is_404_and_head_gets_no_body) {
  config::Config c = one_cluster();
  c.routes[0].hosts = {"other.test"};
  Playbook play(c);
  play.request(request_head("HEAD", "/"));
  BOOST_TEST(play.client().head.status == 404);
  BOOST_TEST(play.client().body == "");
  BOOST_TEST(play.client().head.fields.get(HeaderId::content_length) != "");
  BOOST_TEST(play.client().ended);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_CASE(host_policy) {
  config::Config c = one_cluster();
  c.routes[0].preserve_host = false;
  Playbook play(c);
  play.get();
  play.connect();
  BOOST_TEST(play.origin().head.authority == "o1.test:8080");
  BOOST_TEST(play.origin().head.fields.get(HeaderId::x_forwarded_host) == "a.test");
}

BOOST_AUTO_TEST_CASE(one_date_the_origins_when_there_is_one) {
  Playbook play;
  play.get();
  play.connect();
  play.respond(200, "x", {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"Date", "Mon, 07 Nov 1994 08:49:37 GMT"}});
  const HeaderBlock& f = play.client().head.fields;
  BOOST_TEST(f.get(HeaderId::date) == "Sun, 06 Nov 1994 08:49:37 GMT");
  BOOST_TEST(f.find(HeaderId::date, f.find(HeaderId::date) + 1) == HeaderBlock::npos);
  BOOST_TEST(play.settle());
  play.get();
  play.respond(200, "x");
  BOOST_TEST(play.client().head.fields.get(HeaderId::date).ends_with("GMT"));
}

BOOST_AUTO_TEST_CASE(max_forwards_counts_hops) {
  Playbook play;
  play.request(request_head("OPTIONS", "*", BodySize::none(), {{"Max-Forwards", "1"}}));
  play.connect();
  BOOST_TEST(play.origin().head.fields.get(HeaderId::max_forwards) == "0");
  play.respond(200);
  BOOST_TEST(play.settle());
  play.request(request_head("OPTIONS", "*", BodySize::none(), {{"Max-Forwards", "0"}}));
  BOOST_TEST(play.client().head.status == 200);
  BOOST_TEST(play.settle());
  play.request(request_head("TRACE", "/", BodySize::none(), {{"Max-Forwards", "0"}}));
  BOOST_TEST(play.client().head.status == 405);
  BOOST_TEST(play.settle());
}

BOOST_AUTO_TEST_SUITE_END()
