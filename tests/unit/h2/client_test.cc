// The client role against an origin made by hand: GOAWAY, refusals, extended CONNECT, how streams end.
#include <boost/test/unit_test.hpp>

#include "h2/h2_impl.h"
#include "support/h2_rig.h"

namespace twp::test {
namespace {

constexpr std::uint16_t kMaxStreams = 3, kConnectProtocol = 8;

std::string rst(std::uint32_t stream, std::uint32_t code) {
  return h2::frame(h2::rst_stream, 0, stream, h2::number(code, 4));
}
std::string goaway(std::uint32_t last, std::uint32_t code = 0) {
  return h2::frame(h2::goaway, 0, 0, h2::number(last, 4) + h2::number(code, 4));
}
const h2::Fields kOk{{":status", "200"}};

BOOST_AUTO_TEST_CASE(a_client_says_hello_with_its_settings) {
  H2ClientRig rig;
  rig.greet();
  const h2::Frame* s = rig.find(h2::settings);
  BOOST_REQUIRE(s != nullptr);
  BOOST_TEST(s->payload.find(h2::setting(2, 0)) != std::string::npos);           // no push
  BOOST_TEST(s->payload.find(h2::setting(4, 256 * 1024)) != std::string::npos);  // stream window
  BOOST_TEST(s->payload.find(h2::setting(9, 1)) != std::string::npos);           // no RFC 7540 priorities
  BOOST_REQUIRE(rig.find(h2::window_update) != nullptr);
  BOOST_TEST(rig.find(h2::window_update)->u32(0) == 1024u * 1024 - 65535);
}

BOOST_AUTO_TEST_CASE(capacity_is_what_the_origin_allows) {
  H2ClientRig rig;
  rig.greet(h2::setting(kMaxStreams, 2));
  BOOST_TEST(rig.owner.session()->capacity() == 2u);
  rig.get();
  rig.get();
  BOOST_TEST(rig.owner.session()->capacity() == 0u);
  BOOST_TEST(rig.get() == nullptr);
  const unsigned calls = rig.owner.capacity_calls;
  rig.play(h2::whole_headers(1, kOk));
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
  BOOST_TEST(rig.owner.capacity_calls == calls + 1);
  rig.play(h2::frame(h2::settings, 0, 0, h2::setting(kMaxStreams, 10)));
  BOOST_TEST(rig.owner.session()->capacity() == 9u);
}

BOOST_AUTO_TEST_CASE(one_stream_is_opened_before_the_origin_has_said_how_many) {
  H2ClientRig rig;
  rig.start();
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
  BOOST_TEST(!rig.owner.session()->settled());
  BOOST_REQUIRE(rig.get() != nullptr);
  BOOST_TEST(rig.find(h2::headers, 1) != nullptr);  // it waits for nothing
  BOOST_TEST(rig.get() == nullptr);
  const unsigned calls = rig.owner.capacity_calls;
  rig.play(h2::frame(h2::settings, 0, 0, h2::setting(kMaxStreams, 3)));
  BOOST_TEST(rig.owner.session()->settled());
  BOOST_TEST(rig.owner.session()->capacity() == 2u);
  BOOST_TEST(rig.owner.capacity_calls == calls + 1);
}

BOOST_AUTO_TEST_CASE(a_refused_stream_was_never_processed) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.get();
  rig.play(rst(1, 7));
  BOOST_TEST(log_word(r->fault) == "origin-refused-stream");
  BOOST_TEST((info(r->fault).retry == Retry::always));
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(goaway_ends_what_is_above_its_last_stream_and_finishes_the_rest) {
  H2ClientRig rig;
  rig.greet();
  Recorder* a = rig.get();
  Recorder* b = rig.get();
  rig.play(goaway(1));
  BOOST_TEST(log_word(b->fault) == "origin-refused-stream");
  BOOST_TEST(!a->gone);
  BOOST_TEST(rig.owner.session()->capacity() == 0u);
  rig.play(h2::open_headers(1, kOk) + h2::frame(h2::data, h2::end_stream, 1, "last"));
  BOOST_TEST(a->body == "last");
  BOOST_TEST(log_word(a->fault) == "ok");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(log_word(rig.owner.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(a_request_that_crosses_a_goaway_may_be_replayed) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.open();
  rig.peer->send(goaway(0));
  r->send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(log_word(r->fault) == "origin-refused-stream");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(an_origin_that_does_not_acknowledge_settings_is_left) {
  HttpLimits limits;
  limits.h2_settings_timeout = std::chrono::milliseconds(30);
  H2ClientRig rig(limits);
  rig.start();
  rig.play(h2::frame(h2::settings, h2::none, 0));
  Recorder* r = rig.get();
  BOOST_TEST(run_until(rig.worker, [&] { return rig.owner.gone; }));
  rig.settle();
  BOOST_TEST(rig.error(0) == 4);  // SETTINGS_TIMEOUT
  BOOST_TEST(r->gone);
  BOOST_TEST(log_word(rig.owner.fault) == "origin-timeout");
}

/// The last id is used, then the session takes no more, says so, and goes when its streams have ended: the pool dials.
BOOST_AUTO_TEST_CASE(a_session_without_ids_drains) {
  constexpr std::uint32_t kLast = 0x7fffffff;
  H2ClientRig rig;
  rig.greet();
  static_cast<twp::h2::H2Session*>(rig.owner.session())->begin_ids_at(static_cast<std::int32_t>(kLast - 2));
  Recorder* a = rig.get();
  BOOST_TEST(rig.owner.session()->capacity() != 0u);
  const unsigned calls = rig.owner.capacity_calls;
  Recorder* b = rig.get();
  BOOST_REQUIRE(b != nullptr);
  BOOST_REQUIRE(rig.find(h2::headers, kLast) != nullptr);
  BOOST_TEST(rig.owner.session()->capacity() == 0u);
  BOOST_TEST(rig.owner.capacity_calls > calls);
  BOOST_TEST(rig.open() == nullptr);
  BOOST_TEST(!rig.owner.gone);
  rig.play(h2::whole_headers(kLast - 2, kOk) + h2::whole_headers(kLast, kOk));
  BOOST_TEST(log_word(a->fault) == "ok");
  BOOST_TEST(log_word(b->fault) == "ok");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(log_word(rig.owner.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(a_stream_that_got_no_id_was_never_processed) {
  H2ClientRig rig;
  rig.greet();
  static_cast<twp::h2::H2Session*>(rig.owner.session())->begin_ids_at(0x7fffffff);
  Recorder* last = rig.open();
  Recorder* none = rig.open();
  for (Recorder* r : {last, none}) r->send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
  rig.settle();
  BOOST_TEST(!last->gone);
  BOOST_TEST(log_word(none->fault) == "origin-refused-stream");
  BOOST_TEST((info(none->fault).retry == Retry::always));
}

BOOST_AUTO_TEST_CASE(how_a_stream_ends_tells_what_was_lost) {
  struct Case {
    const char* what;
    std::string frames;
    bool whole_request;
    const char* word;
  };
  const Case cases[] = {
      {"reset before an answer", rst(1, 2), true, "origin-stream-reset"},
      {"reset in the answer", h2::open_headers(1, kOk) + h2::frame(h2::data, 0, 1, "x") + rst(1, 2), true,
       "origin-truncated"},
      {"the rest of the upload is not wanted", h2::whole_headers(1, kOk) + rst(1, 0), false,
       "early-response"},
      {"no error and no answer", rst(1, 0), true, "origin-stream-reset"},
  };
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      H2ClientRig rig;
      rig.greet();
      Recorder* r = rig.open();
      r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()),
                   c.whole_request ? End::yes : End::no);
      rig.play({});
      rig.play(c.frames);
      BOOST_TEST(r->gone);
      BOOST_TEST(log_word(r->fault) == c.word);
      BOOST_TEST(!rig.owner.gone);
      BOOST_TEST(rig.owner.session()->active() == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_lost_connection_ends_every_stream) {
  for (const bool reset : {false, true}) {
    H2ClientRig rig;
    rig.greet();
    Recorder* fresh = rig.get();
    Recorder* begun = rig.get();
    rig.play(h2::open_headers(3, kOk));
    if (reset)
      rig.peer->reset();
    else
      rig.peer->finish();
    run_quiet(rig.worker);
    BOOST_TEST(log_word(fresh->fault) == (reset ? "origin-reset" : "origin-closed"));
    BOOST_TEST(log_word(begun->fault) == "origin-truncated");
    BOOST_TEST(rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(an_extended_connect_waits_for_the_settings) {
  for (const bool allowed : {true, false}) {
    H2ClientRig rig;
    rig.start();
    Recorder* r = rig.open();
    Head head = Head::request(Method::connect, "http", "a.test", "/chat");
    head.protocol = "websocket";
    head.fields.add("sec-websocket-version", "13");
    head.fields.add("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    r->send_head(head, End::no);
    run_quiet(rig.worker);
    rig.collect();
    BOOST_TEST(rig.find(h2::headers) == nullptr);
    rig.play(h2::frame(h2::settings, 0, 0, allowed ? h2::setting(kConnectProtocol, 1) : ""));
    if (!allowed) {
      BOOST_TEST(log_word(r->fault) == "origin-no-extended-connect");
      BOOST_TEST(info(r->fault).http_status == 501);
      BOOST_TEST(rig.find(h2::headers) == nullptr);
      BOOST_TEST(rig.owner.session()->active() == 0u);
      continue;
    }
    const h2::Frame* f = rig.find(h2::headers);
    BOOST_REQUIRE(f != nullptr);
    BOOST_TEST(f->field(":method") == "CONNECT");
    BOOST_TEST(f->field(":protocol") == "websocket");
    BOOST_TEST(f->field("sec-websocket-version") == "13");
    BOOST_TEST(f->field("sec-websocket-key") == "");
    BOOST_TEST((f->flags & h2::end_stream) == 0);
    rig.play(h2::open_headers(1, kOk) + h2::frame(h2::data, 0, 1, "frame"));
    BOOST_TEST(r->body == "frame");
  }
}

BOOST_AUTO_TEST_CASE(a_response_without_a_body_ends_with_its_head) {
  H2ClientRig rig;
  rig.greet();
  Recorder* head = rig.get("/", Method::head);
  rig.play(h2::open_headers(1, {{":status", "200"}, {"content-length", "5"}}));
  BOOST_TEST(head->ended);
  BOOST_TEST(head->head->fields.get(HeaderId::content_length) == "5");
  BOOST_TEST(!head->gone);  // its END_STREAM is still to come
  rig.play(h2::frame(h2::data, h2::end_stream, 1));
  BOOST_TEST(log_word(head->fault) == "ok");
}

BOOST_AUTO_TEST_CASE(an_origin_that_floods_is_left) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.get();
  std::string pings;
  for (int i = 0; i < 500; ++i) pings += h2::frame(h2::ping, 0, 0, "12345678");
  rig.play(pings);
  BOOST_TEST(rig.error(0) == 11);
  BOOST_TEST(log_word(r->fault) == "origin-stream-reset");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(a_request_that_waits_for_room_can_be_cancelled) {
  H2ClientRig rig;
  rig.greet();
  Recorder* a = rig.get("/a");
  Recorder* b = rig.open();  // before the origin says that it takes one from now on
  rig.play(h2::frame(h2::settings, 0, 0, h2::setting(kMaxStreams, 1)));
  b->send_head(Head::request(Method::get, "http", "a.test", "/b"), End::yes);
  rig.play({});
  BOOST_TEST(rig.count(h2::headers) == 1u);
  b->reset(Fault::cancelled);
  rig.play(h2::whole_headers(1, kOk));
  BOOST_TEST(log_word(a->fault) == "ok");
  BOOST_TEST(b->gone);
  BOOST_TEST(rig.count(h2::headers) == 1u);
  BOOST_TEST(rig.owner.session()->active() == 0u);
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
}

BOOST_AUTO_TEST_CASE(a_draining_session_goes_when_it_is_empty) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.get();
  rig.owner.session()->drain();
  BOOST_TEST(rig.owner.session()->capacity() == 0u);
  run_quiet(rig.worker);
  BOOST_TEST(!rig.owner.gone);
  rig.play(h2::whole_headers(1, kOk));
  BOOST_TEST(log_word(r->fault) == "ok");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(rig.error(0) == 0);
}

BOOST_AUTO_TEST_CASE(closing_sends_goaway) {
  H2ClientRig rig;
  rig.greet();
  Recorder* r = rig.get();
  rig.owner.session()->close(Fault::shutdown);
  run_quiet(rig.worker);
  rig.collect();
  BOOST_TEST(log_word(r->fault) == "shutdown");
  BOOST_TEST(rig.error(0) == 2);
}

BOOST_AUTO_TEST_CASE(a_failing_transport_ends_a_client_once_at_any_call) {
  for (unsigned nth = 1; nth < 12; ++nth) {
    for (const bool read : {true, false}) {
      H2ClientRig rig;
      rig.start();
      if (read)
        rig.transport->fail_read_at(nth);
      else
        rig.transport->fail_write_at(nth);
      Recorder* r = rig.get();
      rig.play(h2::frame(h2::settings, 0, 0) + h2::frame(h2::settings, h2::ack, 0));
      rig.play(h2::open_headers(1, kOk));
      for (int i = 0; i < 8; ++i)
        rig.play(h2::frame(h2::data, 0, 1, "xx") + h2::frame(h2::ping, 0, 0, "12345678"));
      rig.play(h2::frame(h2::data, h2::end_stream, 1));
      if (r != nullptr) BOOST_TEST(r->gone);
      if (rig.owner.session() != nullptr) rig.owner.session()->close(Fault::none);
      run_quiet(rig.worker);
      BOOST_TEST(rig.owner.gone);
    }
  }
}

}  // namespace
}  // namespace twp::test
