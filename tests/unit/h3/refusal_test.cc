// What RFC 9114 forbids in heads and bodies, what passes a limit, and what a connection does not survive.
#include <boost/test/unit_test.hpp>

#include "support/h3_raw.h"

namespace twp::test {
namespace {

using h3::frame;
using h3::headers;
using h3::Lines;
using h3::request;
using h3::with;

constexpr std::uint64_t kNoError = 0x100, kRejected = 0x10b, kCancelled = 0x10c, kIncomplete = 0x10d, kMessage = 0x10e;

Lines without(Lines f, std::string_view name) {
  std::erase_if(f, [&](const auto& e) { return e.first == name; });
  return f;
}
Lines replaced(Lines f, std::string_view name, std::string_view value) {
  for (auto& e : f)
    if (e.first == name) e.second = value;
  return f;
}

std::vector<std::pair<const char*, Lines>> bad_requests() {
  const Lines get = request();
  const Lines connect{{":method", "CONNECT"}, {":authority", "a.test:443"}};
  return {
      {"upper-case name", with(get, "X-Upper", "1")},
      {"connection", with(get, "connection", "close")},
      {"keep-alive", with(get, "keep-alive", "1")},
      {"proxy-connection", with(get, "proxy-connection", "keep-alive")},
      {"upgrade", with(get, "upgrade", "h2c")},
      {"transfer-encoding", with(get, "transfer-encoding", "chunked")},
      {"te other than trailers", with(get, "te", "gzip")},
      {"unknown pseudo-header", {{":nothing", "1"}, {":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/"}}},
      {":status in a request", with(get, ":status", "200")},
      {"pseudo-header behind a field", {{":method", "GET"}, {":scheme", "https"}, {"a", "b"}, {":authority", "a.test"}, {":path", "/"}}},
      {"two :path", with(get, ":path", "/b")},
      {"two :method", with(get, ":method", "GET")},
      {"two :authority", with(get, ":authority", "a.test")},
      {"no :method", without(get, ":method")},
      {"no :scheme", without(get, ":scheme")},
      {"no :path", without(get, ":path")},
      {"no authority and no host", without(get, ":authority")},
      {"empty :path", replaced(get, ":path", "")},
      {":path without a slash", replaced(get, ":path", "b")},
      {":path * and not OPTIONS", replaced(get, ":path", "*")},
      {"blank in :path", replaced(get, ":path", "/a b")},
      {"fragment in :path", replaced(get, ":path", "/a#b")},
      {"absolute :path", replaced(get, ":path", "http://b.test/")},
      {"blank in :method", replaced(get, ":method", "GE T")},
      {"strange :scheme", replaced(get, ":scheme", "ftp")},
      {"userinfo", replaced(get, ":authority", "user@a.test")},
      {"blank in :authority", replaced(get, ":authority", "a .test")},
      {"slash in :authority", replaced(get, ":authority", "a.test/b")},
      {"a host that disagrees", with(get, "host", "b.test")},
      {"two hosts", with(with(without(get, ":authority"), "host", "a.test"), "host", "a.test")},
      {"signed content-length", with(get, "content-length", "+1")},
      {"empty content-length", with(get, "content-length", "")},
      {"two content-lengths", with(with(get, "content-length", "1"), "content-length", "2")},
      {"list of lengths", with(get, "content-length", "1, 1")},
      {"length without a body", with(get, "content-length", "1")},
      {"CONNECT with :path", with(connect, ":path", "/")},
      {"CONNECT with :scheme", with(connect, ":scheme", "https")},
      {"CONNECT without a port", replaced(connect, ":authority", "a.test")},
      {"CONNECT without authority", without(connect, ":authority")},
      {":protocol without CONNECT", with(get, ":protocol", "websocket")},
      {"extended CONNECT without :path", with(with(connect, ":scheme", "https"), ":protocol", "websocket")},
      {"extended CONNECT with a bad :protocol", with(with(with(connect, ":scheme", "https"), ":path", "/"), ":protocol", "a b")},
  };
}


struct Rig : h3::H3ServerRig {
  explicit Rig(const HttpLimits& l = {}) : H3ServerRig(l) {
    acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& s) { s.respond(200, "ok"); }; };
    BOOST_REQUIRE(greet());
  }
};

