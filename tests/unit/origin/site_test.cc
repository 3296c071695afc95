// The pages through a stream in memory: what is answered to what, and that credit and lifetimes are kept.
#include "origin/site.h"

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "origin/content.h"
#include "origin/handlers.h"
#include "origin/page.h"
#include "site_fixture.h"

using namespace twp;
using namespace twp::origin;

BOOST_AUTO_TEST_SUITE(page)

BOOST_AUTO_TEST_CASE(targets) {
  BOOST_TEST((parse_page("/").kind == PageKind::root));
  BOOST_TEST((parse_page("/?x=1").kind == PageKind::root));
  BOOST_TEST((parse_page("/bytes/1099511627776").n == 1099511627776u));
  BOOST_TEST((parse_page("/status/418").n == 418u));
  const Page p = parse_page("/stream?chunks=3&size=5&interval=0");
  BOOST_TEST((p.kind == PageKind::stream && p.chunks == 3 && p.n == 5 && p.interval_ms == 0));
  for (const char* path : {"/headers", "/echo", "/early", "/trailers", "/interim", "/ws", "/close", "/reset", "/stream"})
    BOOST_TEST((parse_page(path).kind != PageKind::unknown && parse_page(path).kind != PageKind::bad), path);
  for (const char* path : {"", "/x", "/bytes", "//", "/echo/", "/Echo", "/wsx"}) BOOST_TEST((parse_page(path).kind == PageKind::unknown), path);
  for (const char* path : {"/bytes/", "/bytes/-1", "/bytes/x", "/bytes/99999999999999999999", "/status/99", "/status/100", "/status/600",
                           "/delay/999999999", "/stream?chunks", "/stream?chunks=x", "/stream?size=0", "/stream?size=99999999", "/stream?a=1"})
    BOOST_TEST((parse_page(path).kind == PageKind::bad), path);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(site, Fixture)

BOOST_AUTO_TEST_CASE(the_benchmark_page) {
  s.request(Method::get, "/");
  BOOST_TEST(s.status == 200);
  BOOST_TEST(s.body == kJson);
  BOOST_TEST(s.body.size() == 56u);
  BOOST_TEST(s.ended);
  BOOST_TEST((s.size.is_exact() && s.size.n == 56));
  BOOST_TEST(s.fields.find("content-length: 56\n") != std::string::npos);
  BOOST_TEST(s.fields.find(" GMT\n") != std::string::npos);
  s.leave();
  s.gone();
}

BOOST_AUTO_TEST_CASE(head_has_no_body_anywhere) {
  for (const char* path : {"/", "/bytes/10", "/chunked/10", "/status/404", "/headers", "/trailers", "/interim", "/stream", "/close", "/nothing", "/echo", "/early"}) {
    FakeStream h(site);
    h.request(Method::head, path);
    BOOST_TEST(h.status >= 200, path);
    BOOST_TEST(h.ended, path);
    BOOST_TEST(h.octets == 0u, path);
    h.gone();
  }
}

BOOST_AUTO_TEST_CASE(statuses_without_content) {
  for (const char* path : {"/status/204", "/status/304"}) {
    FakeStream n(site);
    n.request(Method::get, path);
    BOOST_TEST(n.ended);
    BOOST_TEST(n.size.is_none());
    BOOST_TEST(n.fields.find("content-length") == std::string::npos);
    n.gone();
  }
  s.request(Method::get, "/status/503");
  BOOST_TEST(s.status == 503);
  BOOST_TEST(s.body == "503 Service Unavailable\n");
  s.gone();
}

BOOST_AUTO_TEST_CASE(uploads_are_taken_before_the_answer) {
  const std::string body(100'000, 'x');
  s.start(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(body.size())), End::no);
  s.upload(body.substr(1), End::no);
  BOOST_TEST(s.status == 0);
  s.upload("x", End::yes);
  BOOST_TEST(s.body == kJson);
  BOOST_TEST(s.credit == body.size());
  s.leave();
  s.gone();
}

BOOST_AUTO_TEST_CASE(expectations) {
  s.request(Method::post, "/", "abc", true);
  BOOST_TEST((s.interim == std::vector<std::uint16_t>{100}));
  BOOST_TEST(s.status == 200);
  s.gone();
  FakeStream unknown(site);
  unknown.start([] {
    Head h = Head::request(Method::post, "http", "a.test", "/nothing", BodySize::exactly(3));
    h.fields.add(HeaderId::expect, "100-Continue");
    return h;
  }(), End::no);
  BOOST_TEST(unknown.interim.empty());
  BOOST_TEST(unknown.status == 404);
  unknown.gone();
}

BOOST_AUTO_TEST_CASE(downloads_are_bounded_and_whole) {
  constexpr std::uint64_t kSize = 5'000'000;
  s.keep_body = true;
  s.request(Method::get, "/bytes/5000000");
  BOOST_TEST(s.queued <= 1024u * 1024);
  s.leave();
  BOOST_TEST(s.octets == kSize);
  BOOST_TEST(s.ended);
  for (std::uint64_t at = 0; at < kSize;) {
    const Slice want = pattern_slice(at, kSize - at);
    BOOST_REQUIRE(std::string_view(s.body).substr(at, want.size()) == want.text());
    at += want.size();
  }
  s.gone();

  FakeStream huge(site);  // a TiB is asked for: only what fits is queued
  huge.keep_body = false;
  huge.request(Method::get, "/bytes/1099511627776");
  BOOST_TEST((huge.size.n == 1099511627776u));
  BOOST_TEST(huge.octets <= 1024u * 1024);
  huge.gone(Fault::peer_reset);

  FakeStream none(site);
  none.request(Method::get, "/chunked/0");
  BOOST_TEST(none.ended);
  BOOST_TEST(none.size.is_unknown());
  none.gone();
}

BOOST_AUTO_TEST_CASE(echo_returns_credit_as_octets_leave) {
  Head head = Head::request(Method::post, "http", "a.test", "/echo", BodySize::unknown());
  head.fields.add(HeaderId::content_type, "text/x");
  s.start(std::move(head), End::no);
  BOOST_TEST(s.status == 200);
  BOOST_TEST(s.fields.find("content-type: text/x\n") != std::string::npos);
  s.upload("hello ", End::no);
  s.upload("world", End::no);
  BOOST_TEST(s.body == "hello world");
  BOOST_TEST(s.credit == 0u);
  s.leave();
  BOOST_TEST(s.credit == 11u);
  HeaderBlock trailers;
  trailers.add("x-end", "yes");
  s.events().on_trailers(s, std::move(trailers));
  BOOST_TEST(s.trailers == "x-end: yes\n");
  s.gone();
}

BOOST_AUTO_TEST_CASE(early_answers_after_8_kib) {
  s.start(Head::request(Method::post, "http", "a.test", "/early", BodySize::exactly(1'000'000)), End::no);
  s.upload(std::string(8191, 'x'), End::no);
  BOOST_TEST(s.status == 0);
  s.upload("x", End::no);
  BOOST_TEST(s.body == kJson);
  BOOST_TEST(s.ended);
  s.upload(std::string(100'000, 'x'), End::no);
  BOOST_TEST(s.credit == 108'192u);  // the rest is still taken
  s.gone();
  FakeStream small(site);
  small.request(Method::post, "/early", "abc");
  BOOST_TEST(small.body == kJson);
  small.gone();
}

BOOST_AUTO_TEST_CASE(interim_trailers_close_reset) {
  s.request(Method::get, "/interim");
  BOOST_TEST((s.interim == std::vector<std::uint16_t>{100, 103}));
  BOOST_TEST(s.body == kJson);
  s.gone();
  FakeStream t(site);
  t.request(Method::get, "/trailers");
  BOOST_TEST(t.trailers == "x-twp-trailer: after the body\nx-twp-octets: 21\n");
  BOOST_TEST(t.body.size() == 21u);
  t.gone();
  FakeStream c(site);
  c.request(Method::get, "/close");
  BOOST_TEST(c.session_.drained);
  BOOST_TEST(c.body == kJson);
  c.gone();
  FakeStream r(site);
  r.request(Method::get, "/reset");
  BOOST_TEST(!r.ended);
  r.leave();
  BOOST_TEST((r.reset_with == Fault::internal));
  r.gone(Fault::internal);
}

BOOST_AUTO_TEST_CASE(headers_echo_the_head) {
  Head head = Head::request(Method::get, "http", "a.test", "/headers?q=\x01");
  head.fields.add("X-Odd", "a\"b\\c\xff");
  s.start(std::move(head), End::yes);
  BOOST_TEST(s.body.find(R"("authority":"a.test")") != std::string::npos);
  BOOST_TEST(s.body.find(R"("path":"/headers?q=\u0001")") != std::string::npos);
  BOOST_TEST(s.body.find("X-Odd") != std::string::npos);
  BOOST_TEST(s.body.find(R"(\u00ff)") != std::string::npos);
  s.gone();
}

BOOST_AUTO_TEST_CASE(delay_and_stream_wait_for_their_timers) {
  s.request(Method::get, "/delay/20");
  BOOST_TEST(s.status == 0);
  const Instant began = worker.now();
  while (s.status == 0 && monotonic_now() < began + 5'000'000'000u) worker.turn(std::chrono::milliseconds(5));
  BOOST_TEST(s.body == kJson);
  BOOST_TEST(monotonic_now() - began >= 20'000'000u);
  s.gone();
  FakeStream t(site);
  t.request(Method::get, "/stream?chunks=3&size=7&interval=1");
  while (!t.ended && monotonic_now() < began + 9'000'000'000u) worker.turn(std::chrono::milliseconds(5));
  BOOST_TEST(t.octets == 21u);
  t.leave();
  t.gone();
  // A client that goes while the timer runs: nothing is sent to a stream that is dead.
  std::optional<FakeStream> dead(site);
  dead->request(Method::get, "/delay/1");
  dead->gone(Fault::peer_reset);
  dead.reset();
  for (int i = 0; i < 5; ++i) worker.turn(std::chrono::milliseconds(1));
}

BOOST_AUTO_TEST_CASE(websocket_echo) {
  Head head = Head::request(Method::connect, "http", "a.test", "/ws", BodySize::unknown());
  head.protocol = "websocket";
  s.start(std::move(head), End::no);
  BOOST_TEST(s.status == 200);
  BOOST_TEST(!s.ended);
  const ws::Mask mask{9, 8, 7, 6};
  const auto frame = [&](ws::Opcode op, bool fin, std::string payload) {
    std::array<std::byte, ws::kMaxHeader> h{};
    const std::size_t n = ws::encode_header({op, fin, true, mask, payload.size()}, h);
    ws::apply_mask(std::as_writable_bytes(std::span(payload)), mask, 0);
    return std::string(reinterpret_cast<const char*>(h.data()), n) + payload;
  };
  s.upload(frame(ws::Opcode::text, true, "abc"), End::no);
  BOOST_TEST(s.body == "\x81\x03" "abc");
  s.upload(frame(ws::Opcode::ping, true, "p"), End::no);
  BOOST_TEST(s.body.ends_with("\x8a\x01p"));
  BOOST_TEST(s.credit < 16u);  // nothing has left yet
  s.leave();
  BOOST_TEST(s.credit == 16u);
  s.body.clear();
  const std::string big(500'000, 'q');
  s.upload(frame(ws::Opcode::binary, true, big), End::no);
  s.leave();
  BOOST_TEST((s.body == std::string("\x82\x7f\0\0\0\0\0\x07\xa1\x20", 10) + big));
  s.body.clear();
  s.upload(frame(ws::Opcode::close, true, std::string("\x03\xe8", 2) + "bye"), End::no);
  BOOST_TEST(s.body == std::string("\x88\x02\x03\xe8", 4));
  BOOST_TEST(s.ended);
  s.upload("", End::yes);
  s.leave();
  s.gone();
}

BOOST_AUTO_TEST_CASE(websocket_failures) {
  const auto open = [&](FakeStream& w) {
    Head head = Head::request(Method::connect, "http", "a.test", "/ws", BodySize::unknown());
    head.protocol = "websocket";
    w.start(std::move(head), End::no);
  };
  open(s);
  s.upload("\x81\x01x", End::no);  // not masked
  BOOST_TEST(s.body == std::string("\x88\x02\x03\xea", 4));
  BOOST_TEST(s.ended);
  s.gone();
  FakeStream cut(site);
  open(cut);
  cut.upload("", End::yes);  // the client just goes
  BOOST_TEST(cut.ended);
  cut.gone();
  FakeStream version(site);
  Head head = Head::request(Method::connect, "http", "a.test", "/ws", BodySize::unknown());
  head.protocol = "websocket";
  head.fields.add(HeaderId::sec_websocket_version, "8");
  version.start(std::move(head), End::no);
  BOOST_TEST(version.status == 426);
  BOOST_TEST(version.fields.find("sec-websocket-version: 13\n") != std::string::npos);
  version.gone();
  FakeStream plain(site);
  plain.request(Method::connect, "");
  BOOST_TEST(plain.status == 405);
  plain.gone();
}

BOOST_AUTO_TEST_SUITE_END()
