// The client role over memory transports: requests out, responses in.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "h1/translate.h"
#include "support/h1_rig.h"

namespace bdata = boost::unit_test::data;

namespace twp::test {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

BOOST_AUTO_TEST_SUITE(client)

struct Input {
  const char* name;
  std::string octets;
  Fault fault = Fault::none;
  bool stays = true;  // the connection can be used again
  Method method = Method::get;
  enum class End { open, fin, reset } end = End::open;
  std::string body;
};
std::ostream& operator<<(std::ostream& o, const Input& i) { return o << i.name; }

const std::string kOk = "HTTP/1.1 200 OK\r\n";
using E = Input::End;

const Input kInputs[] = {
    {"length", kOk + "Content-Length: 5\r\n\r\nhello", Fault::none, true, Method::get, E::open, "hello"},
    {"length 0", kOk + "Content-Length: 0\r\n\r\n"},
    {"equal lengths", kOk + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", Fault::none, true, Method::get, E::open, "ok"},
    {"chunked", kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", Fault::none, true, Method::get, E::open,
     "hello!"},
    {"trailers", kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\nContent-Length: 4\r\n\r\n", Fault::none, true,
     Method::get, E::open, "hello"},
    {"until close", kOk + "\r\nhello", Fault::none, false, Method::get, E::fin, "hello"},
    {"until close, 1.0", "HTTP/1.0 200 OK\r\n\r\nhello", Fault::none, false, Method::get, E::fin, "hello"},
    {"length and close", kOk + "Content-Length: 5\r\nConnection: close\r\n\r\nhello", Fault::none, false, Method::get, E::open, "hello"},
    {"1.0 without keep-alive", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", Fault::none, false, Method::get, E::open, "hello"},
    {"1.0 with keep-alive", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", Fault::none, true,
     Method::get, E::open, "hello"},
    {"A15 interims", "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + kOk + "Content-Length: 2\r\n\r\nok",
     Fault::none, true, Method::get, E::open, "ok"},
    {"A16 HEAD chunked", kOk + "Transfer-Encoding: chunked\r\n\r\n", Fault::none, true, Method::head},
    {"A16 HEAD with length", kOk + "Content-Length: 10\r\n\r\n", Fault::none, true, Method::head},
    {"A16 304 with length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"},
    {"204", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"A17 length and chunked", kOk + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Fault::none, false,
     Method::get, E::open, "hello"},
    {"A17 two lengths", kOk + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", Fault::origin_bad_framing, false},
    {"more than the response", kOk + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Fault::none, false,
     Method::get, E::open, "ok"},
    {"bad chunk", kOk + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n", Fault::origin_bad_framing, false, Method::get, E::open, "ok"},
    {"bad trailer", kOk + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX 1\r\n\r\n", Fault::origin_bad_framing, false, Method::get,
     E::open, "ok"},
    {"bad head", "HTTP/1.1 20x OK\r\n\r\n", Fault::origin_bad_head, false},
    {"not HTTP", "SSH-2.0-OpenSSH\r\n\r\n", Fault::origin_bad_head, false},
    {"101 that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
     Fault::origin_bad_head, false},
    {"closed at once", "", Fault::origin_closed, false, Method::get, E::fin},
    {"reset at once", "", Fault::origin_reset, false, Method::get, E::reset},
    {"closed in the head", kOk + "Content-", Fault::origin_truncated, false, Method::get, E::fin},
    {"reset in the head", kOk + "Content-", Fault::origin_truncated, false, Method::get, E::reset},
    {"closed after an interim", "HTTP/1.1 103 Early Hints\r\n\r\n", Fault::origin_truncated, false, Method::get, E::fin},
    {"reset after an interim", "HTTP/1.1 103 Early Hints\r\n\r\n", Fault::origin_truncated, false, Method::get, E::reset},
    {"closed in the body", kOk + "Content-Length: 10\r\n\r\nhello", Fault::origin_truncated, false, Method::get, E::fin, "hello"},
    {"reset in the body", kOk + "Content-Length: 10\r\n\r\nhello", Fault::origin_truncated, false, Method::get, E::reset, "hello"},
    {"closed in chunks", kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Fault::origin_truncated, false, Method::get, E::fin,
     "hello"},
    {"closed in trailers", kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: 1\r\n", Fault::origin_truncated, false,
     Method::get, E::fin, "hello"},
    {"reset until close", kOk + "\r\nhello", Fault::origin_truncated, false, Method::get, E::reset, "hello"},
    {"reset behind a whole response", kOk + "Content-Length: 5\r\n\r\nhello", Fault::none, false, Method::get, E::reset, "hello"},
    {"closed behind a whole response", kOk + "Content-Length: 5\r\n\r\nhello", Fault::none, false, Method::get, E::fin, "hello"},
};

void end(ClientRig& rig, E how) {
  if (how == E::fin) rig.peer->finish();
  if (how == E::reset) rig.peer->reset();
}

BOOST_DATA_TEST_CASE(responses, bdata::make(kInputs), input) {
  const std::size_t blocks = BlockPool::local().live_blocks();
  std::string at_once;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    ClientRig rig;
    rig.start(seed == 0 ? whole() : seed == 1 ? every_octet() : random_pieces(seed));
    Recorder* r = rig.get("/", input.method);
    rig.peer->send(input.octets);
    end(rig, input.end);
    run_quiet(rig.worker);
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == log_word(input.fault));
    BOOST_TEST(r->body == input.body);
    BOOST_TEST(r->ended == (input.fault == Fault::none));
    if (r->head) BOOST_TEST(!r->head->fields.has(HeaderId::transfer_encoding));
    BOOST_TEST(rig.owner.gone == !input.stays);
    if (seed == 0) at_once = r->transcript();
    BOOST_TEST(r->transcript() == at_once);
    if (!input.stays) continue;
    // The next exchange on the same connection is in step.
    BOOST_TEST(rig.owner.capacity_calls == 1u);
    Recorder* next = rig.get("/next");
    BOOST_REQUIRE(next != nullptr);
    rig.play(kOk + "Content-Length: 4\r\n\r\nnext");
    BOOST_TEST(next->body == "next");
    BOOST_TEST(log_word(next->fault) == "ok");
    BOOST_TEST(contains(rig.peer->got(), "GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n"));
  }
  BOOST_TEST(BlockPool::local().live_blocks() <= blocks + 2);
}

BOOST_AUTO_TEST_CASE(requests_by_framing) {
  struct Case {
    std::function<void(Recorder&)> send;
    std::string want;
  };
  const auto head = [](Method m, BodySize b, End e) {
    return [=](Recorder& r) { r.send_head(Head::request(m, "http", "a.test", "/", b), e); };
  };
  const Case cases[] = {
      {head(Method::get, BodySize::none(), End::yes), "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"},
      {head(Method::post, BodySize::none(), End::yes), "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"},
      {head(Method::delete_, BodySize::none(), End::yes), "DELETE / HTTP/1.1\r\nHost: a.test\r\n\r\n"},
      {head(Method::put, BodySize::unknown(), End::yes), "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"},
      {[](Recorder& r) {
         r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(5)), End::no);
         r.send_body("hello", End::yes);
       },
       "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"},
      {[](Recorder& r) {
         r.send_head(Head::request(Method::get, "http", "a.test", "/", BodySize::unknown()), End::no);
         r.send_body("hello", End::no);
         HeaderBlock t;
         t.add("X-T", "1");
         r.send_trailers(t);
       },
       "GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"},
      {head(Method::options, BodySize::none(), End::yes), "OPTIONS / HTTP/1.1\r\nHost: a.test\r\n\r\n"},
  };
  for (const Case& c : cases) {
    ClientRig rig;
    rig.start();
    Recorder* r = rig.open();
    c.send(*r);
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->got() == c.want);
    rig.play(kOk + "Content-Length: 0\r\n\r\n");
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == "ok");
    BOOST_TEST(!rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(a_request_that_is_not_as_long_as_announced_resets) {
  for (const int how : {0, 1, 2}) {
    ClientRig rig;
    rig.start();
    Recorder* r = rig.open();
    r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(5)), how == 0 ? End::yes : End::no);
    run_quiet(rig.worker);
    if (how == 1) r->send_body("hell", End::yes);
    if (how == 2) r->send_body("hello!", End::no);
    run_quiet(rig.worker);
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == "internal");
    BOOST_TEST(rig.peer->was_reset() == (how != 0));  // of 0 nothing has left
  }
}

