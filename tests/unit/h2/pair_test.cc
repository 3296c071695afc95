// A client and a server session against each other: every kind of message, whole and cut at every octet.
#include <boost/test/unit_test.hpp>

#include "support/h2_rig.h"

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

struct Pair : H2PairRig {
  explicit Pair(const HttpLimits& l = {}) : H2PairRig(l) { acceptor.setup = answer; }
};

void exchange_everything(Pair& rig) {
  rig.start(every_octet(), every_octet());
  Recorder* get = rig.get("/");
  Recorder* head = rig.get("/", Method::head);
  Recorder* none = rig.get("/none");
  Recorder* trailers = rig.get("/trailers");
  Recorder* only = rig.get("/only-trailers");
  Recorder* interim = rig.get("/interim");
  Recorder* post = rig.open();
  post->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  post->send_body("some ", End::no);
  post->send_body("body", End::yes);
  run_quiet(rig.worker);
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
  for (const auto& r : rig.streams) {
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == "ok");
  }
  for (const auto& r : rig.acceptor.streams) {
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == "ok");
  }
  BOOST_TEST(rig.client->active() == 0u);
  BOOST_TEST(rig.server->active() == 0u);
}

BOOST_AUTO_TEST_CASE(every_kind_of_message_at_every_octet) {
  Pair rig;
  exchange_everything(rig);
}

BOOST_AUTO_TEST_CASE(a_hundred_streams_at_once) {
  Pair rig;
  rig.start();
  run_quiet(rig.worker);
  BOOST_TEST(rig.client->capacity() == 100u);
  for (int round = 0; round < 3; ++round) {
    const std::size_t from = rig.streams.size();
    for (int i = 0; i < 100; ++i) BOOST_REQUIRE(rig.get("/" + std::to_string(i)) != nullptr);
    BOOST_TEST(rig.client->capacity() == 0u);
    BOOST_TEST(rig.open() == nullptr);
    run_quiet(rig.worker);
    for (std::size_t i = from; i < rig.streams.size(); ++i) {
      BOOST_TEST(rig.streams[i]->body == "hello ");
      BOOST_TEST(log_word(rig.streams[i]->fault) == "ok");
    }
    BOOST_TEST(rig.client->capacity() == 100u);
  }
  BOOST_TEST(rig.client_owner.capacity_calls != 0u);
}

