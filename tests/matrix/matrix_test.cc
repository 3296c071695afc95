// Every scenario on every pair of wires.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "matrix/scenarios.h"

namespace bdata = boost::unit_test::data;

namespace twp::test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

void get(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.respond(200, "hello"); };
  };
  for (int i = 0; i < 3; ++i) {
    Recorder& r = rig.request(Method::get, "/a%2Fb?x=" + std::to_string(i));
    BOOST_TEST(ended_well(rig, r));
    BOOST_TEST(r.head->status == 200);
    BOOST_TEST(r.body == "hello");
    const Head& seen = *rig.origin.streams.back()->head;
    BOOST_TEST(seen.path == "/a%2Fb?x=" + std::to_string(i));
    BOOST_TEST(seen.authority == "a.test");
    BOOST_TEST(seen.method_name == "GET");
  }
  BOOST_TEST(rig.shard->counters().dials == 1u);  // one connection to the origin serves them all
}

void head(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      Head h = Head::response(200);
      h.fields.add("content-length", "12345");
      s.send_head(h, End::yes);
    };
  };
  Recorder& r = rig.request(Method::head, "/");
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST(r.head->fields.get(HeaderId::content_length) == "12345");
  BOOST_TEST(r.body == "");
  BOOST_TEST(ended_well(rig, rig.request(Method::head, "/again")));
}

void echo(PairRig& rig, std::size_t size) {
  const std::string body = pattern(size);
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.respond(200, s.body); };
  };
  Recorder& r = rig.request(Method::post, "/echo", body);
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST((r.body == body));
  BOOST_TEST((rig.origin.streams.back()->body == body));
}
void post(PairRig& rig) { echo(rig, 5); }
void one_mib_both_ways(PairRig& rig) { echo(rig, kMiB); }

/// Bodies of unknown length and trailers, both ways.
void trailers(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      s.send_head(Head::response(200, BodySize::unknown()), End::no);
      s.send_body("down", End::no);
      HeaderBlock t;
      t.add("x-down", "1");
      s.send_trailers(t);
    };
  };
  Recorder& r = rig.open();
  Head h = Head::request(Method::post, "http", "a.test", "/", BodySize::unknown());
  h.fields.add(HeaderId::te, "trailers");
  r.send_head(h, End::no);
  r.send_body("up", End::no);
  HeaderBlock t;
  t.add("x-up", "2");
  r.send_trailers(t);
  BOOST_TEST(ended_well(rig, r));
  Recorder& o = *rig.origin.streams.back();
  BOOST_TEST(o.body == "up");
  BOOST_REQUIRE(o.trailers.has_value());
  BOOST_TEST(describe(*o.trailers) == "x-up: 2\n");
  BOOST_TEST(r.body == "down");
  BOOST_REQUIRE(r.trailers.has_value());
  BOOST_TEST(describe(*r.trailers) == "x-down: 1\n");
}

/// Many pieces of unknown length, both ways.
void chunked(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.send_head(Head::response(200, BodySize::unknown()), End::no); };
    r.on_end = [](Recorder& s) {
      for (std::size_t i = 0; i < s.body.size(); i += 999) s.send_body(std::string_view(s.body).substr(i, 999), End::no);
      s.send_body("", End::yes);
    };
  };
  const std::string body = pattern(50'000);
  Recorder& r = rig.open();
  r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
  for (std::size_t i = 0; i < body.size(); i += 777) r.send_body(std::string_view(body).substr(i, 777), End::no);
  r.send_body("", End::yes);
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST((r.body == body));
}

void interim(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) {
      Head hints = Head::interim(103);
      hints.fields.add("link", "</s>");
      s.send_head(hints, End::no);
      s.send_head(Head::interim(103), End::no);
      s.respond(200, "x");
    };
  };
  Recorder& r = rig.request(Method::get, "/");
  BOOST_TEST(ended_well(rig, r));
  BOOST_REQUIRE(r.interims.size() == 2u);
  BOOST_TEST(r.interims[0].status == 103);
  BOOST_TEST(r.interims[0].fields.get("link") == "</s>");
}