BOOST_AUTO_TEST_CASE(a_malformed_request_is_reset_and_never_accepted) {
  for (const auto& [what, lines] : bad_requests()) {
    BOOST_TEST_CONTEXT(what) {
      Rig rig;
      const auto id = rig.ask(headers(lines));
      BOOST_TEST(rig.acceptor.streams.empty());
      BOOST_TEST(rig.acceptor.rejects.size() == 1u);
      BOOST_TEST(rig.peer.resets[id] == kMessage);
      // The connection is unharmed.
      const auto next = rig.ask(headers(request()));
      BOOST_TEST(rig.peer.in[next].ends_with("ok"));
      BOOST_TEST(rig.owner.session()->active() == 0u);
    }
  }
}

/// The library takes these fields out before anybody sees them.
BOOST_AUTO_TEST_CASE(fields_with_octets_that_do_not_belong_there_never_get_in) {
  const Lines bad[] = {{{"a b", "1"}},     {{"a:b", "1"}}, {{"a\x01", "1"}}, {{"a\xff", "1"}}, {{"", "1"}}, {{"a", " 1"}},
                       {{"a", "1\nb: 2"}}, {{"a", "1\r"}}, {{"a", std::string_view("1\0", 2)}}};
  for (const Lines& lines : bad) {
    Rig rig;
    rig.ask(headers(with(request(), lines[0].first, lines[0].second)));
    for (const auto& r : rig.acceptor.streams) BOOST_TEST(r->head->fields.empty());
  }
}

BOOST_AUTO_TEST_CASE(what_is_only_unusual_is_accepted) {
  Rig rig;
  Lines first = with(with(with(request(), "host", "A.test"), "te", "trailers"), "a", "");
  rig.ask(headers(with(with(first, "cookie", "a=1"), "cookie", "b=2")));
  rig.ask(headers(with(without(request(), ":authority"), "host", "b.test")));
  rig.ask(headers(request("*", "OPTIONS")));
  rig.ask(headers(with(request("/", "POST"), "content-length", "00")));
  BOOST_REQUIRE(rig.acceptor.streams.size() == 4u);
  const auto head = [&](std::size_t i) -> const Head& { return *rig.acceptor.streams[i]->head; };
  BOOST_TEST(head(0).authority == "a.test");
  BOOST_TEST(!head(0).fields.has(HeaderId::host));
  BOOST_TEST(head(0).fields.get(HeaderId::te) == "trailers");
  BOOST_TEST(head(0).fields.get(HeaderId::cookie) == "a=1; b=2");
  BOOST_TEST(head(1).authority == "b.test");
  BOOST_TEST(head(2).path == "*");
  BOOST_TEST(head(3).fields.get(HeaderId::content_length) == "0");
}

BOOST_AUTO_TEST_CASE(unknown_frames_streams_and_settings_are_passed_over) {
  Rig rig;
  rig.peer.open(false, h3::varint(0x21 + 0x1f * 7) + "grease", true);
  const auto id = rig.ask(frame(0x21, "x") + headers(request("/", "POST")) + frame(0x40, "yy") + frame(h3::kData, "body") + frame(0x5f, ""));
  BOOST_TEST(rig.acceptor.streams.at(0)->body == "body");
  BOOST_TEST(rig.peer.in[id].ends_with("ok"));
}

BOOST_AUTO_TEST_CASE(a_body_that_contradicts_its_length_never_ends_in_order) {
  for (const char* body : {"1234", "123456"}) {
    Rig rig;
    const auto id = rig.ask(headers(with(request("/", "POST"), "content-length", "5")) + frame(h3::kData, body));
    BOOST_TEST(rig.peer.resets[id] == kMessage);
    BOOST_REQUIRE(rig.acceptor.streams.size() == 1u);
    BOOST_TEST(!rig.acceptor.streams[0]->ended);
    BOOST_TEST(log_word(rig.acceptor.streams[0]->fault) == "bad-framing");
  }
}

BOOST_AUTO_TEST_CASE(bad_trailers_reset_the_stream) {
  for (const Lines& trailers : {Lines{{":path", "/"}}, Lines{{"A", "b"}}, Lines{{"connection", "close"}}}) {
    Rig rig;
    const auto id = rig.ask(headers(request("/", "POST")) + frame(h3::kData, "body") + headers(trailers));
    BOOST_TEST(rig.peer.resets[id] == kMessage);
    BOOST_TEST(rig.acceptor.streams.at(0)->gone);
    BOOST_TEST(!rig.acceptor.streams.at(0)->ended);
  }
}

