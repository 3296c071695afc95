#include <boost/test/unit_test.hpp>

#include "matrix/scenarios.h"

namespace twp::test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

bool many_streams(const Wire& w) { return w.http != "h1"; }

/// Ends well or with the word for an upload that nobody needed any more: the response is whole in both cases.
bool ended_early(PairRig& rig, Recorder& r) {
  return rig.until([&] { return r.gone; }) && r.ended && (r.fault == Fault::none || r.fault == Fault::early_response);
}

bool next_request_works(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.respond(200, "still here"); };
  };
  Recorder& r = rig.request(Method::get, "/next");
  return ended_well(rig, r) && r.body == "still here";
}

Head upload(std::size_t n) {
  Head h = Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(n));
  h.fields.add("content-length", std::to_string(n));
  return h;
}

Head websocket_head() {
  Head h = Head::request(Method::connect, "http", "a.test", "/ws");
  h.protocol = "websocket";
  h.fields.add("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
  h.fields.add("sec-websocket-version", "13");
  return h;
}

/// 40 requests at a time: as many connections as the wire needs and no more.
void many_at_once(PairRig& rig) {
  constexpr std::size_t kMany = 40;
  std::size_t ends = 0;
  rig.origin.setup = [&](Recorder& r) {
    // Nobody is answered before all have come: they must all be under way at once.
    r.on_end = [&](Recorder&) {
      if (++ends != kMany) return;
      for (auto& s : rig.origin.streams) s->respond(200, std::string(s->head->path));
    };
  };
  std::vector<Recorder*> all;
  for (std::size_t i = 0; i < kMany; ++i) all.push_back(&rig.request(Method::get, "/" + std::to_string(i)));
  for (std::size_t i = 0; i < kMany; ++i) {
    BOOST_TEST(ended_well(rig, *all[i]));
    BOOST_TEST(all[i]->body == "/" + std::to_string(i));
  }
  BOOST_TEST(rig.shard->counters().dials == (many_streams(rig.pair.origin) ? 1u : kMany));
  BOOST_TEST(rig.shard->client_connections() == (many_streams(rig.pair.client) ? 1u : kMany));
  BOOST_TEST(rig.quiet());
  const std::uint64_t idle = rig.shard->counters().origin_idle;
  BOOST_TEST(idle == rig.shard->counters().origin_connections);
}

/// Both bodies flow at the same time, each piece answered before the next is sent.
void duplex(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.send_head(Head::response(200, BodySize::unknown()), End::no); };
    r.on_data = [](Recorder& s) {
      if (!s.ended) s.send_body("<" + std::exchange(s.body, {}) + ">", End::no);
    };
    r.on_end = [](Recorder& s) { s.send_body("", End::yes); };
  };
  Recorder& r = rig.open();
  r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  std::string expected;
  for (int i = 0; i < 5; ++i) {
    r.send_body("m" + std::to_string(i), End::no);
    expected += "<m" + std::to_string(i) + ">";
    BOOST_REQUIRE(rig.until([&] { return r.body == expected; }));
  }
  r.send_body("", End::yes);
  BOOST_TEST(ended_well(rig, r));
}

void fields(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      Head h = Head::response(200);
      for (const char* v : {"a=1; Path=/", "b=2"}) h.fields.add("set-cookie", v);
      h.fields.add("x-empty", "");
      s.send_head(h, End::yes);
    };
  };
  Recorder& r = rig.open();
  Head h = Head::request(Method::get, "http", "a.test", "/");
  h.fields.add("cookie", "a=1; b=2; c=3");
  h.fields.add("x-twice", "1");
  h.fields.add("x-twice", "2");
  h.fields.add("authorization", "Basic c2VjcmV0");
  r.send_head(h, End::yes);
  BOOST_TEST(ended_well(rig, r));
  const HeaderBlock& seen = rig.origin.streams.back()->head->fields;
  BOOST_TEST(seen.get(HeaderId::cookie) == "a=1; b=2; c=3");
  BOOST_TEST(seen.get(HeaderId::authorization) == "Basic c2VjcmV0");
  BOOST_TEST(describe(seen).find("x-twice: 1\nx-twice: 2\n") != std::string::npos);
  BOOST_TEST(seen.get(HeaderId::via).starts_with(many_streams(rig.pair.client) ? "2.0 twp-" : "1.1 twp-"));
  BOOST_TEST(seen.get("x-forwarded-proto") == (rig.pair.client.tls ? "https" : "http"));
  BOOST_TEST(rig.origin.streams.back()->head->scheme == (rig.pair.origin.tls ? "https" : "http"));
  BOOST_TEST(r.head->fields.get(HeaderId::via).starts_with(many_streams(rig.pair.origin) ? "2.0 twp-" : "1.1 twp-"));
  BOOST_TEST(describe(r.head->fields).find("set-cookie: a=1; Path=/\nset-cookie: b=2\nx-empty: \n") != std::string::npos);
}