/// The final response is complete while the upload still goes on; then the upload ends in order.
void early_response(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) { s.respond(200, "early"); };
  };
  Recorder& r = rig.open();
  Head h = Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(100'000));
  h.fields.add("content-length", "100000");
  r.send_head(h, End::no);
  r.send_body(std::string(50'000, 'u'), End::no);
  BOOST_TEST(rig.until([&] { return r.ended; }));
  BOOST_TEST(r.body == "early");
  BOOST_TEST(!r.gone);
  r.send_body(std::string(50'000, 'u'), End::yes);
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST(rig.until([&] { return rig.origin.streams.back()->body.size() == 100'000; }));
}

enum class At { upload, waiting, download };

/// One side goes away at one phase: the other hears of it, nothing looks whole, and the proxy goes on.
void abort(PairRig& rig, bool client_aborts, At at) {
  rig.origin.setup = [at](Recorder& r) {
    if (at != At::download) return;
    r.on_end = [](Recorder& s) {
      Head h = Head::response(200, BodySize::exactly(100'000));
      h.fields.add("content-length", "100000");
      s.send_head(h, End::no);
      s.send_body(std::string(1000, 'd'), End::no);
    };
  };
  Recorder& r = rig.open();
  const bool upload = at == At::upload;
  Head h = Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(100'000));
  h.fields.add("content-length", "100000");
  r.send_head(h, End::no);
  r.send_body(std::string(upload ? 1000 : 100'000, 'u'), upload ? End::no : End::yes);
  BOOST_REQUIRE(rig.until([&] {
    if (rig.origin.streams.empty()) return false;
    Recorder& o = *rig.origin.streams.back();
    return upload ? o.body.size() == 1000 : at == At::waiting ? o.ended : r.body.size() == 1000;
  }));
  Recorder& o = *rig.origin.streams.back();
  if (client_aborts) r.reset(Fault::cancelled);
  else o.reset(Fault::internal);
  BOOST_TEST(rig.until([&] { return o.gone && r.gone; }));
  BOOST_TEST((o.fault != Fault::none));
  if (client_aborts) {
    BOOST_TEST(log_word(r.fault) == "cancelled");
    if (upload) BOOST_TEST(!o.ended);
  } else if (at == At::download) {
    BOOST_TEST(!r.ended);
    BOOST_TEST((r.fault != Fault::none));
  } else {
    BOOST_TEST(r.head->status == 502);
  }
  BOOST_TEST(rig.quiet());
  rig.origin.setup = [](Recorder& s) {
    s.on_end = [](Recorder& x) { x.respond(200, "still here"); };
  };
  Recorder& next = rig.request(Method::get, "/next");
  BOOST_TEST(ended_well(rig, next));
  BOOST_TEST(next.body == "still here");
}
void client_aborts_upload(PairRig& rig) { abort(rig, true, At::upload); }
void client_aborts_waiting(PairRig& rig) { abort(rig, true, At::waiting); }
void client_aborts_download(PairRig& rig) { abort(rig, true, At::download); }
void origin_aborts_upload(PairRig& rig) { abort(rig, false, At::upload); }
void origin_aborts_waiting(PairRig& rig) { abort(rig, false, At::waiting); }
void origin_aborts_download(PairRig& rig) { abort(rig, false, At::download); }

/// A client that takes nothing: memory is bounded by windows and socket buffers, then everything arrives.
void slow_reader(PairRig& rig) {
  constexpr std::size_t kTotal = 48 * kMiB;
  std::size_t made = 0;
  rig.origin.setup = [&made](Recorder& r) {
    const auto more = [&made](Recorder& s) {
      const std::size_t n = std::min<std::size_t>(kBlockSize, kTotal - made);
      if (n == 0) return;
      made += n;
      s.send_body(std::string(n, 'd'), made == kTotal ? End::yes : End::no);
    };
    r.on_end = [more](Recorder& s) {
      Head h = Head::response(200, BodySize::exactly(kTotal));
      h.fields.add("content-length", std::to_string(kTotal));
      s.send_head(h, End::no);
      for (int i = 0; i < 8; ++i) more(s);
    };
    r.on_octets_sent = [more](Recorder& s, std::size_t n) {
      for (std::size_t i = 0; i < n; i += kBlockSize) more(s);
    };
  };
  const std::size_t before = BlockPool::local().live_blocks();
  Recorder& r = rig.open();
  r.consume = false;
  r.keep_body = 0;
  r.send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
  BOOST_REQUIRE(rig.until([&] { return r.unconsumed >= rig.limits.stream_window; }));
  run_quiet(rig.worker);
  std::size_t last = 1;
  BOOST_TEST(rig.until([&] {
    const std::size_t now = made;
    run_quiet(rig.worker);
    const bool still = now == last && made == now;
    last = now;
    return still;
  }));
  BOOST_TEST(made < kTotal);
  BOOST_TEST(r.unconsumed <= rig.limits.stream_window + 2 * kBlockSize);
  // Proxy, client and origin together: three windows and some blocks that are partly used.
  BOOST_TEST((BlockPool::local().live_blocks() - before) * kBlockSize <= 4u * kMiB);
  r.consume = true;
  r.give_credit(r.unconsumed);
  BOOST_TEST(rig.until([&] { return r.gone; }, std::chrono::seconds(30)));
  BOOST_TEST(r.ended);
  BOOST_TEST(log_word(r.fault) == "ok");
  BOOST_TEST(rig.shard->counters().response_octets == kTotal);
}

void websocket(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_request = [](Recorder& s) {
      Head yes = Head::response(200);
      yes.set_method(Method::connect);
      s.send_head(yes, End::no);
    };
    r.on_data = [](Recorder& s) { s.send_body(std::exchange(s.body, {}), s.ended ? End::yes : End::no); };
  };
  Recorder& r = rig.open();
  Head h = Head::request(Method::connect, "http", "a.test", "/ws");
  h.protocol = "websocket";
  h.fields.add("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
  h.fields.add("sec-websocket-version", "13");
  r.send_head(h, End::no);
  BOOST_REQUIRE(rig.until([&] { return r.head.has_value(); }));
  BOOST_TEST(r.head->status == 200);
  BOOST_TEST(r.head->is_connect());
  BOOST_TEST(rig.origin.streams.back()->head->protocol == "websocket");
  r.send_body("ping", End::no);
  BOOST_TEST(rig.until([&] { return r.body == "ping"; }));
  const std::string data = pattern(kMiB);
  r.send_body(data, End::yes);
  BOOST_TEST(rig.until([&] { return r.gone; }));
  BOOST_TEST((r.body == "ping" + data));
  BOOST_TEST(log_word(r.fault) == "ok");
  BOOST_TEST(rig.shard->counters().tunnels == 1u);
}

void drain(PairRig& rig) {
  Recorder& r = rig.request(Method::get, "/");
  BOOST_REQUIRE(rig.until([&] { return !rig.origin.streams.empty() && rig.origin.streams.back()->ended; }));
  bool drained = false;
  rig.shard->drain([&] { drained = true; });
  run_quiet(rig.worker);
  BOOST_TEST(!drained);
  rig.origin.streams.back()->respond(200, "in flight");
  BOOST_TEST(ended_well(rig, r));
  BOOST_TEST(r.body == "in flight");
  BOOST_TEST(rig.until([&] { return drained; }));
}

/// The origin ends idle connections; the next request does not notice.
void retry(PairRig& rig) {
  rig.origin.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { s.respond(200, "x"); };
  };
  for (int i = 0; i < 3; ++i) {
    Recorder& r = rig.request(Method::get, "/");
    BOOST_TEST(ended_well(rig, r));
    BOOST_TEST(r.head->status == 200);
    rig.origin.setup = {};
    if (i == 1) break;
    const std::size_t seen = rig.origin.streams.size();
    Recorder& broken = rig.request(Method::get, "/");
    BOOST_REQUIRE(rig.until([&] { return rig.origin.streams.size() > seen && rig.origin.streams.back()->ended; }));
    rig.origin.streams.back()->stream->session().close(Fault::internal);  // as a crash of the origin
    rig.origin.setup = [](Recorder& s) {
      s.on_end = [](Recorder& x) { x.respond(200, "second try"); };
    };
    BOOST_TEST(ended_well(rig, broken));
    BOOST_TEST(broken.body == "second try");
    BOOST_TEST(rig.shard->counters().replays == 1u);
  }
}

const Scenario kScenarios[] = {
    {"get", get},
    {"head", head},
    {"post", post},
    {"one_mib_both_ways", one_mib_both_ways},
    {"trailers", trailers},
    {"chunked", chunked},
    {"interim", interim},
    {"early_response", early_response},
    {"client_aborts_upload", client_aborts_upload},
    {"client_aborts_waiting", client_aborts_waiting},
    {"client_aborts_download", client_aborts_download},
    {"origin_aborts_upload", origin_aborts_upload},
    {"origin_aborts_waiting", origin_aborts_waiting},
    {"origin_aborts_download", origin_aborts_download},
    {"slow_reader", slow_reader},
    {"websocket", websocket},
    {"drain", drain},
    {"retry", retry},
};

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all(std::begin(kScenarios), std::end(kScenarios));
  const auto more = cross_scenarios();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

BOOST_AUTO_TEST_CASE(the_table_has_every_pair_once) {
  std::set<std::string> names;
  for (const Pair& p : kMatrix) names.insert(std::string(p.client.name) + "->" + std::string(p.origin.name));
  BOOST_TEST(names.size() == 25u);
}

BOOST_DATA_TEST_CASE(matrix, bdata::make(kMatrix) * bdata::make(all_scenarios()), pair, scenario) {
  if (!pair.supported()) {
    BOOST_TEST_MESSAGE("unsupported: " << pair << " " << scenario);
    BOOST_TEST(true);
    return;
  }
  PairRig rig(pair);
  scenario.play(rig);
}

/// Rows that do not run are said, not hidden.
BOOST_AUTO_TEST_CASE(unsupported_rows_are_reported) {
  std::size_t run = 0;
  std::string missing;
  for (const Pair& p : kMatrix) {
    if (p.supported()) ++run;
    else missing += " " + std::string(p.client.name) + "->" + std::string(p.origin.name);
  }
  std::printf("matrix: %zu of 25 pairs run; unsupported:%s\n", run, missing.c_str());
  BOOST_TEST(run != 0u);
}

}  // namespace
}  // namespace twp::test
