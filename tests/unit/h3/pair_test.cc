// A client and a server session against each other: every kind of message, over a good network and bad ones.
#include <boost/test/unit_test.hpp>

#include "support/h3_rig.h"

namespace twp::test {
namespace {

void answer(Recorder& s) {
  s.on_end = [](Recorder& r) {
    const std::string path(r.head->path);
    if (path == "/trailers") {
      HeaderBlock t;
      t.add("grpc-status", "0");
      r.send_head(Head::response(200, BodySize::unknown()), End::no);
      r.send_body("before", End::no);
      r.send_trailers(t);
    } else if (path == "/only-trailers") {
      HeaderBlock t;
      t.add("grpc-status", "7");
      r.send_head(Head::response(200, BodySize::unknown()), End::no);
      r.send_trailers(t);
    } else if (path == "/none") {
      r.send_head(Head::response(204), End::yes);
    } else if (path == "/interim") {
      r.send_head(Head::interim(103), End::no);
      r.send_head(Head::interim(100), End::no);
      r.respond(200, "ok");
    } else {
      r.respond(200, "hello " + r.body);
    }
  };
}

struct Pair : H3PairRig {
  explicit Pair(const HttpLimits& l = {}, std::uint64_t seed = 1) : H3PairRig(l, seed) { acceptor.setup = answer; }
  /// Lets happen what happens without anybody doing anything.
  void quiet() { world.pass(std::chrono::seconds(2)); }
  /// The same when datagrams get lost.
  bool all_gone() {
    return until([this] {
      for (const auto& r : streams)
        if (!r->gone) return false;
      for (const auto& r : acceptor.streams)
        if (!r->gone) return false;
      return true;
    });
  }
};

void exchange_everything(Pair& rig) {
  BOOST_REQUIRE(rig.open_up());
  Recorder* get = rig.get("/");
  Recorder* head = rig.get("/", Method::head);
  Recorder* none = rig.get("/none");
  Recorder* trailers = rig.get("/trailers");
  Recorder* only = rig.get("/only-trailers");
  Recorder* interim = rig.get("/interim");
  Recorder* post = rig.open();
  post->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
  post->send_body("some ", End::no);
  post->send_body("body", End::yes);
  Recorder* with_trailers = rig.open();
  HeaderBlock sum;
  sum.add("x-sum", "1");
  with_trailers->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
  with_trailers->send_body("t", End::no);
  with_trailers->send_trailers(sum);
  BOOST_REQUIRE(rig.all_gone());
  BOOST_TEST(get->body == "hello ");
  BOOST_TEST(head->body.empty());
  BOOST_TEST(head->ended);
  BOOST_TEST(none->head->status == 204);
  BOOST_TEST(none->ended);
  BOOST_TEST(trailers->body == "before");
  BOOST_TEST(trailers->trailers.value().get("grpc-status") == "0");
  BOOST_TEST(only->trailers.value().get("grpc-status") == "7");
  BOOST_TEST(interim->interims.size() == 2u);
  BOOST_TEST(interim->body == "ok");
  BOOST_TEST(post->body == "hello some body");
  BOOST_TEST(post->sent == 9u);
  BOOST_TEST(with_trailers->body == "hello t");
  for (const auto& r : rig.streams) BOOST_TEST(log_word(r->fault) == "ok");
  bool sum_seen = false;
  for (const auto& r : rig.acceptor.streams) {
    BOOST_TEST(log_word(r->fault) == "ok");
    BOOST_TEST(r->head->version.major == 3u);
    sum_seen |= r->trailers && r->trailers->get("x-sum") == "1";
  }
  BOOST_TEST(sum_seen);
  rig.quiet();
  BOOST_TEST(rig.client->active() == 0u);
  BOOST_TEST(rig.server->active() == 0u);
}

BOOST_AUTO_TEST_CASE(every_kind_of_message) {
  Pair rig;
  exchange_everything(rig);
}

BOOST_AUTO_TEST_CASE(every_kind_of_message_over_bad_networks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Pair rig({}, seed);
      Conditions c;
      c.delay = std::chrono::milliseconds(3);
      c.jitter = std::chrono::milliseconds(6);
      c.loss = 0.1;
      c.duplicate = 0.1;
      rig.world.link.both_ways(c);
      exchange_everything(rig);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_hundred_streams_at_once) {
  Pair rig;
  BOOST_REQUIRE(rig.open_up());
  BOOST_TEST(rig.client->capacity() == 100u);
  for (int round = 0; round < 3; ++round) {
    const std::size_t from = rig.streams.size();
    for (int i = 0; i < 100; ++i) BOOST_REQUIRE(rig.get("/" + std::to_string(i)) != nullptr);
    BOOST_TEST(rig.client->capacity() == 0u);
    BOOST_TEST(rig.open() == nullptr);
    rig.quiet();
    for (std::size_t i = from; i < rig.streams.size(); ++i) {
      BOOST_TEST(rig.streams[i]->body == "hello ");
      BOOST_TEST(log_word(rig.streams[i]->fault) == "ok");
    }
    BOOST_TEST(rig.client->capacity() == 100u);
  }
  BOOST_TEST(rig.client_owner.capacity_calls != 0u);
}

BOOST_AUTO_TEST_CASE(a_turn_leaves_in_one_piece) {
  Pair rig;
  BOOST_REQUIRE(rig.open_up());
  rig.quiet();
  const auto client = rig.client_end.trains, server = rig.server_end.trains;
  for (int i = 0; i < 50; ++i) rig.get("/");
  BOOST_REQUIRE(rig.all_gone());
  // Requests, then acknowledgements; responses, then the room for new streams.
  BOOST_TEST(rig.client_end.trains - client <= 4u);
  BOOST_TEST(rig.server_end.trains - server <= 4u);
}

BOOST_AUTO_TEST_CASE(a_sender_stops_at_the_window_and_goes_on_with_credit) {
  HttpLimits limits;
  limits.stream_window = 64 * 1024;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  BOOST_REQUIRE(rig.open_up());
  Recorder* post = rig.post("/", std::string(200'000, 'x'));
  rig.quiet();
  Recorder& s = rig.at_server();
  // The window holds heads and frame heads too.
  BOOST_TEST(s.body.size() <= 65536u);
  BOOST_TEST(s.body.size() > 65000u);
  BOOST_TEST(post->sent == s.body.size());
  const std::size_t before = s.body.size();
  s.give_credit(40'000);
  rig.quiet();
  BOOST_TEST(s.body.size() <= before + 40'000u + 500u);
  BOOST_TEST(s.body.size() > before + 39'000u);
  s.consume = true;
  s.give_credit(s.unconsumed);
  BOOST_REQUIRE(rig.until([&] { return s.ended; }));
  BOOST_TEST(s.body.size() == 200'000u);
  rig.quiet();
  BOOST_TEST(post->sent == 200'000u);
}

BOOST_AUTO_TEST_CASE(a_stalled_stream_does_not_stall_others) {
  HttpLimits limits;
  limits.h2_connection_window = 64 * 1024;
  limits.stream_window = 64 * 1024;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) {
    if (r.stream->id() == 0)
      r.consume = false;
    else
      answer(r);
  };
  BOOST_REQUIRE(rig.open_up());
  rig.quiet();
  for (int i = 0; i < 3; ++i) {
    Recorder* post = rig.open();
    post->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
    post->send_body(std::string(300'000, 'x'), End::yes);
  }
  rig.quiet();
  BOOST_TEST(rig.acceptor.streams.at(0)->body.size() <= 65536u);
  BOOST_TEST(rig.streams.at(1)->body.size() == 300'006u);
  BOOST_TEST(rig.streams.at(2)->body.size() == 300'006u);
}

BOOST_AUTO_TEST_CASE(a_body_that_nobody_takes_stays_where_it_is) {
  Pair rig;
  rig.acceptor.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      s.send_head(Head::response(200, BodySize::unknown()), End::no);
      s.send_body(std::string(1 << 20, 'y'), End::yes);
    };
  };
  BOOST_REQUIRE(rig.open_up());
  Recorder* get = rig.open();
  get->consume = false;
  get->send_head(Head::request(Method::get, "https", "a.test", "/"), End::yes);
  rig.quiet();
  BOOST_TEST(get->body.size() <= 256u * 1024);
  BOOST_TEST(rig.at_server().sent == get->body.size());
  get->consume = true;
  get->give_credit(get->unconsumed);
  BOOST_REQUIRE(rig.all_gone());
  BOOST_TEST(get->body.size() == std::size_t{1} << 20);
}

/// What is sent stays until it is acknowledged, and not a turn longer.
BOOST_AUTO_TEST_CASE(acknowledged_octets_are_freed) {
  HttpLimits limits;
  limits.stream_window = 8 << 20;
  limits.h2_connection_window = 8 << 20;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) {
    r.keep_body = 0;
    r.on_end = [](Recorder& s) { s.send_head(Head::response(200, BodySize::unknown()), End::no); };
  };
  BOOST_REQUIRE(rig.open_up());
  Recorder* get = rig.get("/");
  get->keep_body = 0;
  rig.quiet();
  const std::size_t before = BlockPool::local().live_blocks();
  for (int i = 0; i < 20; ++i) {
    rig.at_server().send_body(std::string(1 << 20, 'y'), End::no);
    BOOST_REQUIRE(rig.until([&] { return rig.at_server().sent == std::size_t(i + 1) << 20; }));
    rig.quiet();
    BOOST_TEST(BlockPool::local().live_blocks() <= before + 8);
  }
}

BOOST_AUTO_TEST_CASE(a_tunnel_ends_in_each_direction_by_itself) {
  Pair rig;
  rig.acceptor.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      Head ok = Head::response(200, BodySize::unknown());
      s.send_head(ok, End::no);
      s.send_body("welcome", End::no);
    };
  };
  BOOST_REQUIRE(rig.open_up());
  for (const std::string protocol : {"", "websocket"}) {
    Recorder* c = rig.open();
    Head head = Head::request(Method::connect, "https", "a.test:443", protocol.empty() ? "" : "/chat");
    head.protocol = head.fields.arena().copy(protocol);
    head.body = BodySize::unknown();
    c->send_head(head, End::no);
    rig.quiet();
    Recorder& s = *rig.acceptor.streams.back();
    BOOST_TEST(s.head->protocol == protocol);
    BOOST_TEST(s.head->is_connect());
    BOOST_TEST(c->body == "welcome");
    c->send_body("ping", End::yes);
    rig.quiet();
    BOOST_TEST(s.body == "ping");
    BOOST_TEST(s.ended);
    BOOST_TEST(!s.gone);
    s.send_body(" and pong", End::yes);
    rig.quiet();
    BOOST_TEST(c->body == "welcome and pong");
    BOOST_TEST(log_word(c->fault) == "ok");
    BOOST_TEST(log_word(s.fault) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(a_refused_tunnel_leaves_no_stream_behind) {
  Pair rig;
  rig.acceptor.setup = [](Recorder& r) { r.on_request = [](Recorder& s) { s.respond(403, "no"); }; };
  BOOST_REQUIRE(rig.open_up());
  Recorder* c = rig.open();
  Head head = Head::request(Method::connect, "https", "a.test:443", "/chat");
  head.protocol = "websocket";
  c->send_head(head, End::no);
  rig.quiet();
  BOOST_TEST(c->head->status == 403);
  BOOST_TEST(c->body == "no");
  BOOST_TEST(c->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "ok");
  BOOST_TEST(rig.server->active() == 0u);
  BOOST_TEST(rig.client->active() == 0u);
}

BOOST_AUTO_TEST_CASE(resets_of_either_side_reach_the_other) {
  Pair rig;
  rig.acceptor.setup = nullptr;
  BOOST_REQUIRE(rig.open_up());
  Recorder* a = rig.get("/a");
  Recorder* b = rig.get("/b");
  rig.quiet();
  a->reset(Fault::cancelled);
  rig.acceptor.streams.at(1)->reset(Fault::internal);
  rig.quiet();
  BOOST_TEST(log_word(a->fault) == "cancelled");
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "client-reset");
  BOOST_TEST(log_word(b->fault) == "origin-stream-reset");
  BOOST_TEST(log_word(rig.acceptor.streams.at(1)->fault) == "internal");
  BOOST_TEST(rig.client->active() == 0u);
  BOOST_TEST(rig.server->active() == 0u);
  BOOST_TEST(!rig.client_owner.gone);
}

BOOST_AUTO_TEST_CASE(a_stream_reset_before_it_was_sent_is_never_seen) {
  Pair rig;
  BOOST_REQUIRE(rig.open_up());
  Recorder* a = rig.get("/a");
  a->reset(Fault::cancelled);
  rig.quiet();
  BOOST_TEST(a->gone);
  BOOST_TEST(rig.acceptor.streams.empty());
  BOOST_TEST(rig.client->active() == 0u);
}

BOOST_AUTO_TEST_CASE(an_early_response_is_whole_and_the_upload_is_given_up) {
  Pair rig;
  rig.acceptor.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      s.respond(200, "enough");
      s.reset(Fault::early_response);
    };
  };
  BOOST_REQUIRE(rig.open_up());
  Recorder* post = rig.open();
  post->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
  post->send_body("a beginning", End::no);
  rig.quiet();
  BOOST_TEST(post->body == "enough");
  BOOST_TEST(post->ended);
  BOOST_TEST(log_word(post->fault) == "early-response");
  BOOST_TEST(rig.server->active() == 0u);
  BOOST_TEST(!rig.client_owner.gone);
}

BOOST_AUTO_TEST_CASE(a_reset_in_any_phase_ends_both_sides_and_harms_nobody_else) {
  const std::pair<const char*, std::function<void(Recorder&)>> phases[] = {
      {"head", [](Recorder& r) { r.on_request = [](Recorder& s) { s.reset(Fault::cancelled); }; }},
      {"body", [](Recorder& r) { r.on_data = [](Recorder& s) { s.reset(Fault::cancelled); }; }},
      {"end", [](Recorder& r) { r.on_end = [](Recorder& s) { s.reset(Fault::cancelled); }; }},
      {"interim", [](Recorder& r) { r.on_interim = [](Recorder& s) { s.reset(Fault::cancelled); }; }},
      {"sent",
       [](Recorder& r) { r.on_octets_sent = [](Recorder& s, std::size_t) { s.reset(Fault::cancelled); }; }},
  };
  for (const bool server_resets : {true, false}) {
    for (const auto& [what, install] : phases) {
      BOOST_TEST_CONTEXT(what << (server_resets ? ", server" : ", client")) {
        Pair rig;
        rig.acceptor.setup = [&](Recorder& r) {
          r.on_request = [](Recorder& s) {
            s.send_head(Head::interim(103), End::no);
            s.send_head(Head::response(200, BodySize::unknown()), End::no);
            s.send_body(std::string(100'000, 'd'), End::no);
          };
          r.on_end = [](Recorder& s) { s.send_body("", End::yes); };
          if (server_resets && r.stream->id() == 0) install(r);
        };
        BOOST_REQUIRE(rig.open_up());
        Recorder* post = rig.open();
        if (!server_resets) install(*post);
        post->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
        post->send_body(std::string(100'000, 'u'), End::yes);
        Recorder* other = rig.get("/other");
        rig.quiet();
        BOOST_TEST(post->gone);
        BOOST_TEST(rig.acceptor.streams.at(0)->gone);
        BOOST_TEST(other->body.size() == 100'000u);
        BOOST_TEST(log_word(other->fault) == "ok");
        BOOST_TEST(rig.client->active() == 0u);
        BOOST_TEST(rig.server->active() == 0u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_draining_server_finishes_what_it_has) {
  Pair rig;
  rig.acceptor.setup = nullptr;
  BOOST_REQUIRE(rig.open_up());
  Recorder* get = rig.get("/");
  rig.quiet();
  rig.server->drain();
  rig.quiet();
  BOOST_TEST(rig.client->capacity() == 0u);
  BOOST_TEST(!rig.server_owner.gone);
  rig.acceptor.streams.at(0)->respond(200, "late");
  rig.quiet();
  BOOST_TEST(get->body == "late");
  BOOST_TEST(log_word(get->fault) == "ok");
  BOOST_TEST(rig.server_owner.gone);
  BOOST_TEST(rig.client_owner.gone);
}

BOOST_AUTO_TEST_CASE(a_closed_session_tells_every_stream_and_the_peer) {
  Pair rig;
  rig.acceptor.setup = nullptr;
  BOOST_REQUIRE(rig.open_up());
  Recorder* get = rig.get("/");
  rig.quiet();
  rig.server->close(Fault::shutdown);
  rig.quiet();
  BOOST_TEST(rig.acceptor.streams.at(0)->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "shutdown");
  BOOST_TEST(rig.server_owner.gone);
  BOOST_TEST(get->gone);
  BOOST_TEST(rig.client_owner.gone);
}

}  // namespace
}  // namespace twp::test