BOOST_AUTO_TEST_CASE(one_request_at_a_time) {
  ClientRig rig;
  rig.start();
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
  Recorder* r = rig.get();
  BOOST_TEST(rig.owner.session()->capacity() == 0u);
  BOOST_TEST(rig.owner.session()->active() == 1u);
  BOOST_TEST(rig.open() == nullptr);
  rig.play(kOk + "Content-Length: 0\r\n\r\n");
  BOOST_TEST(r->gone);
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
}

BOOST_AUTO_TEST_CASE(octets_on_an_idle_connection_end_it) {
  ClientRig rig;
  rig.start();
  rig.get();
  rig.play(kOk + "Content-Length: 0\r\n\r\n");
  rig.play("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(log_word(rig.owner.fault) == "protocol");
}

BOOST_AUTO_TEST_CASE(an_idle_connection_that_ends_is_gone) {
  for (const E how : {E::fin, E::reset}) {
    ClientRig rig;
    rig.start();
    end(rig, how);
    run_quiet(rig.worker);
    BOOST_TEST(rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(a69_a_final_response_beside_the_upload) {
  // The origin answers 413 and goes, with or without a reset: the response is whole, the upload was in vain.
  for (const E how : {E::fin, E::reset}) {
    ClientRig rig;
    rig.start();
    rig.transport->set_write_space(1000);
    rig.peer->pause();
    Recorder* r = rig.open();
    r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(100'000)), End::no);
    r->send_body(std::string(50'000, 'x'), End::no);
    run_quiet(rig.worker);
    rig.peer->send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
    end(rig, how);
    run_quiet(rig.worker);
    BOOST_TEST(r->head->status == 413);
    BOOST_TEST(r->body == "big");
    BOOST_TEST(r->ended);
    BOOST_TEST(r->gone);
    BOOST_TEST(log_word(r->fault) == "early-response");
    BOOST_TEST(rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(an_upload_goes_on_after_an_early_response) {
  ClientRig rig;
  rig.start();
  Recorder* r = rig.open();
  r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(10)), End::no);
  r->send_body("hello", End::no);
  run_quiet(rig.worker);
  rig.play(kOk + "Content-Length: 2\r\n\r\nok");
  BOOST_TEST(r->ended);
  BOOST_TEST(!r->gone);
  r->send_body("world", End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(r->gone);
  BOOST_TEST(log_word(r->fault) == "ok");
  BOOST_TEST(rig.peer->got().ends_with("helloworld"));
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
}

BOOST_AUTO_TEST_CASE(an_answer_is_read_though_writing_has_failed) {
  ClientRig rig;
  rig.start();
  Recorder* r = rig.open();
  rig.transport->fail_write_at(0);
  r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(10)), End::no);
  run_quiet(rig.worker);
  // The origin answers and goes; our next write fails before the answer has been read.
  rig.peer->send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
  rig.peer->reset();
  r->send_body("hello", End::no);
  run_quiet(rig.worker);
  BOOST_TEST(r->head.has_value());
  BOOST_TEST(r->body == "big");
  BOOST_TEST(log_word(r->fault) == "early-response");
}

BOOST_AUTO_TEST_CASE(octets_behind_a_response_are_told_to_the_owner) {
  // The response itself is right; that its connection is not in step is for the owner to know.
  for (const std::string_view more : {"!", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}) {
    for (const bool later : {false, true}) {
      ClientRig rig;
      rig.start();
      Recorder* r = rig.get();
      rig.peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + std::string(later ? "" : more));
      run_quiet(rig.worker);
      BOOST_TEST(log_word(r->fault) == "ok");
      BOOST_TEST(r->body == "ok");
      if (later) rig.play(std::string(more));
      BOOST_TEST(rig.owner.gone);
      BOOST_TEST(log_word(rig.owner.fault) == "protocol");
    }
  }
}

BOOST_AUTO_TEST_CASE(too_many_interims) {
  HttpLimits limits;
  limits.max_interim = 3;
  ClientRig rig(limits);
  rig.start();
  Recorder* r = rig.get();
  for (int i = 0; i < 4; ++i) rig.play("HTTP/1.1 102 Processing\r\n\r\n");
  BOOST_TEST(r->interims.size() == 3u);
  BOOST_TEST(log_word(r->fault) == "origin-bad-head");
}

BOOST_AUTO_TEST_CASE(limits_of_responses) {
  HttpLimits limits;
  limits.max_response_head = 200;
  limits.max_fields = 3;
  limits.max_trailer = 20;
  limits.max_body = 2;  // of requests: responses may be longer
  const auto fault = [&](const std::string& octets) {
    ClientRig rig(limits);
    rig.start(pieces_of(9));
    Recorder* r = rig.get();
    rig.play(octets);
    BOOST_TEST(r->gone);
    BOOST_TEST(rig.owner.gone == (r->fault != Fault::none));
    return std::string(log_word(r->fault));
  };
  BOOST_TEST(fault(kOk + "X: " + std::string(300, 'x') + "\r\n\r\n") == "origin-head-too-large");
  BOOST_TEST(fault(kOk + "X: " + std::string(300, 'x')) == "origin-head-too-large");
  BOOST_TEST(fault(kOk + "A:\r\nB:\r\nC:\r\nD:\r\n\r\n") == "origin-head-too-large");
  BOOST_TEST(fault(kOk + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(30, 'x') + "\r\n\r\n") == "origin-head-too-large");
  BOOST_TEST(fault(kOk + "Content-Length: 5\r\n\r\nhello") == "ok");
}

BOOST_AUTO_TEST_CASE(credit_bounds_what_is_delivered) {
  for (const bool until_close : {false, true}) {
    HttpLimits limits;
    limits.stream_window = 50'000;
    ClientRig rig(limits);
    rig.start();
    Recorder* r = rig.get();
    r->consume = false;
    rig.peer->send(kOk + (until_close ? "" : "Content-Length: 1000000\r\n") + "\r\n" + std::string(1'000'000, 'x'));
    if (until_close) rig.peer->finish();
    run_quiet(rig.worker);
    BOOST_TEST(r->unconsumed >= 50'000u);
    BOOST_TEST(r->unconsumed <= 50'000u + kBlockSize);
    while (!r->ended) {
      BOOST_REQUIRE(!r->gone);
      r->give_credit(r->unconsumed);
      run_quiet(rig.worker);
      BOOST_REQUIRE(r->unconsumed <= 50'000u + kBlockSize);
    }
    BOOST_TEST(r->body.size() == 1'000'000u);
    BOOST_TEST(log_word(r->fault) == "ok");
  }
}

const std::string kSwitched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";

Recorder* handshake(ClientRig& rig, std::string_view key = {}) {
  Recorder* r = rig.open();
  Head h = Head::request(Method::connect, "http", "a.test", "/ws");
  h.protocol = "websocket";
  if (!key.empty()) h.fields.add(HeaderId::sec_websocket_key, key);
  r->send_head(h, End::no);
  run_quiet(rig.worker);
  return r;
}

/// The right answer to the key in `request`.
std::string accept_for(std::string_view request) {
  const auto at = request.find("Sec-WebSocket-Key: ") + 19;
  return h1::websocket_accept(request.substr(at, 24));
}

BOOST_AUTO_TEST_CASE(other_protocols_than_websocket_are_not_sent_as_one) {
  ClientRig rig;
  rig.start();
  Recorder* r = rig.open();
  Head h = Head::request(Method::connect, "http", "a.test", "/x");
  h.protocol = "connect-udp";
  r->send_head(h, End::no);
  run_quiet(rig.worker);
  BOOST_TEST(r->gone);
  BOOST_TEST(log_word(r->fault) == log_word(Fault::origin_no_tunnel));
  BOOST_TEST(rig.peer->take() == "");
}

BOOST_AUTO_TEST_CASE(a_websocket_answer_must_prove_that_it_knows_our_key) {
  for (const std::string line : {"", "Sec-WebSocket-Accept: x\r\n", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"}) {
    ClientRig rig;
    rig.start();
    Recorder* r = handshake(rig);
    rig.play(kSwitched + line + "\r\nhi");
    BOOST_TEST(!r->head.has_value());
    BOOST_TEST(r->body == "");
    BOOST_TEST(log_word(r->fault) == log_word(Fault::origin_bad_accept));
    BOOST_TEST(rig.owner.gone);
  }
  // The client's own key, passed on: an answer to another key, or none, is refused as well.
  for (const bool right : {false, true}) {
    ClientRig rig;
    rig.start();
    Recorder* r = handshake(rig, "dGhlIHNhbXBsZSBub25jZQ==");
    // RFC 6455 §1.3 has this key with this answer.
    rig.play(kSwitched + "Sec-WebSocket-Accept: " + (right ? "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" : "x") + "\r\n\r\nhi");
    BOOST_TEST(r->head.has_value() == right);
    BOOST_TEST(r->body == (right ? "hi" : ""));
  }
}

BOOST_AUTO_TEST_CASE(websocket) {
  {
    ClientRig rig;
    rig.start();
    Recorder* r = handshake(rig);
    BOOST_TEST(rig.peer->got().starts_with("GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "));
    BOOST_TEST(contains(rig.peer->got(), "\r\nSec-WebSocket-Version: 13\r\n\r\n"));
    rig.play(kSwitched + "Sec-WebSocket-Accept: " + accept_for(rig.peer->take()) + "\r\n\r\nhi");
    BOOST_TEST(r->head->status == 200);
    BOOST_TEST(r->head->is_connect());
    BOOST_TEST(r->body == "hi");
    r->send_body("up", End::no);
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->got() == "up");
    r->send_body("", End::yes);
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->eof());
    BOOST_TEST(!r->gone);
    rig.play("still");
    rig.peer->finish();
    run_quiet(rig.worker);
    BOOST_TEST(r->body == "histill");
    BOOST_TEST(r->ended);
    BOOST_TEST(log_word(r->fault) == "ok");
    BOOST_TEST(rig.owner.gone);
  }
  {
    ClientRig rig;  // refused: an ordinary response, and the connection can be used again
    rig.start();
    Recorder* r = handshake(rig);
    rig.play("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    BOOST_TEST(r->head->status == 403);
    BOOST_TEST(r->body == "no");
    BOOST_TEST(log_word(r->fault) == "ok");
    BOOST_TEST(rig.owner.session()->capacity() == 1u);
  }
  {
    ClientRig rig;  // 200 is a refusal too
    rig.start();
    Recorder* r = handshake(rig);
    rig.play(kOk + "Content-Length: 2\r\n\r\nno");
    BOOST_TEST(!r->head->is_connect());
    BOOST_TEST(r->body == "no");
    BOOST_TEST(log_word(r->fault) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(connect) {
  for (const bool accepted : {true, false}) {
    ClientRig rig;
    rig.start();
    Recorder* r = rig.open();
    r->send_head(Head::request(Method::connect, "http", "b.test:443", ""), End::no);
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->take() == "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n");
    rig.play(accepted ? "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello" : "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\nhello");
    BOOST_TEST(r->body == "hello");
    BOOST_TEST(r->gone == !accepted);
    if (accepted) BOOST_TEST(!r->head->fields.has(HeaderId::content_length));
  }
}

BOOST_AUTO_TEST_CASE(a_reset_stream_ends_the_connection) {
  ClientRig rig;
  rig.start();
  Recorder* r = rig.get();
  rig.play(kOk + "Content-Length: 10\r\n\r\nhello");
  r->reset(Fault::cancelled);
  BOOST_TEST(!r->gone);  // not from inside the call
  run_quiet(rig.worker);
  BOOST_TEST(log_word(r->fault) == "cancelled");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(rig.peer->was_reset());
}

BOOST_AUTO_TEST_CASE(a_request_that_is_reset_before_it_leaves_leaves_no_trace) {
  ClientRig rig;
  rig.start();
  rig.get("/first");
  rig.play(kOk + "Content-Length: 0\r\n\r\n");
  rig.peer->take();
  Recorder* r = rig.open();
  BOOST_REQUIRE(r != nullptr);
  r->send_head(Head::request(Method::post, "http", "a.test", "/reset", BodySize::exactly(9)), End::no);
  r->send_body("half", End::no);
  r->reset(Fault::cancelled);
  run_quiet(rig.worker);
  BOOST_TEST(log_word(r->fault) == "cancelled");
  BOOST_TEST(rig.peer->take() == "");
  BOOST_REQUIRE(rig.owner.session() != nullptr);
  BOOST_TEST(rig.owner.session()->capacity() == 1u);
  Recorder* next = rig.get("/next");
  BOOST_REQUIRE(next != nullptr);
  BOOST_TEST(rig.peer->take().starts_with("GET /next "));
  rig.play(kOk + "Content-Length: 2\r\n\r\nok");
  BOOST_TEST(next->body == "ok");
}

BOOST_AUTO_TEST_CASE(drain) {
  ClientRig idle;
  idle.start();
  idle.owner.session()->drain();
  BOOST_TEST(idle.owner.gone);
  ClientRig rig;
  rig.start();
  Recorder* r = rig.get();
  rig.owner.session()->drain();
  BOOST_TEST(!rig.owner.gone);
  rig.play(kOk + "Content-Length: 2\r\n\r\nok");
  BOOST_TEST(r->body == "ok");
  BOOST_TEST(log_word(r->fault) == "ok");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(the_next_request_may_start_when_the_last_is_gone) {
  ClientRig rig;
  rig.start();
  unsigned left = 5;
  rig.owner.on_capacity_hook = [&] {
    if (left-- == 0) return;
    Recorder* r = rig.open();
    BOOST_REQUIRE(r != nullptr);
    r->send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
  };
  rig.get();
  for (int i = 0; i < 6; ++i) rig.play(kOk + "Content-Length: 1\r\n\r\nx");
  BOOST_TEST(rig.streams.size() == 6u);
  for (const auto& s : rig.streams) BOOST_TEST(s->body == "x");
}

BOOST_AUTO_TEST_CASE(the_nth_call_of_the_transport_fails) {
  const std::size_t blocks = BlockPool::local().live_blocks();
  for (const bool reading : {true, false}) {
    unsigned n = 1;
    for (bool failed = true; failed; ++n) {
      BOOST_REQUIRE(n < 500u);
      ClientRig rig;
      rig.start(pieces_of(20));
      rig.transport->set_write_space(40);
      if (reading) rig.transport->fail_read_at(n);
      else rig.transport->fail_write_at(n);
      Recorder* r = rig.open();
      r->send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::unknown()), End::no);
      r->send_body("hello", End::no);
      r->send_body(std::string(200, 'x'), End::yes);
      run_quiet(rig.worker);
      if (!r->gone)
        rig.play("HTTP/1.1 103 Hints\r\n\r\n" + kOk + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: 1\r\n\r\n");
      BOOST_TEST(r->gone);
      failed = rig.owner.gone;
      if (!failed) BOOST_TEST(log_word(r->fault) == "ok");
    }
    BOOST_TEST(n > 3u);
  }
  BOOST_TEST(BlockPool::local().live_blocks() <= blocks + 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace twp::test