BOOST_AUTO_TEST_CASE(trailers_lose_what_does_not_belong_there) {
  Rig rig;
  rig.ask(headers(request("/", "POST")) + headers({{"x-sum", "1"}, {"content-type", "a/b"}, {"authorization", "x"}}));
  BOOST_TEST(describe(rig.acceptor.streams.at(0)->trailers.value()) == "x-sum: 1\n");
}

BOOST_AUTO_TEST_CASE(a_stream_without_a_request_is_incomplete) {
  Rig rig;
  const auto id = rig.ask("");
  BOOST_TEST(rig.peer.resets[id] == kIncomplete);
  BOOST_TEST(rig.acceptor.streams.empty());
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(a_passed_limit_is_answered_with_its_status) {
  HttpLimits limits;
  limits.max_target = 100;
  limits.max_head = 2000;
  limits.max_fields = 20;
  limits.max_body = 10;
  const std::string path = "/" + std::string(100, 'x'), value(2000, 'x');
  Lines many = request();
  std::vector<std::string> names;
  for (int i = 0; i < 21; ++i) names.push_back("a" + std::to_string(i));
  for (const std::string& n : names) many.emplace_back(n, "");
  const std::tuple<const char*, Lines, const char*> cases[] = {
      {"target-too-long", request(path), "414"},
      {"head-too-large", with(request(), "a", value), "431"},
      {"too-many-fields", many, "431"},
      {"body-too-large", with(request("/", "POST"), "content-length", "11"), "413"},
      {"expectation", with(request(), "expect", "tea"), "417"},
  };
  for (const auto& [word, lines, status] : cases) {
    BOOST_TEST_CONTEXT(word) {
      Rig rig(limits);
      const auto id = rig.ask(headers(lines), false);
      BOOST_TEST(rig.acceptor.streams.empty());
      BOOST_REQUIRE(rig.acceptor.rejects.size() == 1u);
      BOOST_TEST(log_word(rig.acceptor.rejects[0]) == word);
      BOOST_TEST(rig.peer.in[id].find(status) != std::string::npos);
      BOOST_TEST(rig.peer.ended[id]);
      BOOST_TEST(!rig.peer.resets.contains(id));  // the answer is whole
      rig.peer.send(id, frame(h3::kData, std::string(1000, 'x')));
      rig.quiet();
      BOOST_TEST(rig.peer.stops[id]);  // the request is not wanted
      const auto next = rig.ask(headers(request()));
      BOOST_TEST(rig.peer.in[next].ends_with("ok"));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_body_over_the_limit_is_answered_and_discarded) {
  HttpLimits limits;
  limits.max_body = 10;
  Rig rig(limits);
  const auto id = rig.ask(headers(request("/", "POST")) + frame(h3::kData, "12345"), false);
  rig.peer.send(id, frame(h3::kData, "678901"));
  rig.quiet();
  BOOST_TEST(rig.acceptor.streams.at(0)->gone);
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "body-too-large");
  BOOST_TEST(rig.peer.in[id].find("413") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_head_far_over_the_limit_is_not_kept) {
  HttpLimits limits;
  limits.max_head = 1000;
  Rig rig(limits);
  const std::string value(10'000, 'x');
  const auto id = rig.ask(headers(with(with(request(), "a", value), "b", value)));
  BOOST_TEST(rig.acceptor.streams.empty());
  BOOST_TEST(rig.peer.in[id].find("431") != std::string::npos);
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(what_ends_the_connection) {
  const std::string get = headers(request());
  const auto on_request = [](std::string octets) {
    return [octets](Rig& r) { r.ask(octets); };
  };
  const auto on_control = [](std::string octets) {
    return [octets](Rig& r) { r.peer.send(r.peer.control, octets); };
  };
  const std::tuple<const char*, std::function<void(Rig&)>, const char*> cases[] = {
      {"DATA first", on_request(frame(h3::kData, "x")), "0x105"},
      {"SETTINGS on a request", on_request(get + frame(h3::kSettings, "")), "0x105"},
      {"GOAWAY on a request", on_request(get + frame(h3::kGoaway, h3::varint(0))), "0x105"},
      {"PUSH_PROMISE from a client", on_request(get + frame(h3::kPushPromise, "xx")), "0x105"},
      {"an HTTP/2 frame", on_request(get + frame(6, "")), "0x105"},
      {"a frame that is cut", on_request(get + h3::varint(0) + h3::varint(10) + "abc"), "0x106"},
      {"DATA on the control stream", on_control(frame(h3::kData, "x")), "0x105"},
      {"HEADERS on the control stream", on_control(get), "0x105"},
      {"SETTINGS twice", on_control(frame(h3::kSettings, "")), "0x105"},
      {"the control stream ends", [](Rig& r) { r.peer.send(r.peer.control, "", true); }, "0x104"},
      {"a second control stream", [](Rig& r) { r.peer.open(false, h3::varint(0) + frame(h3::kSettings, "")); }, "0x103"},
      {"a push stream from a client", [](Rig& r) { r.peer.open(false, h3::varint(1)); }, "0x103"},
      {"two encoder streams", [](Rig& r) { r.peer.open(false, h3::varint(2)); r.peer.open(false, h3::varint(2)); }, "0x103"},
      {"a table that is too large", [](Rig& r) { r.peer.open(false, h3::varint(2) + "\x3f\xe1\xff\x7f"); }, "0x201"},
      {"a reference to nothing", on_request(frame(h3::kHeaders, std::string("\0\0\x80", 3))), "0x200"},
      {"an acknowledgement of nothing", [](Rig& r) { r.peer.open(false, h3::varint(3) + "\x84"); }, "0x202"},
  };
  for (const auto& [what, act, code] : cases) {
    BOOST_TEST_CONTEXT(what) {
      Rig rig;
      act(rig);
      rig.quiet();
      BOOST_TEST(rig.peer.over);
      BOOST_TEST(rig.peer.close_code() == code);
      BOOST_TEST(rig.owner.gone);
      for (const auto& r : rig.acceptor.streams) BOOST_TEST(r->gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(settings_must_come_first) {
  h3::H3ServerRig rig;
  BOOST_REQUIRE(rig.start());
  rig.peer.open(false, h3::varint(0) + frame(h3::kGoaway, h3::varint(0)));
  rig.quiet();
  BOOST_TEST(rig.peer.close_code() == "0x10a");
}

BOOST_AUTO_TEST_CASE(settings_of_http2_are_an_error) {
  h3::H3ServerRig rig;
  BOOST_REQUIRE(rig.start());
  rig.peer.greet(h3::varint(2) + h3::varint(0));
  rig.quiet();
  BOOST_TEST(rig.peer.close_code() == "0x109");
}

// --- floods -----------------------------------------------------------------------------------------

/// A client gets no room for another request before the one that it cancelled is over here too.
BOOST_AUTO_TEST_CASE(cancelled_requests_count_until_their_exchange_is_gone) {
  HttpLimits limits;
  limits.h2_max_streams = 5;
  Rig rig(limits);
  rig.acceptor.setup = nullptr;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(rig.ask(headers(request("/", "POST")), false));
  BOOST_TEST(rig.peer.conn->streams_left() == 0u);
  rig.peer.conn->reset_stream(ids[0], kCancelled);
  rig.peer.conn->flush_soon();
  rig.quiet();
  BOOST_TEST(log_word(rig.acceptor.streams.at(0)->fault) == "client-reset");
  BOOST_TEST(rig.peer.resets[ids[0]] == kCancelled);
  BOOST_TEST(rig.peer.conn->streams_left() == 1u);
}

BOOST_AUTO_TEST_CASE(a_flood_of_cancelled_requests_ends_the_connection) {
  HttpLimits limits;
  limits.h2_glitch_burst = 20;
  Rig rig(limits);
  rig.acceptor.setup = nullptr;
  for (int i = 0; i < 60 && !rig.peer.over; ++i) {
    const auto id = rig.ask(headers(request("/", "POST")), false);
    if (id < 0) break;
    rig.peer.conn->reset_stream(id, kCancelled);
    rig.peer.conn->flush_soon();
    rig.quiet();
  }
  BOOST_TEST(rig.peer.close_code() == "0x107");
  BOOST_TEST(rig.acceptor.streams.size() < 30u);
  BOOST_TEST((rig.owner.fault == Fault::flood));
}

BOOST_AUTO_TEST_CASE(a_flood_of_unknown_frames_ends_the_connection) {
  HttpLimits limits;
  limits.h2_glitch_burst = 20;
  Rig rig(limits);
  std::string many = headers(request("/", "POST"));
  for (int i = 0; i < 200; ++i) many += frame(0x21, "");
  rig.ask(many, false);
  BOOST_TEST(rig.peer.close_code() == "0x107");
}

BOOST_AUTO_TEST_CASE(an_honest_busy_client_is_never_near_the_limit) {
  HttpLimits limits;
  limits.h2_glitch_burst = 3;
  limits.h2_glitch_rate = 0;
  Rig rig(limits);
  for (int i = 0; i < 200; ++i) {
    const auto id = rig.ask(headers(request()));
    BOOST_REQUIRE(rig.peer.in[id].ends_with("ok"));
  }
  BOOST_TEST(!rig.owner.gone);
}

// --- what an origin may not do ----------------------------------------------------------------------

const Lines kOk{{":status", "200"}};

BOOST_AUTO_TEST_CASE(a_malformed_response_is_a_fault_of_the_origin) {
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"no status", headers({{"a", "b"}}), "origin-bad-head"},
      {"status of two digits", headers({{":status", "20"}}), "origin-bad-head"},
      {"two statuses", headers({{":status", "200"}, {":status", "200"}}), "origin-bad-head"},
      {"a request's pseudo-header", headers({{":status", "200"}, {":path", "/"}}), "origin-bad-head"},
      {"101", headers({{":status", "101"}}), "origin-bad-head"},
      {"connection", headers({{":status", "200"}, {"connection", "close"}}), "origin-bad-head"},
      {"upper case", headers({{":status", "200"}, {"A", "b"}}), "origin-bad-head"},
      {"a length that is no number", headers({{":status", "200"}, {"content-length", "x"}}), "origin-bad-head"},
      {"too little body", headers(with(kOk, "content-length", "5")) + frame(h3::kData, "1234"), "origin-bad-framing"},
      {"too much body", headers(with(kOk, "content-length", "5")) + frame(h3::kData, "123456"), "origin-bad-framing"},
      {"nothing", "", "origin-bad-framing"},
  };
  for (const auto& [what, octets, word] : cases) {
    BOOST_TEST_CONTEXT(what) {
      h3::H3ClientRig rig;
      BOOST_REQUIRE(rig.greet());
      Recorder* r = rig.get();
      rig.answer(0, octets);
      BOOST_TEST(r->gone);
      BOOST_TEST(!r->ended);
      BOOST_TEST(log_word(r->fault) == word);
      // Others are unharmed.
      Recorder* next = rig.get();
      rig.answer(1, headers(kOk) + frame(h3::kData, "fine"));
      BOOST_TEST(next->body == "fine");
      BOOST_TEST(log_word(next->fault) == "ok");
    }
  }
}

BOOST_AUTO_TEST_CASE(how_a_stream_ends_tells_what_was_lost) {
  const auto ends = [](auto act) {
    h3::H3ClientRig rig;
    BOOST_REQUIRE(rig.greet());
    Recorder* r = rig.get();
    act(rig);
    rig.peer.conn->flush_soon();
    rig.world.pass(std::chrono::milliseconds(200));
    BOOST_TEST(r->gone);
    return std::string(log_word(r->fault));
  };
  BOOST_TEST(ends([](auto& r) { r.peer.conn->reset_stream(0, kRejected); }) == "origin-refused-stream");
  BOOST_TEST(ends([](auto& r) { r.peer.conn->reset_stream(0, 0x102); }) == "origin-stream-reset");
  BOOST_TEST(ends([](auto& r) {
               r.answer(0, headers(kOk) + frame(h3::kData, "half"), false);
               r.peer.conn->reset_stream(0, kRejected);
             }) == "origin-truncated");
  BOOST_TEST(ends([](auto& r) { r.peer.conn->close(kNoError, Fault::none); }) == "origin-closed");
  BOOST_TEST(ends([](auto& r) { r.peer.conn->close(0x102, Fault::internal); }) == "origin-reset");
  BOOST_TEST(ends([](auto& r) {
               r.answer(0, headers(kOk) + frame(h3::kData, "half"), false);
               r.peer.conn->close(kNoError, Fault::none);
             }) == "origin-truncated");
}

BOOST_AUTO_TEST_CASE(a_goaway_ends_what_is_above_its_last_stream_and_finishes_the_rest) {
  h3::H3ClientRig rig;
  BOOST_REQUIRE(rig.greet());
  Recorder* a = rig.get("/a");
  Recorder* b = rig.get("/b");
  rig.peer.send(rig.peer.control, frame(h3::kGoaway, h3::varint(4)));
  rig.world.pass(std::chrono::milliseconds(100));
  BOOST_TEST(log_word(b->fault) == "origin-refused-stream");
  BOOST_TEST(!a->gone);
  BOOST_TEST(rig.session->capacity() == 0u);
  BOOST_TEST(rig.open() == nullptr);
  rig.answer(0, headers(kOk) + frame(h3::kData, "last"));
  BOOST_TEST(a->body == "last");
  BOOST_TEST(log_word(a->fault) == "ok");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(an_extended_connect_waits_for_the_settings) {
  for (const bool allowed : {true, false}) {
    h3::H3ClientRig rig;
    BOOST_REQUIRE(rig.start());
    Recorder* r = rig.open();
    Head head = Head::request(Method::connect, "https", "a.test", "/chat");
    head.protocol = "websocket";
    head.body = BodySize::unknown();
    r->send_head(head, End::no);
    rig.world.pass(std::chrono::milliseconds(100));
    BOOST_TEST(rig.peer.in[0].empty());
    rig.peer.greet(allowed ? h3::varint(8) + h3::varint(1) : std::string());
    rig.world.pass(std::chrono::milliseconds(100));
    BOOST_TEST(rig.peer.in[0].empty() != allowed);
    if (!allowed) BOOST_TEST(log_word(r->fault) == "origin-no-extended-connect");
  }
}

BOOST_AUTO_TEST_CASE(capacity_is_what_the_origin_allows) {
  h3::H3ClientRig rig;
  rig.server_settings.max_streams = 3;
  BOOST_REQUIRE(rig.greet());
  BOOST_TEST(rig.session->capacity() == 3u);
  for (int i = 0; i < 3; ++i) BOOST_REQUIRE(rig.get() != nullptr);
  BOOST_TEST(rig.session->capacity() == 0u);
  BOOST_TEST(rig.open() == nullptr);
  const unsigned calls = rig.owner.capacity_calls;
  rig.peer.conn->grant_streams(2);
  rig.peer.conn->flush_soon();
  rig.world.pass(std::chrono::milliseconds(100));
  BOOST_TEST(rig.session->capacity() == 2u);
  BOOST_TEST(rig.owner.capacity_calls > calls);
}

BOOST_AUTO_TEST_CASE(an_upload_that_is_not_wanted_stops_and_the_response_counts) {
  h3::H3ClientRig rig;
  BOOST_REQUIRE(rig.greet());
  Recorder* r = rig.open();
  r->send_head(Head::request(Method::post, "https", "a.test", "/", BodySize::unknown()), End::no);
  r->send_body(std::string(100'000, 'u'), End::no);
  rig.world.pass(std::chrono::milliseconds(100));
  rig.peer.conn->stop_sending(0, kNoError);
  rig.answer(0, headers(kOk) + frame(h3::kData, "enough"));
  r->send_body(std::string(1000, 'u'), End::no);
  rig.world.pass(std::chrono::milliseconds(200));
  BOOST_TEST(r->body == "enough");
  BOOST_TEST(r->ended);
  BOOST_TEST(r->gone);
  BOOST_TEST(log_word(r->fault) == "early-response");
}

BOOST_AUTO_TEST_CASE(a_response_without_a_body_ends_with_its_head) {
  h3::H3ClientRig rig;
  BOOST_REQUIRE(rig.greet());
  Recorder* head = rig.get("/", Method::head);
  rig.answer(0, headers(with(kOk, "content-length", "5")));
  BOOST_TEST(head->ended);
  BOOST_TEST(log_word(head->fault) == "ok");
  Recorder* none = rig.get();
  rig.answer(1, headers({{":status", "304"}, {"content-length", "5"}}));
  BOOST_TEST(none->ended);
  BOOST_TEST(log_word(none->fault) == "ok");
}

}  // namespace
}  // namespace twp::test