void expect_continue(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.send_head(Head::interim(100), End::no); };
    r.on_end = [](Recorder& s) { s.respond(200, s.body); };
  };
  Recorder& r = rig.open();
  r.on_interim = [](Recorder& s) { s.send_body("wanted", End::yes); };
  Head h = upload(6);
  h.fields.add("expect", "100-continue");
  r.send_head(h, End::no);
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST(r.body == "wanted");
  BOOST_TEST(rig.origin.streams.back()->head->fields.get(HeaderId::expect) == "100-continue");
  BOOST_TEST(r.interims.size() == 1u);
}

/// A final response instead of 100: the client owes nobody its body.
void expect_refused(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.respond(403, "no"); };
  };
  Recorder& r = rig.open();
  Head h = upload(50'000);
  h.fields.add("expect", "100-continue");
  r.send_head(h, End::no);
  BOOST_TEST(ended_early(rig, r));
  BOOST_TEST(r.head->status == 403);
  BOOST_TEST(r.body == "no");
  BOOST_TEST(rig.quiet());
  BOOST_TEST(next_request_works(rig));
}

/// The response is whole and the origin then gives the rest of the upload up: no error for the client.
void early_response_and_no_more(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      s.respond(200, "enough");
      s.reset(Fault::early_response);
    };
  };
  Recorder& r = rig.open();
  r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  r.send_body("part", End::no);
  BOOST_TEST(rig.until([&] { return r.ended; }));
  BOOST_TEST(r.body == "enough");
  BOOST_TEST(ended_early(rig, r));
  BOOST_TEST(rig.quiet());
  BOOST_TEST(next_request_works(rig));
}

/// The client has the whole response and gives up its own upload.
void client_stops_after_early_response(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.respond(200, "early"); };
  };
  Recorder& r = rig.open();
  r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  r.send_body("part", End::no);
  BOOST_TEST(rig.until([&] { return r.ended; }));
  r.reset(Fault::cancelled);
  BOOST_TEST(rig.until([&] { return rig.origin.streams.back()->gone; }));
  BOOST_TEST(rig.quiet());
  BOOST_TEST(next_request_works(rig));
}

/// An origin that takes nothing: the upload is bounded by windows and socket buffers, then everything arrives.
void slow_origin(PairRig& rig) {
  constexpr std::size_t kTotal = 24 * kMiB;
  rig.origin.setup = [](Recorder& r) {
    r.consume = false;
    r.keep_body = 0;
    r.on_end = [](Recorder& s) { s.respond(200, "all"); };
  };
  const std::size_t before = BlockPool::local().live_blocks();
  std::size_t made = 0;
  Recorder& r = rig.open();
  const auto more = [&made](Recorder& s) {
    const std::size_t n = std::min<std::size_t>(kBlockSize, kTotal - made);
    if (n == 0) return;
    made += n;
    s.send_body(std::string(n, 'u'), made == kTotal ? End::yes : End::no);
  };
  r.on_octets_sent = [more](Recorder& s, std::size_t n) {
    for (std::size_t i = 0; i < n; i += kBlockSize) more(s);
  };
  r.send_head(upload(kTotal), End::no);
  for (int i = 0; i < 8; ++i) more(r);
  BOOST_REQUIRE(rig.until([&] {
    return !rig.origin.streams.empty() && rig.origin.streams.back()->unconsumed >= rig.limits.stream_window;
  }));
  std::size_t last = 1;
  BOOST_TEST(rig.until([&] {
    run_quiet(rig.worker);
    return std::exchange(last, made) == made;
  }));
  BOOST_TEST(made < kTotal);
  BOOST_TEST((BlockPool::local().live_blocks() - before) * kBlockSize <= 4u * kMiB);
  Recorder& o = *rig.origin.streams.back();
  o.consume = true;
  o.give_credit(o.unconsumed);
  BOOST_TEST((rig.until([&] { return r.gone; }, std::chrono::seconds(30))));
  BOOST_TEST(r.body == "all");
  BOOST_TEST(rig.shard->counters().request_octets == kTotal);
}

