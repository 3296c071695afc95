// What RFC 9113 forbids in heads and bodies, what passes a limit, and frames that a connection does not survive.
#include <boost/test/unit_test.hpp>

#include "support/h2_rig.h"

namespace twp::test {
namespace {

using h2::Fields;
using h2::with;

constexpr std::int64_t kProtocol = 1, kFlowControl = 3, kStreamClosed = 5, kRefused = 7, kCalm = 11;

Fields without(Fields f, std::string_view name) {
  std::erase_if(f, [&](const auto& e) { return e.first == name; });
  return f;
}
Fields replaced(Fields f, std::string_view name, std::string value) {
  for (auto& e : f)
    if (e.first == name) e.second = value;
  return f;
}

struct Bad {
  const char* what;
  Fields fields;
};

std::vector<Bad> bad_requests() {
  const Fields get = h2::get();
  const Fields connect{{":method", "CONNECT"}, {":authority", "a.test:443"}};
  std::vector<Bad> all{
      {"upper-case name", with(get, {{"X-Upper", "1"}})},
      {"empty name", with(get, {{"", "1"}})},
      {"blank in a name", with(get, {{"a b", "1"}})},
      {"colon in a name", with(get, {{"a:b", "1"}})},
      {"control in a name", with(get, {{"a\x01", "1"}})},
      {"octet above 0x7f in a name", with(get, {{"a\xff", "1"}})},
      {"LF in a value", with(get, {{"a", "1\nb: 2"}})},
      {"CR in a value", with(get, {{"a", "1\r"}})},
      {"NUL in a value", with(get, {{"a", std::string("1\0", 2)}})},
      {"blank before a value", with(get, {{"a", " 1"}})},
      {"tab behind a value", with(get, {{"a", "1\t"}})},
      {"connection", with(get, {{"connection", "close"}})},
      {"keep-alive", with(get, {{"keep-alive", "1"}})},
      {"proxy-connection", with(get, {{"proxy-connection", "keep-alive"}})},
      {"upgrade", with(get, {{"upgrade", "h2c"}})},
      {"transfer-encoding", with(get, {{"transfer-encoding", "chunked"}})},
      {"te other than trailers", with(get, {{"te", "gzip"}})},
      {"unknown pseudo-header", with({{":nothing", "1"}}, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/"}})},
      {":status in a request", with(get, {{":status", "200"}})},
      {"pseudo-header behind a field", {{":method", "GET"}, {":scheme", "http"}, {"a", "b"}, {":authority", "a.test"}, {":path", "/"}}},
      {"two :path", with(get, {{":path", "/b"}})},
      {"two :method", with(get, {{":method", "GET"}})},
      {"two :authority", with(get, {{":authority", "a.test"}})},
      {"no :method", without(get, ":method")},
      {"no :scheme", without(get, ":scheme")},
      {"no :path", without(get, ":path")},
      {"no authority and no host", without(get, ":authority")},
      {"empty :path", replaced(get, ":path", "")},
      {":path without a slash", replaced(get, ":path", "b")},
      {":path * and not OPTIONS", replaced(get, ":path", "*")},
      {"blank in :path", replaced(get, ":path", "/a b")},
      {"control in :path", replaced(get, ":path", "/a\x7f")},
      {"fragment in :path", replaced(get, ":path", "/a#b")},
      {"absolute :path", replaced(get, ":path", "http://b.test/")},
      {"blank in :method", replaced(get, ":method", "GE T")},
      {"strange :scheme", replaced(get, ":scheme", "ftp")},
      {"userinfo", replaced(get, ":authority", "user@a.test")},
      {"blank in :authority", replaced(get, ":authority", "a .test")},
      {"slash in :authority", replaced(get, ":authority", "a.test/b")},
      {"a host that disagrees", with(get, {{"host", "b.test"}})},
      {"two hosts", with(without(get, ":authority"), {{"host", "a.test"}, {"host", "a.test"}})},
      {"signed content-length", with(get, {{"content-length", "+1"}})},
      {"empty content-length", with(get, {{"content-length", ""}})},
      {"two content-lengths", with(get, {{"content-length", "1"}, {"content-length", "2"}})},
      {"list of lengths", with(get, {{"content-length", "1, 1"}})},
      {"length without a body", with(get, {{"content-length", "1"}})},
      {"CONNECT with :path", with(connect, {{":path", "/"}})},
      {"CONNECT with :scheme", with(connect, {{":scheme", "http"}})},
      {"CONNECT without a port", replaced(connect, ":authority", "a.test")},
      {"CONNECT without authority", without(connect, ":authority")},
      {":protocol without CONNECT", with(get, {{":protocol", "websocket"}})},
      {"extended CONNECT without :path", with(connect, {{":scheme", "http"}, {":protocol", "websocket"}})},
      {"extended CONNECT with a bad :protocol", with(connect, {{":scheme", "http"}, {":path", "/"}, {":protocol", "a b"}})},
  };
  return all;
}

BOOST_AUTO_TEST_CASE(a_malformed_request_is_reset_and_never_accepted) {
  for (const Bad& bad : bad_requests()) {
    BOOST_TEST_CONTEXT(bad.what) {
      H2ServerRig rig;
      rig.acceptor.setup = [](Recorder& r) { r.on_end = [](Recorder& s) { s.respond(200, "ok"); }; };
      rig.greet();
      rig.play(h2::whole_headers(1, bad.fields));
      BOOST_TEST(rig.acceptor.streams.empty());
      BOOST_TEST(rig.acceptor.rejects.size() == 1u);
      BOOST_TEST(rig.error(1) == kProtocol);
      // The connection and its compression state are unharmed.
      rig.play(h2::whole_headers(3, h2::get()));
      BOOST_TEST(rig.body(3) == "ok");
      BOOST_TEST(rig.owner.session()->active() == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_only_unusual_is_accepted) {
  H2ServerRig rig;
  rig.greet();
  rig.play(h2::whole_headers(1, with(h2::get(), {{"host", "A.test"}, {"te", "trailers"}, {"a", ""}, {"cookie", "a=1"}, {"cookie", "b=2"}})) +
           h2::whole_headers(3, with(without(h2::get(), ":authority"), {{"host", "b.test"}})) +
           h2::whole_headers(5, replaced(h2::get("*", "OPTIONS"), ":scheme", "https")) +
           h2::whole_headers(7, with(h2::get("/", "POST"), {{"content-length", "00"}})) +
           h2::frame(h2::headers, h2::end_headers | h2::end_stream, 9, h2::hpack(with(h2::get(), {{"x-secret", "s"}}), true)));
  BOOST_REQUIRE(rig.acceptor.streams.size() == 5u);
  const HeaderBlock& first = rig.stream(0).head->fields;
  BOOST_TEST(rig.stream(0).head->authority == "a.test");
  BOOST_TEST(!first.has(HeaderId::host));
  BOOST_TEST(first.get(HeaderId::te) == "trailers");
  BOOST_TEST(first.get(HeaderId::cookie) == "a=1; b=2");
  BOOST_TEST(rig.stream(1).head->authority == "b.test");
  BOOST_TEST(rig.stream(2).head->path == "*");
  BOOST_TEST(rig.stream(2).head->scheme == "https");
  BOOST_TEST(rig.stream(3).head->fields.get(HeaderId::content_length) == "0");
  BOOST_TEST(rig.stream(3).head->body.is_exact());
  const HeaderBlock& secret = rig.stream(4).head->fields;
  BOOST_TEST(secret[secret.find("x-secret")].never_index);
}

BOOST_AUTO_TEST_CASE(a_never_indexed_field_stays_one) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.open();
  Head head = Head::request(Method::get, "http", "a.test", "/");
  head.fields.add_view(HeaderId::other, "x-secret", "hidden", true);
  r->send_head(head, End::yes);
  run_quiet(rig.worker);
  rig.collect();
  const h2::Frame* f = rig.find(h2::headers);
  BOOST_REQUIRE(f != nullptr);
  nghttp2_hd_inflater* inflater = nullptr;
  nghttp2_hd_inflate_new(&inflater);
  const auto* p = reinterpret_cast<const std::uint8_t*>(f->payload.data());
  std::size_t n = f->payload.size();
  bool seen = false;
  for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
    nghttp2_nv nv;
    const auto used = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, p, n, 1);
    BOOST_REQUIRE(used >= 0);
    p += used;
    n -= static_cast<std::size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 || std::string_view(reinterpret_cast<char*>(nv.name), nv.namelen) != "x-secret") continue;
    seen = true;
    BOOST_TEST((nv.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
  }
  nghttp2_hd_inflate_del(inflater);
  BOOST_TEST(seen);
}

BOOST_AUTO_TEST_CASE(a_body_that_contradicts_its_length_never_ends_in_order) {
  for (const std::string body : {"1234", "123456"}) {
    H2ServerRig rig;
    rig.greet();
    rig.play(h2::open_headers(1, with(h2::get("/", "POST"), {{"content-length", "5"}})) + h2::frame(h2::data, h2::end_stream, 1, body));
    BOOST_TEST(rig.error(1) == kProtocol);
    BOOST_TEST(!rig.stream().ended);
    BOOST_TEST(rig.stream().gone);
    BOOST_TEST(log_word(rig.stream().fault) == "bad-framing");
  }
}

BOOST_AUTO_TEST_CASE(bad_trailers_reset_the_stream) {
  const std::string begin = h2::open_headers(1, h2::get("/", "POST")) + h2::frame(h2::data, h2::none, 1, "body");
  const std::pair<const char*, std::string> cases[] = {
      {"pseudo-header", h2::whole_headers(1, {{":path", "/"}})},
      {"no END_STREAM", h2::open_headers(1, {{"a", "b"}})},
      {"upper case", h2::whole_headers(1, {{"A", "b"}})},
  };
  for (const auto& [what, frames] : cases) {
    BOOST_TEST_CONTEXT(what) {
      H2ServerRig rig;
      rig.greet();
      rig.play(begin + frames);
      BOOST_TEST(rig.error(1) == kProtocol);
      BOOST_TEST(rig.stream().gone);
      BOOST_TEST(!rig.stream().ended);
    }
  }
}

BOOST_AUTO_TEST_CASE(trailers_lose_what_does_not_belong_there) {
  H2ServerRig rig;
  rig.greet();
  rig.play(h2::open_headers(1, h2::get("/", "POST")) + h2::whole_headers(1, {{"x-sum", "1"}, {"content-type", "a/b"}, {"authorization", "x"}}));
  BOOST_TEST(describe(rig.stream().trailers.value()) == "x-sum: 1\n");
}

struct Limited {
  const char* what;
  std::string frames;
  const char* status;
  const char* word;
};

BOOST_AUTO_TEST_CASE(a_passed_limit_is_answered_with_its_status) {
  HttpLimits limits;
  limits.max_target = 100;
  limits.max_head = 2000;
  limits.max_fields = 20;
  limits.max_body = 10;
  Fields many = h2::get();
  for (int i = 0; i < 21; ++i) many.emplace_back("a" + std::to_string(i), "");
  const Limited cases[] = {
      {"target", h2::open_headers(1, h2::get("/" + std::string(100, 'x'))), "414", "target-too-long"},
      {"head", h2::open_headers(1, with(h2::get(), {{"a", std::string(2000, 'x')}})), "431", "head-too-large"},
      {"fields", h2::open_headers(1, many), "431", "too-many-fields"},
      {"announced body", h2::open_headers(1, with(h2::get("/", "POST"), {{"content-length", "11"}})), "413", "body-too-large"},
      {"method", h2::open_headers(1, h2::get("/", std::string(65, 'M'))), "501", "method-too-long"},
      {"expectation", h2::open_headers(1, with(h2::get(), {{"expect", "tea"}})), "417", "expectation"},
  };
  for (const Limited& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      H2ServerRig rig(limits);
      rig.greet();
      rig.play(c.frames);
      BOOST_TEST(rig.acceptor.streams.empty());
      BOOST_REQUIRE(rig.acceptor.rejects.size() == 1u);
      BOOST_TEST(log_word(rig.acceptor.rejects[0]) == c.word);
      BOOST_REQUIRE(rig.find(h2::headers, 1) != nullptr);
      BOOST_TEST(rig.find(h2::headers, 1)->field(":status") == c.status);
      BOOST_TEST(rig.ended(1));
      BOOST_TEST(rig.error(1) == 0);  // the request is not wanted, the answer is whole
      // What was on its way is passed over.
      rig.play(h2::frame(h2::data, h2::none, 1, std::string(1000, 'x')) + h2::whole_headers(3, h2::get()));
      BOOST_TEST(rig.acceptor.streams.size() == 1u);
      BOOST_TEST(rig.error(0) == -1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_body_over_the_limit_is_answered_and_discarded) {
  HttpLimits limits;
  limits.max_body = 10;
  H2ServerRig rig(limits);
  rig.greet();
  rig.play(h2::open_headers(1, h2::get("/", "POST")) + h2::frame(h2::data, h2::none, 1, "123456789012"));
  BOOST_TEST(log_word(rig.stream().fault) == "body-too-large");
  BOOST_TEST(rig.find(h2::headers, 1)->field(":status") == "413");
  BOOST_TEST(rig.ended(1));
  BOOST_TEST(rig.error(1) == 0);
  BOOST_TEST(rig.owner.session()->active() == 0u);
}

BOOST_AUTO_TEST_CASE(a_body_over_the_limit_is_answered_after_an_interim_head_too) {
  HttpLimits limits;
  limits.max_body = 10;
  H2ServerRig rig(limits);
  rig.acceptor.setup = [](Recorder& r) { r.on_request = [](Recorder& s) { s.send_head(Head::interim(100), End::no); }; };
  rig.greet();
  rig.play(h2::open_headers(1, h2::get("/", "POST")));
  rig.play(h2::frame(h2::data, h2::none, 1, "123456789012"));
  BOOST_REQUIRE(rig.count(h2::headers) == 2u);
  BOOST_TEST(rig.frames.back().type == h2::rst_stream);
  BOOST_TEST(rig.ended(1));
}

BOOST_AUTO_TEST_CASE(a_refused_head_request_gets_no_body) {
  HttpLimits limits;
  limits.max_target = 100;
  H2ServerRig rig(limits);
  rig.greet();
  rig.play(h2::whole_headers(1, h2::get("/" + std::string(100, 'x'), "HEAD")));
  BOOST_TEST(rig.find(h2::headers, 1)->field(":status") == "414");
  BOOST_TEST(rig.find(h2::headers, 1)->field("content-length") != "");
  BOOST_TEST(rig.body(1).empty());
  BOOST_TEST(rig.ended(1));
}

BOOST_AUTO_TEST_CASE(a_head_far_over_the_limit_is_not_even_decoded) {
  HttpLimits limits;
  limits.max_head = 1000;
  H2ServerRig rig(limits);
  rig.greet();
  Fields huge = h2::get();
  for (int i = 0; i < 100; ++i) huge.emplace_back("a", std::string(100, 'x'));
  rig.play(h2::whole_headers(1, huge));
  BOOST_TEST(rig.error(1) == 2);
  BOOST_TEST(rig.acceptor.streams.empty());
}

struct Fatal {
  const char* what;
  std::string frames;
  std::int64_t code;
};

BOOST_AUTO_TEST_CASE(frames_that_end_the_connection) {
  const std::string request = h2::whole_headers(1, h2::get());
  const std::string answered = h2::whole_headers(1, h2::get("/answer"));
  const Fatal cases[] = {
      {"DATA on stream 0", h2::frame(h2::data, 0, 0, "x"), kProtocol},
      {"DATA on an idle stream", h2::frame(h2::data, 0, 5, "x"), kProtocol},
      {"DATA after END_STREAM", request + h2::frame(h2::data, 0, 1, "x"), kStreamClosed},
      {"HEADERS after END_STREAM", request + h2::whole_headers(1, h2::get()), kStreamClosed},
      {"DATA after the whole exchange", answered + h2::frame(h2::data, 0, 1, "x"), kStreamClosed},
      {"HEADERS after the whole exchange", answered + h2::whole_headers(1, h2::get()), kStreamClosed},
      {"DATA after RST_STREAM", h2::open_headers(1, h2::get()) + h2::frame(h2::rst_stream, 0, 1, h2::number(8, 4)) + h2::frame(h2::data, 0, 1, "x"), kStreamClosed},
      {"HEADERS after RST_STREAM", h2::open_headers(1, h2::get()) + h2::frame(h2::rst_stream, 0, 1, h2::number(8, 4)) + h2::whole_headers(1, h2::get()), kStreamClosed},
      {"a smaller id", h2::whole_headers(5, h2::get()) + h2::whole_headers(3, h2::get()), kProtocol},
      {"an even id", h2::whole_headers(2, h2::get()), kProtocol},
      {"PRIORITY on stream 0", h2::frame(h2::priority, 0, 0, std::string(5, '\1')), kProtocol},
      {"PRIORITY on itself", h2::frame(h2::priority, 0, 3, h2::number(3, 4) + "x"), kProtocol},
      {"HEADERS that depend on themselves", h2::frame(h2::headers, h2::end_headers | h2::with_priority, 1, h2::number(1, 4) + "x" + h2::hpack(h2::get())), kProtocol},
      {"RST_STREAM of an idle stream", h2::frame(h2::rst_stream, 0, 1, h2::number(8, 4)), kProtocol},
      {"WINDOW_UPDATE of an idle stream", h2::frame(h2::window_update, 0, 1, h2::number(8, 4)), kProtocol},
      {"WINDOW_UPDATE by 0", h2::frame(h2::window_update, 0, 0, h2::number(0, 4)), kProtocol},
      {"window over 2^31-1", h2::frame(h2::window_update, 0, 0, h2::number(0x7fffffff, 4)), kFlowControl},
      {"SETTINGS of a stream", h2::frame(h2::settings, 0, 1), kProtocol},
      {"PING of 7 octets", h2::frame(h2::ping, 0, 0, "1234567"), 6},
      {"CONTINUATION of nothing", h2::frame(h2::continuation, h2::end_headers, 1, ""), kProtocol},
      {"a frame between HEADERS and CONTINUATION", h2::frame(h2::headers, 0, 1, h2::hpack(h2::get())) + h2::frame(h2::ping, 0, 0, "12345678"), kProtocol},
      {"a frame of 16385 octets", h2::frame(0xfe, 0, 0, std::string(16385, 'x')), 6},
      {"bad compression", h2::frame(h2::headers, h2::end_headers, 1, "\xff\xff\xff\xff\xff\xff"), 9},
      {"PUSH_PROMISE from a client", request + h2::frame(h2::push_promise, h2::end_headers, 1, h2::number(2, 4)), kProtocol},
  };
  for (const Fatal& c : cases) {
    for (const bool at_every_octet : {false, true}) {
      BOOST_TEST_CONTEXT(c.what << (at_every_octet ? " at every octet" : "")) {
        H2ServerRig rig;
        rig.acceptor.setup = [](Recorder& r) {
          r.on_end = [](Recorder& s) { if (s.head->path == "/answer") s.respond(200, "ok"); };
        };
        rig.start(at_every_octet ? every_octet() : whole());
        rig.play(h2::hello() + h2::frame(h2::settings, h2::ack, 0));
        // In turns, so that what one frame causes is known when the next one comes.
        rig.play(c.frames);
        BOOST_TEST(rig.error(0) == c.code);
        BOOST_TEST(rig.owner.gone);
        for (const auto& s : rig.acceptor.streams) BOOST_TEST(s->gone);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(frames_that_crossed_our_reset_are_passed_over) {
  H2ServerRig rig;
  rig.greet();
  rig.play(h2::open_headers(1, h2::get("/", "POST")));
  rig.stream().reset(Fault::internal);
  run_quiet(rig.worker);
  rig.play(h2::frame(h2::data, 0, 1, "late") + h2::whole_headers(1, {{"x-sum", "1"}}) + h2::whole_headers(3, h2::get()));
  BOOST_TEST(rig.error(1) == 2);
  BOOST_TEST(rig.error(0) == -1);
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
}

BOOST_AUTO_TEST_CASE(something_that_is_no_preface_ends_at_once) {
  for (const std::string_view text : {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX"}) {
    H2ServerRig rig;
    rig.start();
    rig.play(text);
    BOOST_TEST(rig.owner.gone);
    BOOST_TEST(rig.peer->over());
    BOOST_TEST(rig.error(0) == kProtocol);
  }
  H2ServerRig rig;
  rig.start();
  rig.play(std::string(h2::kPreface) + h2::frame(h2::ping, 0, 0, "12345678"));
  BOOST_TEST(rig.error(0) == kProtocol);
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(sniffed_octets_come_first) {
  const std::string all = h2::hello() + h2::open_headers(1, h2::get("/", "POST")) + h2::frame(h2::data, h2::end_stream, 1, "body");
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    H2ServerRig rig;
    rig.start(every_octet(), std::string_view(all).substr(0, cut));
    rig.play(std::string_view(all).substr(cut));
    BOOST_REQUIRE(rig.acceptor.streams.size() == 1u);
    BOOST_TEST(rig.stream().body == "body");
    BOOST_TEST(rig.stream().ended);
  }
}

BOOST_AUTO_TEST_CASE(more_streams_than_allowed_are_refused) {
  HttpLimits limits;
  limits.h2_max_streams = 2;
  H2ServerRig rig(limits);
  rig.start();
  rig.play(h2::hello());  // the limit is not yet acknowledged
  std::string frames;
  for (const std::uint32_t id : {1, 3, 5}) frames += h2::whole_headers(id, h2::get());
  rig.play(frames);
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
  BOOST_TEST(rig.error(5) == kRefused);
  BOOST_TEST(rig.error(0) == -1);
}

BOOST_AUTO_TEST_CASE(cancelled_streams_count_until_their_exchange_is_gone) {
  HttpLimits limits;
  limits.h2_max_streams = 4;
  H2ServerRig rig(limits);
  std::size_t most = 0;
  rig.acceptor.setup = [&](Recorder&) {
    const auto there = [](const auto& s) { return !s->gone; };
    most = std::max<std::size_t>(most, static_cast<std::size_t>(std::ranges::count_if(rig.acceptor.streams, there)));
  };
  rig.greet();
  std::string frames;
  for (std::uint32_t id = 1; id < 41; id += 2)
    frames += h2::whole_headers(id, h2::get()) + h2::frame(h2::rst_stream, 0, id, h2::number(8, 4));
  rig.peer->send(frames);
  for (int turns = 0; turns < 20 && rig.acceptor.streams.empty(); ++turns) rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.acceptor.streams.size() == 4u);  // of one turn, in which none of them goes
  rig.settle();
  BOOST_TEST(most == 4u);
  BOOST_TEST(rig.owner.session()->active() == 0u);
}

// --- the client role ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_malformed_response_is_a_fault_of_the_origin) {
  const Fields ok{{":status", "200"}};
  const std::pair<const char*, std::string> cases[] = {
      {"no status", h2::whole_headers(1, {{"a", "b"}})},
      {"status of four digits", h2::whole_headers(1, {{":status", "2000"}})},
      {"status 600", h2::open_headers(1, {{":status", "600"}})},
      {"status 099", h2::open_headers(1, {{":status", "099"}})},
      {"status 101", h2::whole_headers(1, {{":status", "101"}})},
      {"two statuses", h2::whole_headers(1, with(ok, {{":status", "200"}}))},
      {"request pseudo-header", h2::whole_headers(1, with(ok, {{":path", "/"}}))},
      {"upper case", h2::whole_headers(1, with(ok, {{"A", "b"}}))},
      {"LF in a value", h2::whole_headers(1, with(ok, {{"a", "b\nc"}}))},
      {"connection", h2::whole_headers(1, with(ok, {{"connection", "close"}}))},
      {"transfer-encoding", h2::whole_headers(1, with(ok, {{"transfer-encoding", "chunked"}}))},
      {"two lengths", h2::whole_headers(1, with(ok, {{"content-length", "0"}, {"content-length", "1"}}))},
      {"an interim head that ends", h2::whole_headers(1, {{":status", "103"}})},
  };
  for (const auto& [what, frames] : cases) {
    BOOST_TEST_CONTEXT(what) {
      H2ClientRig rig;
      rig.greet();
      Recorder* r = rig.get();
      rig.play(frames);
      BOOST_TEST(!r->head.has_value());
      BOOST_TEST(log_word(r->fault) == "origin-bad-head");
      BOOST_TEST(rig.error(1) == kProtocol);
      BOOST_TEST(!rig.owner.gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_behind_a_response_head_is_not_called_a_bad_head) {
  const std::pair<const char*, std::string> cases[] = {
      {"a window that overflows", h2::frame(h2::window_update, h2::none, 1, h2::number(0x7fffffff, 4))},
      {"trailers that do not end the stream", h2::open_headers(1, {{"a", "b"}})},
  };
  for (const auto& [what, frames] : cases) {
    BOOST_TEST_CONTEXT(what) {
      H2ClientRig rig;
      rig.greet();
      Recorder* r = rig.get();
      rig.play(h2::open_headers(1, {{":status", "200"}}) + frames);
      BOOST_TEST(r->head.has_value());
      BOOST_TEST(log_word(r->fault) == "origin-bad-framing");
      BOOST_TEST(!rig.owner.gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_head_in_too_many_frames_is_a_head_too_large) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.get();
  Recorder* other = rig.get("/other");
  std::string frames = h2::frame(h2::headers, h2::none, 1, std::string(1, '\x88'));
  for (int i = 0; i < 20; ++i) frames += h2::frame(h2::continuation, h2::none, 1, std::string(100, '\x88'));
  rig.play(frames);
  BOOST_TEST(log_word(r->fault) == "origin-head-too-large");
  BOOST_TEST(log_word(other->fault) == "origin-stream-reset");
}

BOOST_AUTO_TEST_CASE(a_response_body_that_contradicts_its_length_is_a_fault) {
  for (const std::string body : {"1234", "123456"}) {
    H2ClientRig rig;
    rig.greet();
    Recorder* r = rig.get();
    rig.play(h2::open_headers(1, {{":status", "200"}, {"content-length", "5"}}) + h2::frame(h2::data, h2::end_stream, 1, body));
    BOOST_TEST(!r->ended);
    BOOST_TEST(log_word(r->fault) == "origin-bad-framing");
  }
}

BOOST_AUTO_TEST_CASE(a_response_head_over_the_limit_is_a_fault) {
  HttpLimits limits;
  limits.max_response_head = 1000;
  limits.max_interim = 2;
  H2ClientRig rig(limits);
  rig.greet();
  Recorder* large = rig.get();
  rig.play(h2::whole_headers(1, {{":status", "200"}, {"a", std::string(1000, 'x')}}));
  BOOST_TEST(log_word(large->fault) == "origin-head-too-large");
  Recorder* interim = rig.get();
  rig.play(h2::open_headers(3, {{":status", "103"}}) + h2::open_headers(3, {{":status", "103"}}) + h2::open_headers(3, {{":status", "103"}}));
  BOOST_TEST(interim->interims.size() == 2u);
  BOOST_TEST(log_word(interim->fault) == "origin-bad-head");
}

BOOST_AUTO_TEST_CASE(floods_end_with_enhance_your_calm) {
  const auto repeat = [](int n, std::string_view frames) {
    std::string s;
    while (n-- != 0) s += frames;
    return s;
  };
  std::string resets, errors;
  for (std::uint32_t id = 1; id < 301; id += 2) {
    resets += h2::whole_headers(id, h2::get()) + h2::frame(h2::rst_stream, 0, id, h2::number(8, 4));
    errors += h2::open_headers(id, h2::get()) + h2::frame(h2::window_update, 0, id, h2::number(0x7fffffff, 4));
  }
  // One entry of 3900 octets in the table, and each octet behind it is that field again.
  const std::string entry = std::string("\x40\x01") + "a\x7f\xbd\x1d" + std::string(3900, 'x');
  std::string bombs;
  for (std::uint32_t id = 1; id < 19; id += 2)
    bombs += h2::frame(h2::headers, h2::end_headers | h2::end_stream, id,
                       h2::hpack(h2::get()) + (id == 1 ? entry : std::string()) + std::string(2000, '\xbe'));
  const Fatal cases[] = {
      {"HPACK bomb", bombs, kCalm},
      {"rapid reset", resets, kCalm},
      {"resets that we are made to send", errors, kCalm},
      {"PING", repeat(500, h2::frame(h2::ping, 0, 0, "12345678")), kCalm},
      {"SETTINGS", repeat(150, h2::frame(h2::settings, 0, 0)), kCalm},
      {"empty DATA", h2::open_headers(1, h2::get("/", "POST")) + repeat(150, h2::frame(h2::data, 0, 1)), kCalm},
      {"PRIORITY", repeat(500, h2::frame(h2::priority, 0, 1, std::string(4, '\0') + "x")), kCalm},
      {"unknown frames", repeat(500, h2::frame(0x42, 0, 0, "x")), kCalm},
      {"CONTINUATION", h2::frame(h2::headers, 0, 1, h2::hpack(h2::get())) + repeat(30, h2::frame(h2::continuation, 0, 1, "")), kCalm},
      {"WINDOW_UPDATE", repeat(1000, h2::frame(h2::window_update, 0, 0, h2::number(1, 4))), kCalm},
  };
  for (const Fatal& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      H2ServerRig rig;
      rig.greet();
      // Piece by piece: a turn for each.
      for (std::string_view left = c.frames; !left.empty() && !rig.owner.gone;) {
        const std::size_t n = std::min<std::size_t>(left.size(), 4000);
        rig.play(left.substr(0, n));
        left.remove_prefix(n);
      }
      BOOST_TEST(rig.error(0) == c.code);
      BOOST_TEST(rig.owner.gone);
      for (const auto& s : rig.acceptor.streams) BOOST_TEST(s->gone);
    }
  }
}

/// A field with a value of 3900 octets, literally and with an entry in the table that \xbe refers to from then on.
std::string table_entry() { return std::string("\x40\x01") + "a\x7f\xbd\x1d" + std::string(3900, 'x'); }

BOOST_AUTO_TEST_CASE(a_decompression_bomb_ends_the_connection_at_once) {
  struct Bomb {
    const char* what;
    std::string fields;
  };
  const Bomb bombs[] = {
      {"far over the limit of a head", std::string(15000, '\xbe')},
      {"within the limit", std::string(10, '\xbe')},
      {"short fields of the static table", std::string(1100, '\x90')},
  };
  for (const Bomb& bomb : bombs) {
    BOOST_TEST_CONTEXT(bomb.what) {
      H2ServerRig rig;
      rig.greet();
      rig.play(h2::frame(h2::headers, h2::end_headers | h2::end_stream, 1, h2::hpack(h2::get()) + table_entry()));
      BOOST_REQUIRE(rig.acceptor.streams.size() == 1u);
      rig.play(h2::frame(h2::headers, h2::end_headers | h2::end_stream, 3, h2::hpack(h2::get()) + bomb.fields) +
               h2::whole_headers(5, h2::get()));
      BOOST_TEST(rig.error(0) == kCalm);
      BOOST_TEST(rig.owner.gone);
      BOOST_TEST(rig.acceptor.streams.size() == 1u);
      BOOST_TEST(rig.stream().gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_table_saves_an_honest_client_is_no_bomb) {
  H2ServerRig rig;
  rig.greet();
  const std::uint8_t whole = h2::end_headers | h2::end_stream;
  rig.play(h2::frame(h2::headers, whole, 1, h2::hpack(h2::get()) + table_entry()));
  for (std::uint32_t id = 3; id < 100; id += 2)
    rig.play(h2::frame(h2::headers, whole, id, h2::hpack(h2::get()) + std::string(3, '\xbe')));
  BOOST_TEST(rig.acceptor.streams.size() == 50u);
  Fields large = h2::get();
  for (int i = 0; i < 15; ++i) large.emplace_back("b", std::string(4000, 'y'));
  const std::string block = h2::hpack(large);
  rig.play(h2::frame(h2::headers, h2::end_stream, 101, block.substr(0, 16000)));
  for (std::size_t at = 16000; at < block.size(); at += 16000)
    rig.play(h2::frame(h2::continuation, at + 16000 < block.size() ? h2::none : h2::end_headers, 101, block.substr(at, 16000)));
  BOOST_TEST(rig.acceptor.streams.size() == 51u);
  BOOST_TEST(rig.error(0) == -1);
}

BOOST_AUTO_TEST_CASE(a_decompression_bomb_of_an_origin_ends_its_connection) {
  H2ClientRig rig;
  rig.greet();
  Recorder* first = rig.get();
  Recorder* second = rig.get();
  const std::string ok = h2::hpack({{":status", "200"}});
  rig.play(h2::frame(h2::headers, h2::end_headers, 1, ok + table_entry() + std::string(100, '\xbe')));
  BOOST_TEST(rig.error(0) == kCalm);
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(first->gone);
  BOOST_TEST(second->gone);
  BOOST_TEST(!first->head.has_value());
}

BOOST_AUTO_TEST_CASE(an_honest_busy_client_is_never_near_the_limit) {
  H2ServerRig rig;
  rig.acceptor.setup = [](Recorder& r) {
    r.on_end = [](Recorder& s) { if (s.head->path != "/slow") s.respond(200, "ok"); };
  };
  rig.greet();
  std::uint32_t id = 1;
  for (int i = 0; i < 2000; ++i, id += 4) {
    // For every request that is answered one that is cancelled, window updates and now and then a PING.
    rig.play(h2::whole_headers(id, h2::get()) + h2::whole_headers(id + 2, h2::get("/slow")));
    rig.play(h2::frame(h2::rst_stream, 0, id + 2, h2::number(8, 4)) + h2::frame(h2::window_update, 0, 0, h2::number(2, 4)) +
             (i % 50 == 0 ? h2::frame(h2::ping, 0, 0, "12345678") : std::string()));
    BOOST_REQUIRE(!rig.owner.gone);
    BOOST_REQUIRE(rig.ended(id));
    rig.frames.clear();
  }
}

}  // namespace
}  // namespace twp::test