/// Heads that need CONTINUATION and bodies that stop where the output is full, from two sessions in turns: the buffer that the
/// server sessions of a thread share holds nothing that is still needed.
BOOST_AUTO_TEST_CASE(sessions_of_one_thread_do_not_mix_their_frames) {
  HttpLimits l;
  l.max_response_head = 1024 * 1024;
  l.stream_window = 1024 * 1024;
  l.h2_connection_window = 8 * 1024 * 1024;
  Pair rig(l);
  rig.acceptor.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      const char c = s.head->path.back();
      Head h = Head::response(200, BodySize::exactly(700'000));
      for (const char* name : {"x-a", "x-b", "x-c"}) h.fields.add(name, std::string(20'000, c));
      s.send_head(h, End::no);
      s.send_body(std::string(700'000, c), End::yes);
    };
  };
  rig.start();
  RecordingOwner client2{rig.worker}, server2{rig.worker};
  auto [a, b] = MemoryTransport::make_pair(rig.worker);
  MemoryTransport* const slow = b.get();
  Session* const second = client2.hold(make_h2_client(rig.worker, std::move(a), client2, l));
  server2.hold(make_h2_server(rig.worker, std::move(b), rig.acceptor, server2, l, {}));
  run_quiet(rig.worker);
  rig.server_transport->set_write_space(3000);
  slow->set_write_space(5000);
  std::vector<std::unique_ptr<Recorder>> more;
  for (int i = 0; i < 4; ++i) {
    rig.get("/" + std::string(1, static_cast<char>('a' + i)));
    Recorder& r = *more.emplace_back(std::make_unique<Recorder>());
    r.stream = second->open(r);
    r.send_head(Head::request(Method::get, "http", "a.test", "/" + std::string(1, static_cast<char>('A' + i))), End::yes);
  }
  run_quiet(rig.worker);
  const auto check = [](const Recorder& r, char c) {
    BOOST_TEST(log_word(r.fault) == "ok");
    BOOST_REQUIRE(r.head.has_value());
    for (const char* name : {"x-a", "x-b", "x-c"}) BOOST_CHECK(r.head->fields.get(name) == std::string(20'000, c));
    BOOST_CHECK(r.body == std::string(700'000, c));
  };
  for (std::size_t i = 0; i < 4; ++i) {
    check(*rig.streams[i], static_cast<char>('a' + i));
    check(*more[i], static_cast<char>('A' + i));
  }
}

BOOST_AUTO_TEST_CASE(a_turn_leaves_in_one_write) {
  Pair rig;
  rig.start();
  run_quiet(rig.worker);
  const unsigned client = rig.client_transport->writes(), server = rig.server_transport->writes();
  for (int i = 0; i < 50; ++i) rig.get("/");
  run_quiet(rig.worker);
  BOOST_TEST(rig.streams.back()->body == "hello ");
  BOOST_TEST(rig.client_transport->writes() - client == 1u);
  BOOST_TEST(rig.server_transport->writes() - server == 1u);
}

BOOST_AUTO_TEST_CASE(a_sender_stops_at_the_window_and_goes_on_with_credit) {
  HttpLimits limits;
  limits.stream_window = 64 * 1024;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  rig.start();
  run_quiet(rig.worker);
  Recorder* post = rig.open();
  post->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(200'000)), End::no);
  post->send_body(std::string(200'000, 'x'), End::yes);
  run_quiet(rig.worker);
  Recorder& s = *rig.acceptor.streams.at(0);
  BOOST_TEST(s.body.size() == 65536u);
  BOOST_TEST(post->sent == 65536u);
  s.give_credit(40'000);
  run_quiet(rig.worker);
  BOOST_TEST(s.body.size() == 105'536u);
  s.consume = true;
  s.give_credit(s.unconsumed);
  run_quiet(rig.worker);
  BOOST_TEST(s.body.size() == 200'000u);
  BOOST_TEST(s.ended);
  BOOST_TEST(post->sent == 200'000u);
}

BOOST_AUTO_TEST_CASE(a_stalled_stream_does_not_stall_others) {
  HttpLimits limits;
  limits.h2_connection_window = 64 * 1024;
  limits.stream_window = 64 * 1024;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) {
    if (r.stream->id() == 1)
      r.consume = false;
    else
      answer(r);
  };
  rig.start();
  run_quiet(rig.worker);
  for (int i = 0; i < 3; ++i) {
    Recorder* post = rig.open();
    post->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
    post->send_body(std::string(300'000, 'x'), End::yes);
  }
  run_quiet(rig.worker);
  BOOST_TEST(rig.acceptor.streams.at(0)->body.size() == 65536u);
  BOOST_TEST(rig.streams.at(1)->body.size() == 300'006u);
  BOOST_TEST(rig.streams.at(2)->body.size() == 300'006u);
}

BOOST_AUTO_TEST_CASE(output_is_bounded_while_the_transport_takes_nothing) {
  HttpLimits limits;
  limits.stream_window = 64 << 20;
  limits.h2_connection_window = 64 << 20;
  Pair rig(limits);
  rig.acceptor.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      s.send_head(Head::response(200, BodySize::unknown()), End::no);
      s.send_body(std::string(4 << 20, 'y'), End::yes);
    };
  };
  rig.start();
  run_quiet(rig.worker);
  rig.server_transport->set_write_space(0);
  Recorder* get = rig.get("/");
  run_quiet(rig.worker);
  BOOST_TEST(get->body.empty());
  rig.server_transport->set_write_space(100'000);
  run_quiet(rig.worker);
  BOOST_TEST(get->body.size() == std::size_t{4} << 20);
  BOOST_TEST(rig.acceptor.streams.at(0)->sent == std::size_t{4} << 20);
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
  rig.start();
  for (const std::string protocol : {"", "websocket"}) {
    Recorder* c = rig.open();
    Head head = Head::request(Method::connect, "http", "a.test:443", protocol.empty() ? "" : "/chat");
    head.protocol = head.fields.arena().copy(protocol);
    head.body = BodySize::unknown();
    c->send_head(head, End::no);
    run_quiet(rig.worker);
    Recorder& s = *rig.acceptor.streams.back();
    BOOST_TEST(s.head->protocol == protocol);
    BOOST_TEST(s.head->is_connect());
    BOOST_TEST(c->body == "welcome");
    c->send_body("ping", End::yes);
    run_quiet(rig.worker);
    BOOST_TEST(s.body == "ping");
    BOOST_TEST(s.ended);
    BOOST_TEST(!s.gone);
    s.send_body(" and pong", End::yes);
    run_quiet(rig.worker);
    BOOST_TEST(c->body == "welcome and pong");
    BOOST_TEST(log_word(c->fault) == "ok");
    BOOST_TEST(log_word(s.fault) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(a_refused_tunnel_leaves_no_stream_behind) {
  Pair rig;
  rig.acceptor.setup = [](Recorder& r) { r.on_request = [](Recorder& s) { s.respond(403, "no"); }; };
  rig.start();
  Recorder* c = rig.open();
  Head head = Head::request(Method::connect, "http", "a.test:443", "/chat");
  head.protocol = "websocket";
  c->send_head(head, End::no);
  run_quiet(rig.worker);
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
  rig.start();
  Recorder* a = rig.get("/a");
  Recorder* b = rig.get("/b");
  run_quiet(rig.worker);
  a->reset(Fault::cancelled);
  rig.acceptor.streams.at(1)->reset(Fault::internal);
  run_quiet(rig.worker);
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
  rig.start();
  Recorder* a = rig.get("/a");
  a->reset(Fault::cancelled);
  run_quiet(rig.worker);
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
  rig.start();
  Recorder* post = rig.open();
  post->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  post->send_body("a beginning", End::no);
  run_quiet(rig.worker);
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
          if (server_resets && r.stream->id() == 1) install(r);
        };
        rig.start();
        Recorder* post = rig.open();
        if (!server_resets) install(*post);
        post->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
        post->send_body(std::string(100'000, 'u'), End::yes);
        Recorder* other = rig.get("/other");
        run_quiet(rig.worker);
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
  rig.start();
  Recorder* get = rig.get("/");
  run_quiet(rig.worker);
  rig.server->drain();
  run_quiet(rig.worker);
  BOOST_TEST(rig.client->capacity() == 0u);
  BOOST_TEST(!rig.server_owner.gone);
  rig.acceptor.streams.at(0)->respond(200, "late");
  run_quiet(rig.worker);
  BOOST_TEST(get->body == "late");
  BOOST_TEST(log_word(get->fault) == "ok");
  BOOST_TEST(rig.server_owner.gone);
  BOOST_TEST(rig.client_owner.gone);
}

BOOST_AUTO_TEST_CASE(a_closed_session_tells_every_stream_and_the_peer) {
  Pair rig;
  rig.acceptor.setup = nullptr;
  rig.start();
  Recorder* get = rig.get("/");
  run_quiet(rig.worker);
  rig.server->close(Fault::shutdown);
  run_quiet(rig.worker);
  BOOST_TEST(rig.acceptor.streams.at(0)->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "shutdown");
  BOOST_TEST(rig.server_owner.gone);
  BOOST_TEST(get->gone);
  BOOST_TEST(rig.client_owner.gone);
}

}  // namespace
}  // namespace twp::test