/// One client that takes nothing does not hold up another, on the same connection where the wires share one.
void a_stalled_download_stalls_nobody_else(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      if (s.head->path == "/small") {
        s.respond(200, "small");
        return;
      }
      s.send_head(Head::response(200, BodySize::unknown()), End::no);
      s.send_body(std::string(2 * kMiB, 'd'), End::yes);
    };
  };
  std::vector<Recorder*> stalled;
  for (int i = 0; i < 3; ++i) {
    Recorder& r = rig.open();
    r.consume = false;
    stalled.push_back(&r);
    rig.send(r, Method::get, "/large");
  }
  BOOST_REQUIRE(rig.until([&] {
    return std::ranges::all_of(stalled, [&](Recorder* r) { return r->unconsumed >= rig.limits.stream_window; });
  }));
  run_quiet(rig.worker);
  for (int i = 0; i < 3; ++i) {
    Recorder& r = rig.request(Method::get, "/small");
    BOOST_TEST(ended_well(rig, r));
    BOOST_TEST(r.body == "small");
  }
  for (Recorder* r : stalled) {
    r->consume = true;
    r->give_credit(r->unconsumed);
    BOOST_TEST(ended_well(rig, *r));
    BOOST_TEST(r->body.size() == 2 * kMiB);
  }
}

/// A tunnel to anywhere is not for a reverse proxy.
void connect(PairRig& rig) {
  Recorder& r = rig.open();
  r.send_head(Head::request(Method::connect, "http", "b.test:443", ""), End::no);
  BOOST_TEST(rig.until([&] { return r.head && r.ended; }));
  BOOST_TEST(r.head->status == 405);
  BOOST_TEST(rig.until([&] { return r.gone; }));
  BOOST_TEST(rig.origin.streams.empty());
  BOOST_TEST(rig.quiet());
  BOOST_TEST(next_request_works(rig));
}

void websocket_refused(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.respond(403, "not here"); };
  };
  Recorder& r = rig.open();
  r.send_head(websocket_head(), End::no);
  BOOST_TEST(rig.until([&] { return r.ended; }));
  BOOST_TEST(r.head->status == 403);
  BOOST_TEST(r.body == "not here");
  BOOST_TEST(rig.until([&] { return r.gone && rig.origin.streams.back()->gone; }));
  BOOST_TEST(rig.quiet());
  BOOST_TEST(rig.shard->counters().tunnels == 0u);
  BOOST_TEST(next_request_works(rig));
}

/// Each direction of a tunnel ends by itself.
void websocket_half_closed(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      Head yes = Head::response(200);
      yes.set_method(Method::connect);
      s.send_head(yes, End::no);
      s.send_body("bye", End::yes);
    };
  };
  Recorder& r = rig.open();
  r.send_head(websocket_head(), End::no);
  BOOST_REQUIRE(rig.until([&] { return r.ended; }));
  BOOST_TEST(r.body == "bye");
  BOOST_TEST(!r.gone);
  r.send_body("still talking", End::no);
  BOOST_TEST(rig.until([&] { return rig.origin.streams.back()->body == "still talking"; }));
  r.send_body("", End::yes);
  BOOST_TEST(ended_well(rig, r));
}

void websocket_aborted(PairRig& rig, bool by_client) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      Head yes = Head::response(200);
      yes.set_method(Method::connect);
      s.send_head(yes, End::no);
    };
  };
  Recorder& r = rig.open();
  r.send_head(websocket_head(), End::no);
  BOOST_REQUIRE(rig.until([&] { return r.head.has_value(); }));
  Recorder& o = *rig.origin.streams.back();
  (by_client ? r : o).reset(Fault::cancelled);
  BOOST_TEST(rig.until([&] { return r.gone && o.gone; }));
  BOOST_TEST(!(by_client ? o : r).ended);
  BOOST_TEST(rig.quiet());
  BOOST_TEST(next_request_works(rig));
}
void client_aborts_websocket(PairRig& rig) { websocket_aborted(rig, true); }
void origin_aborts_websocket(PairRig& rig) { websocket_aborted(rig, false); }

/// "I have not processed it" is believed where the wire can say so, even of a POST with its body; elsewhere it is 502.
void refused_by_origin(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.respond(200, s.body); };
  };
  BOOST_TEST(ended_well(rig, rig.request(Method::get, "/warm")));
  bool refuse = true;
  rig.origin.setup = [&refuse](Recorder& r) {
    r.on_end = [&refuse](Recorder& s) {
      if (std::exchange(refuse, false)) s.reset(Fault::overloaded);
      else s.respond(200, s.body);
    };
  };
  Recorder& r = rig.request(Method::post, "/pay", "once");
  if (many_streams(rig.pair.origin)) {
    BOOST_TEST(ended_well(rig, r));
    BOOST_TEST(r.head->status == 200);
    BOOST_TEST(r.body == "once");
    BOOST_TEST(rig.shard->counters().replays == 1u);
    BOOST_TEST(rig.shard->counters().dials == 2u);
  } else {
    BOOST_TEST(rig.until([&] { return r.gone; }));
    BOOST_TEST(r.head->status == 502);
    BOOST_TEST(rig.shard->counters().replays == 0u);
  }
}

/// An origin that is being replaced ends its connections in order: what is in flight finishes, the rest goes elsewhere.
void origin_drains(PairRig& rig) {
  rig.origin.setup = {};
  Recorder& slow = rig.request(Method::post, "/slow", "x");
  BOOST_REQUIRE(rig.until([&] { return !rig.origin.streams.empty() && rig.origin.streams.back()->ended; }));
  Recorder& o = *rig.origin.streams.back();
  o.stream->session().drain();
  for (int i = 0; i < 5; ++i) BOOST_TEST(next_request_works(rig));
  o.respond(200, "finished");
  BOOST_TEST(ended_well(rig, slow));
  BOOST_TEST(slow.body == "finished");
  for (int i = 0; i < 5; ++i) BOOST_TEST(next_request_works(rig));
  BOOST_TEST(rig.until([&] { return rig.shard->counters().origin_connections == 1u; }));
}

void grpc_failure(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.reset(Fault::internal); };
  };
  Recorder& r = rig.open();
  Head h = Head::request(Method::post, "http", "a.test", "/pkg.Service/Method", BodySize::unknown());
  h.fields.add("content-type", "application/grpc");
  h.fields.add(HeaderId::te, "trailers");
  r.send_head(h, End::no);
  r.send_body("message", End::yes);
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST(rig.origin.streams.at(0)->head->fields.get(HeaderId::te) == "trailers");
  BOOST_TEST(r.head->status == 200);
  BOOST_TEST(r.head->fields.get(HeaderId::grpc_status) == "14");
  BOOST_TEST(r.body == "");
}

}  // namespace

std::span<const Scenario> cross_scenarios() {
  static constexpr Scenario kAll[] = {
      {"many_at_once", many_at_once},
      {"duplex", duplex},
      {"fields", fields},
      {"expect_continue", expect_continue},
      {"expect_refused", expect_refused},
      {"early_response_and_no_more", early_response_and_no_more},
      {"client_stops_after_early_response", client_stops_after_early_response},
      {"slow_origin", slow_origin},
      {"a_stalled_download_stalls_nobody_else", a_stalled_download_stalls_nobody_else},
      {"connect", connect},
      {"websocket_refused", websocket_refused},
      {"websocket_half_closed", websocket_half_closed},
      {"client_aborts_websocket", client_aborts_websocket},
      {"origin_aborts_websocket", origin_aborts_websocket},
      {"refused_by_origin", refused_by_origin},
      {"origin_drains", origin_drains},
      {"grpc_failure", grpc_failure},
  };
  return kAll;
}

}  // namespace twp::test
