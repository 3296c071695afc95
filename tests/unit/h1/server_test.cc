// The server role over memory transports: requests in, responses out, and everything that may go wrong.
#include <sys/mman.h>
#include <unistd.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "support/h1_rig.h"

namespace bdata = boost::unit_test::data;

namespace twp::test {
namespace {

using std::chrono::milliseconds;

const std::string kGet = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const std::string kPost = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const std::string kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const std::string kConnect = "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t i = 0; (i = text.find(part, i)) != std::string_view::npos; i += part.size()) ++n;
  return n;
}

/// Answers every request with its own path and body once it is complete.
void echo(Recorder& r) {
  r.on_end = [](Recorder& s) { s.respond(200, std::string(s.head->path) + "|" + s.body); };
}

BOOST_AUTO_TEST_SUITE(server)

struct Input {
  const char* name;
  std::string octets;
  bool finish = false;  // half-close behind it
};
std::ostream& operator<<(std::ostream& o, const Input& i) { return o << i.name; }

const Input kInputs[] = {
    {"get", kGet},
    {"two gets", kGet + kGet},
    {"three gets and half close", kGet + "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n" + kGet, true},
    {"empty lines between", kGet + "\r\n\r\n" + kGet},
    {"1.0", "GET / HTTP/1.0\r\n\r\n"},
    {"1.0 keep-alive twice", "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"},
    {"close and more", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + kGet},
    {"length", kPost + "Content-Length: 5\r\n\r\nhello" + kGet},
    {"length 0", kPost + "Content-Length: 0\r\n\r\n" + kGet},
    {"chunked", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n" + kGet},
    {"chunked and trailers",
     kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\nHost: b\r\nY: 2\r\n\r\n" + kGet},
    {"only forbidden trailers", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: b\r\n\r\n" + kGet},
    {"empty chunked", kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kGet},
    {"expect", kPost + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello" + kGet},
    {"bad head behind good", kGet + "GET /\r\n\r\n"},
    {"bad chunk", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n" + kGet},
    {"bad trailer", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX 1\r\n\r\n" + kGet},
    {"cut body", kPost + "Content-Length: 10\r\n\r\nhello", true},
    {"cut chunked", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true},
    {"cut head", "GET / HTTP/1.1\r\nHost:", true},
    {"nothing", "", true},
    {"connect refused", kConnect + "early"},
    {"bad framing", kPost + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kGet},
    {"version 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
};

std::string play(const Input& input, Chop chop) {
  ServerRig rig;
  rig.acceptor.setup = [](Recorder& r) {
    echo(r);
    r.on_request = [](Recorder& s) {
      if (s.head->is_connect()) s.respond(403, "no");
    };
  };
  rig.start(std::move(chop));
  rig.peer->send(input.octets);
  if (input.finish) rig.peer->finish();
  run_quiet(rig.worker);
  std::string got = rig.peer->got();
  // The date of our own answers may differ, and whether the half close was seen before the last answer.
  for (std::size_t i = 0; (i = got.find("date: ", i)) != std::string::npos;) got.erase(i, got.find('\n', i) - i);
  for (std::size_t i = 0; input.finish && (i = got.find("Connection: close\r\n")) != std::string::npos;) got.erase(i, 19);
  return rig.acceptor.transcript() + "<<" + got + ">>" + (rig.peer->eof() ? "eof" : "") + (rig.peer->was_reset() ? "reset" : "");
}

BOOST_DATA_TEST_CASE(pieces_do_not_matter, bdata::make(kInputs), input) {
  const std::size_t blocks = BlockPool::local().live_blocks();
  const std::string at_once = play(input, whole());
  BOOST_TEST_MESSAGE(at_once);
  BOOST_TEST(play(input, every_octet()) == at_once);
  BOOST_TEST(play(input, pieces_of(2)) == at_once);
  BOOST_TEST(play(input, pieces_of(7)) == at_once);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) BOOST_TEST(play(input, random_pieces(seed)) == at_once);
  BOOST_TEST(BlockPool::local().live_blocks() <= blocks + 2);  // the inbox and scratch blocks stay
}

BOOST_AUTO_TEST_CASE(octets_of_a_sniffer_come_first) {
  ServerRig rig;
  rig.acceptor.setup = echo;
  rig.start(whole(), "GET /sniffed HT");
  rig.play("TP/1.1\r\nHost: a\r\n\r\n");
  BOOST_TEST(contains(rig.peer->got(), "/sniffed|"));
}

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
  ServerRig rig;
  rig.start();
  rig.play("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
  BOOST_TEST(rig.acceptor.streams.size() == 1u);  // one at a time
  for (std::size_t i = 0; i < 3; ++i) {
    rig.stream(i).respond(200, std::to_string(i));
    run_quiet(rig.worker);
  }
  BOOST_REQUIRE(rig.acceptor.streams.size() == 3u);
  BOOST_TEST(rig.peer->got() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n0HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
                                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(what_a_client_sends_ahead_is_bounded) {
  HttpLimits limits;
  limits.max_head = 1000;
  ServerRig rig(limits);
  rig.start();
  rig.transport->set_chop(pieces_of(100));
  rig.play(kGet);
  for (int i = 0; i < 100; ++i) rig.peer->send(std::string(1000, 'x'));
  run_quiet(rig.worker);
  BOOST_TEST(rig.transport->unread() >= 100'000u - 1200u);
}

BOOST_AUTO_TEST_CASE(requests_sent_before_a_half_close_are_answered) {
  ServerRig rig;
  rig.start();
  rig.peer->send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  rig.peer->finish();
  run_quiet(rig.worker);
  rig.stream(0).respond(200, "one");
  run_quiet(rig.worker);
  BOOST_REQUIRE(rig.acceptor.streams.size() == 2u);
  rig.stream(1).respond(200, "two");
  run_quiet(rig.worker);
  BOOST_TEST(contains(rig.peer->got(), "one"));
  BOOST_TEST(contains(rig.peer->got(), "Connection: close\r\n\r\ntwo"));
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(responses_by_framing) {
  struct Case {
    const char* request;
    std::function<void(Recorder&)> answer;
    const char* want;
    bool stays;
  };
  const auto unknown = [](Recorder& r) {
    r.send_head(Head::response(200, BodySize::unknown()), End::no);
    r.send_body("hello", End::no);
    r.send_body("!", End::yes);
  };
  const auto trailers = [](Recorder& r) {
    r.send_head(Head::response(200, BodySize::unknown()), End::no);
    r.send_body("hello", End::no);
    HeaderBlock t;
    t.add("X-T", "1");
    r.send_trailers(t);
  };
  const auto status = [](int s) {
    return [s](Recorder& r) {
      r.send_head(Head::response(static_cast<std::uint16_t>(s)), End::yes);
    };
  };
  const auto announced = [](int s) {
    return [s](Recorder& r) {
      Head h = Head::response(static_cast<std::uint16_t>(s), BodySize::none());
      h.fields.add("Content-Length", "10");
      r.send_head(h, End::yes);
    };
  };
  const Case cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", unknown,
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", unknown, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello!", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", unknown, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello!", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", status(200),
       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", status(200), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", trailers,
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", trailers, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", false},
      {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", unknown, "HTTP/1.1 200 OK\r\n\r\n", true},
      {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", announced(200), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", announced(304), "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", status(204), "HTTP/1.1 204 No Content\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", status(404), "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status(200),
       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false},
  };
  for (const Case& c : cases) {
    ServerRig rig;
    rig.acceptor.setup = [&](Recorder& r) { r.on_end = c.answer; };
    rig.start();
    rig.play(c.request);
    BOOST_TEST(rig.peer->got() == c.want);
    BOOST_TEST(rig.owner.gone == !c.stays, c.want);
    BOOST_TEST(rig.peer->eof() == !c.stays);
    BOOST_TEST(log_word(rig.stream().fault) == "ok");
    BOOST_TEST(rig.stream().gone);
  }
}

BOOST_AUTO_TEST_CASE(interims_go_out_but_not_to_1_0) {
  for (const bool old : {false, true}) {
    ServerRig rig;
    rig.acceptor.setup = [](Recorder& r) {
      r.on_end = [](Recorder& s) {
        Head hints = Head::interim(103);
        hints.fields.add("Link", "</s>");
        s.send_head(hints, End::no);
        s.send_head(Head::interim(102), End::no);
        s.respond(200, "x");
      };
    };
    rig.start();
    rig.play(old ? "GET / HTTP/1.0\r\n\r\n" : kGet);
    BOOST_TEST(rig.peer->got().starts_with("HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 102 ") == !old);
    BOOST_TEST(contains(rig.peer->got(), "HTTP/1.1 200 OK\r\n"));
    if (old) BOOST_TEST(!contains(rig.peer->got(), " 103 "));
  }
}

BOOST_AUTO_TEST_CASE(expect_continue) {
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  BOOST_TEST(rig.stream().head->fields.get(HeaderId::expect) == "100-continue");
  rig.stream().send_head(Head::interim(100), End::no);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->take() == "HTTP/1.1 100 Continue\r\n\r\n");
  rig.play("hello");
  BOOST_TEST(rig.stream().body == "hello");
  rig.stream().respond(200, "");
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->got() == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(a14_a_refused_expectation_closes) {
  // The client may or may not send its nine octets: the connection cannot go on, and must not wait for them.
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  rig.stream().respond(401, "no");
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->got() == "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(rig.stream().gone);
  BOOST_TEST(log_word(rig.stream().fault) == "early-response");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(an_upload_that_did_not_wait_for_continue_goes_on) {
  HttpLimits limits;
  limits.body_rate_window = milliseconds(50);
  ServerRig rig(limits);
  rig.start();
  rig.play(kPost + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\nbegun");
  rig.stream().respond(200, "ok");
  run_quiet(rig.worker);
  BOOST_TEST(!rig.stream().gone);
  // But it is held to the minimum rate as any other.
  BOOST_TEST(run_until(rig.worker, [&] { return rig.stream().gone; }));
  BOOST_TEST(log_word(rig.stream().fault) == "too-slow");
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->eof(); }));
}

BOOST_AUTO_TEST_CASE(an_early_response_leaves_while_the_upload_goes_on) {
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Content-Length: 10\r\n\r\nhello");
  rig.stream().respond(200, "early");
  run_quiet(rig.worker);
  BOOST_TEST(contains(rig.peer->got(), "early"));
  BOOST_TEST(!rig.stream().gone);
  rig.play("world" + kGet);
  BOOST_TEST(rig.stream().body == "helloworld");
  BOOST_TEST(rig.stream().gone);
  BOOST_TEST(log_word(rig.stream().fault) == "ok");
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
}

BOOST_AUTO_TEST_CASE(an_upload_given_up_after_the_response_lets_it_be_read) {
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Content-Length: 1000000\r\n\r\nhello");
  rig.stream().respond(413, "too much");
  rig.stream().reset(Fault::early_response);
  for (int i = 0; i < 50; ++i) rig.play(std::string(10000, 'x'));
  BOOST_TEST(contains(rig.peer->got(), "too much"));
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(!rig.peer->was_reset());
  BOOST_TEST(rig.stream().gone);
}

BOOST_AUTO_TEST_CASE(a_response_cut_short_resets) {
  for (const bool chunked : {false, true}) {
    ServerRig rig;
    rig.start();
    rig.play(kGet);
    rig.stream().send_head(Head::response(200, chunked ? BodySize::unknown() : BodySize::exactly(10)), End::no);
    rig.stream().send_body("hello", End::no);
    run_quiet(rig.worker);
    rig.stream().reset(Fault::origin_truncated);
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->was_reset());
    BOOST_TEST(!contains(rig.peer->got(), "\r\n0\r\n"));
    BOOST_TEST(log_word(rig.stream().fault) == "origin-truncated");
    BOOST_TEST(rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(a_body_that_is_not_as_long_as_announced_resets) {
  const auto broken = [](std::function<void(Recorder&)> answer) {
    ServerRig rig;
    rig.acceptor.setup = [&](Recorder& r) { r.on_end = answer; };
    rig.start();
    rig.play(kGet);
    BOOST_TEST(rig.peer->was_reset());
    BOOST_TEST(log_word(rig.stream().fault) == "internal");
  };
  broken([](Recorder& r) {
    r.send_head(Head::response(200, BodySize::exactly(5)), End::no);
    r.send_body("hello!", End::yes);
  });
  broken([](Recorder& r) {
    r.send_head(Head::response(200, BodySize::exactly(5)), End::no);
    r.send_body("hell", End::yes);
  });
  broken([](Recorder& r) { r.send_head(Head::response(200, BodySize::exactly(5)), End::yes); });
  broken([](Recorder& r) { r.send_body("x", End::no); });
  broken([](Recorder& r) {
    r.send_head(Head::response(200, BodySize::exactly(5)), End::no);
    r.send_head(Head::response(200, BodySize::exactly(5)), End::no);
  });
}

BOOST_AUTO_TEST_CASE(credit_bounds_what_is_delivered) {
  for (const bool chunked : {false, true}) {
    HttpLimits limits;
    limits.stream_window = 100'000;
    ServerRig rig(limits);
    rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
    rig.start();
    const std::string body(1'000'000, 'b');
    std::string octets = kPost + "Content-Length: 1000000\r\n\r\n" + body;
    if (chunked) {
      octets = kPost + "Transfer-Encoding: chunked\r\n\r\n";
      for (int i = 0; i < 100; ++i) octets += "2710\r\n" + std::string(10000, 'b') + "\r\n";
      octets += "0\r\n\r\n";
    }
    rig.play(octets);
    Recorder& s = rig.stream();
    BOOST_TEST(s.unconsumed >= 100'000u);
    BOOST_TEST(s.unconsumed <= 100'000u + kBlockSize);
    BOOST_TEST(rig.transport->unread() > 800'000u);  // the rest waits in the kernel, not here
    s.give_credit(1);                               // less than what is over: nothing more comes
    run_quiet(rig.worker);
    while (!s.ended) {
      const std::size_t before = s.body.size();
      s.give_credit(s.unconsumed);
      run_quiet(rig.worker);
      BOOST_REQUIRE(s.body.size() > before);
      BOOST_REQUIRE(s.unconsumed <= 100'000u + kBlockSize);
    }
    BOOST_TEST(s.body == body);
  }
}

BOOST_AUTO_TEST_CASE(octets_count_as_sent_when_they_have_left) {
  ServerRig rig;
  rig.start();
  rig.transport->set_write_space(1000);
  rig.peer->pause();
  rig.play(kGet);
  Recorder& s = rig.stream();
  s.send_head(Head::response(200, BodySize::exactly(50'000)), End::no);
  for (int i = 0; i < 50; ++i) s.send_body(std::string(1000, 'x'), i == 49 ? End::yes : End::no);
  run_quiet(rig.worker);
  BOOST_TEST(s.sent <= 1000u);
  BOOST_TEST(!s.gone);
  rig.peer->resume();
  run_quiet(rig.worker);
  BOOST_TEST(s.sent == 50'000u);
  BOOST_TEST(s.gone);
}

BOOST_AUTO_TEST_CASE(every_octet_is_sent_in_any_space) {
  std::string body;
  for (int i = 0; i < 20'000; ++i) body.push_back(static_cast<char>('a' + i % 26));
  for (const std::size_t space : {1u, 3u, 17u, 1000u, 5000u}) {
    for (const bool chunked : {false, true}) {
      ServerRig rig;
      rig.start();
      rig.transport->set_write_space(space);
      rig.play(kGet);
      Recorder& s = rig.stream();
      s.send_head(Head::response(200, chunked ? BodySize::unknown() : BodySize::exactly(body.size())), End::no);
      for (std::size_t i = 0; i < body.size(); i += 1000) s.send_body(std::string_view(body).substr(i, 1000), End::no);
      s.send_body("", End::yes);
      run_quiet(rig.worker);
      std::string want = chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" : "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n";
      for (std::size_t i = 0; i < body.size(); i += 1000)
        want += chunked ? "3e8\r\n" + body.substr(i, 1000) + "\r\n" : body.substr(i, 1000);
      if (chunked) want += "0\r\n\r\n";
      BOOST_TEST((rig.peer->got() == want));
      BOOST_TEST(s.sent == body.size());
      BOOST_TEST(s.gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(websocket_accepted) {
  ServerRig rig;
  rig.start();
  rig.play(kUpgrade + "early");
  Recorder& s = rig.stream();
  BOOST_TEST(s.head->protocol == "websocket");
  BOOST_TEST(s.body == "");  // held
  Head yes = Head::response(200);
  yes.set_method(Method::connect);
  s.send_head(yes, End::no);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->take() == "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  BOOST_TEST(s.body == "early");
  rig.play("more");
  BOOST_TEST(s.body == "earlymore");
  s.send_body("down", End::no);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->take() == "down");
  // Either direction ends alone.
  rig.peer->finish();
  run_quiet(rig.worker);
  BOOST_TEST(s.ended);
  BOOST_TEST(!s.gone);
  s.send_body("last", End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->got() == "last");
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(s.gone);
  BOOST_TEST(log_word(s.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(websocket_refused) {
  for (const bool early : {false, true}) {
    ServerRig rig;
    rig.start();
    rig.play(kUpgrade + (early ? kGet : ""));
    rig.stream().respond(403, "no");
    run_quiet(rig.worker);
    // What came early was for the tunnel: never a request, and the connection ends. So it does without any: octets that
    // crossed the answer look the same.
    if (!early) rig.play(kGet);
    BOOST_TEST(rig.acceptor.streams.size() == 1u);
    BOOST_TEST(rig.stream().body == "");
    BOOST_TEST(contains(rig.peer->got(), "\r\nConnection: close\r\n"));
    BOOST_TEST(rig.owner.gone);
  }
}

BOOST_AUTO_TEST_CASE(a53_connect_holds_octets_until_the_answer) {
  for (const bool accepted : {false, true}) {
    ServerRig rig;
    rig.start();
    rig.play(kConnect + "\x16\x03\x01hello");
    Recorder& s = rig.stream();
    BOOST_TEST(s.body == "");
    if (accepted) s.send_head(Head::response(200), End::no);
    else s.respond(403, "no");
    run_quiet(rig.worker);
    BOOST_TEST(s.body == (accepted ? "\x16\x03\x01hello" : ""));
    BOOST_TEST(rig.peer->got().starts_with(accepted ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 403 Forbidden\r\n"));
    BOOST_TEST(rig.owner.gone == !accepted);
    BOOST_TEST(rig.acceptor.streams.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_half_close_behind_connect_is_held_too) {
  ServerRig rig;
  rig.start();
  rig.peer->send(kConnect + "all of it");
  rig.peer->finish();
  run_quiet(rig.worker);
  Recorder& s = rig.stream();
  BOOST_TEST(!s.gone);
  s.send_head(Head::response(200), End::no);
  run_quiet(rig.worker);
  BOOST_TEST(s.body == "all of it");
  BOOST_TEST(s.ended);
  s.send_body("answer", End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(contains(rig.peer->got(), "answer"));
  BOOST_TEST(rig.peer->eof());
}

BOOST_AUTO_TEST_CASE(a52_a_tunnel_takes_all_after_the_other_side_has_ended) {
  ServerRig rig;
  rig.start();
  rig.play(kConnect);
  Recorder& s = rig.stream();
  s.send_head(Head::response(200), End::no);
  s.send_body("", End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->eof());
  for (int i = 0; i < 64; ++i) rig.play(std::string(16384, 'x'));
  BOOST_TEST(s.body.size() == 1024u * 1024u);
  BOOST_TEST(!s.gone);
  rig.peer->finish();
  run_quiet(rig.worker);
  BOOST_TEST(s.gone);
  BOOST_TEST(log_word(s.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_away_is_told_once) {
  for (const bool resets : {false, true}) {
    for (const std::string& octets : {kPost + "Content-Length: 10\r\n\r\nhello", kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"}) {
      ServerRig rig;
      rig.start();
      rig.play(octets);
      if (resets) rig.peer->reset();
      else rig.peer->finish();
      run_quiet(rig.worker);
      BOOST_TEST(rig.stream().gone);
      BOOST_TEST(!rig.stream().ended);
      BOOST_TEST(log_word(rig.stream().fault) == (resets ? "client-reset" : "client-closed"));
      BOOST_TEST(rig.owner.gone);
    }
    ServerRig rig;  // while it waits for the answer
    rig.start();
    rig.play(kGet);
    if (resets) rig.peer->reset();
    else rig.peer->finish();
    run_quiet(rig.worker);
    BOOST_TEST(rig.stream().gone == resets);
    if (resets) continue;
    rig.stream().respond(200, "still");
    run_quiet(rig.worker);
    BOOST_TEST(contains(rig.peer->got(), "still"));
    BOOST_TEST(rig.peer->eof());
  }
}

struct Refused {
  const char* name;
  std::string octets;
  int status;
  Fault fault;
};
std::ostream& operator<<(std::ostream& o, const Refused& r) { return o << r.name; }

HttpLimits small_limits() {
  HttpLimits l;
  l.max_target = 20;
  l.max_head = 300;
  l.max_fields = 5;
  l.max_trailer = 30;
  l.max_body = 50;
  return l;
}

const Refused kRefused[] = {
    {"max_target", "GET /" + std::string(30, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, Fault::target_too_long},
    {"max_head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(400, 'x') + "\r\n\r\n", 431, Fault::head_too_large},
    {"max_head without an end", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(400, 'x'), 431, Fault::head_too_large},
    {"max_fields", "GET / HTTP/1.1\r\nHost: a\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n", 431, Fault::too_many_fields},
    {"max_body", kPost + "Content-Length: 51\r\n\r\n", 413, Fault::body_too_large},
    {"max_body chunked", kPost + "Transfer-Encoding: chunked\r\n\r\n30\r\n" + std::string(48, 'x') + "\r\n3\r\nxxx\r\n0\r\n\r\n", 413,
     Fault::body_too_large},
    {"max_trailer", kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(40, 'x') + "\r\n\r\n", 431,
     Fault::head_too_large},
    {"max_trailer without an end", kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(40, 'x'), 431,
     Fault::head_too_large},
    {"coding", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, Fault::transfer_coding},
    {"expectation", kPost + "Expect: magic\r\n\r\n", 417, Fault::expectation},
    {"version", "GET / HTTP/3.0\r\n\r\n", 505, Fault::bad_version},
    {"bad head", "GET /\r\n\r\n", 400, Fault::bad_request_line},
    {"bad chunk", kPost + "Transfer-Encoding: chunked\r\n\r\nxx\r\n", 400, Fault::bad_chunk},
};

BOOST_DATA_TEST_CASE(refusals, bdata::make(kRefused), row) {
  for (const Chop& chop : {whole(), every_octet()}) {
    ServerRig rig(small_limits());
    rig.start(chop);
    rig.play(row.octets);
    BOOST_TEST(rig.peer->got().starts_with("HTTP/1.1 " + std::to_string(row.status) + " "), rig.peer->got());
    BOOST_TEST(contains(rig.peer->got(), "Connection: close\r\n"));
    BOOST_TEST(count(rig.peer->got(), "HTTP/1.1 ") == 1u);
    BOOST_TEST(contains(rig.peer->got(), log_word(row.fault)));
    BOOST_TEST(rig.peer->eof());
    BOOST_TEST(!rig.peer->was_reset());
    BOOST_TEST(log_word(rig.owner.fault) == log_word(row.fault));
    BOOST_TEST(rig.owner.gone);
    if (rig.acceptor.streams.empty()) {
      BOOST_REQUIRE(rig.acceptor.rejects.size() == 1u);
      BOOST_TEST(log_word(rig.acceptor.rejects[0]) == log_word(row.fault));
    } else {
      BOOST_TEST(log_word(rig.stream().fault) == log_word(row.fault));
    }
  }
}

/// What the program says on standard error while `f` runs.
std::string said(const std::function<void()>& f) {
  const int file = memfd_create("stderr", MFD_CLOEXEC);
  const int old = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  f();
  dup2(old, STDERR_FILENO);
  close(old);
  std::string text(4096, '\0');
  const ssize_t n = pread(file, text.data(), text.size(), 0);
  close(file);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

BOOST_AUTO_TEST_CASE(the_log_names_limit_value_and_key) {
  const std::pair<std::size_t, const char*> rows[] = {{0, "limits.max_target = 20, seen 31 (raise limits.max_target)"},
                                                      {1, "limits.max_head = 300, seen 432 (raise limits.max_head)"},
                                                      {3, "limits.max_fields = 5, seen 6 (raise limits.max_fields)"},
                                                      {4, "limits.max_body = 50, seen 51 (raise limits.max_body)"},
                                                      {5, "limits.max_body = 50, seen 51 (raise limits.max_body)"},
                                                      {6, "limits.max_trailer = 30, seen 47 (raise limits.max_trailer)"}};
  for (const auto& [i, want] : rows) {
    // Lines that a peer can provoke are limited to some a second: earlier tests may have used them up.
    std::string text;
    const Instant end = monotonic_now() + 5'000'000'000u;
    while (!contains(text, want) && monotonic_now() < end) {
      text = said([&] {
        ServerRig rig(small_limits());
        rig.start();
        rig.play(kRefused[i].octets);
      });
    }
    BOOST_TEST(contains(text, want), text);
  }
}

BOOST_AUTO_TEST_CASE(a_broken_upload_after_the_response_does_not_damage_it) {
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Transfer-Encoding: chunked\r\n\r\n");
  rig.transport->set_write_space(10);
  rig.peer->pause();
  rig.stream().respond(200, std::string(1000, 'r'));
  rig.play("xx\r\n");
  BOOST_TEST(rig.stream().gone);
  rig.peer->resume();
  run_quiet(rig.worker);
  BOOST_TEST(contains(rig.peer->got(), std::string(1000, 'r')));
  BOOST_TEST(rig.peer->eof());
}

BOOST_AUTO_TEST_CASE(a_broken_upload_in_the_middle_of_the_response_resets) {
  ServerRig rig;
  rig.start();
  rig.play(kPost + "Transfer-Encoding: chunked\r\n\r\n");
  rig.stream().send_head(Head::response(200, BodySize::exactly(10)), End::no);
  rig.stream().send_body("hello", End::no);
  rig.play("xx\r\n");
  BOOST_TEST(rig.peer->was_reset());
  BOOST_TEST(log_word(rig.stream().fault) == "bad-chunk");
}

BOOST_AUTO_TEST_CASE(a_head_must_come_in_time) {
  // Also when its first part came behind another request, and however slowly it trickles.
  for (const std::string& before : {std::string(), kGet}) {
    HttpLimits limits;
    limits.head_timeout = milliseconds(60);
    limits.max_head = 1 << 30;  // an idle machine sends very many octets in that time
    ServerRig rig(limits);
    rig.acceptor.setup = echo;
    rig.start(pieces_of(40));
    rig.peer->send(before + "GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: ");
    const Instant begin = rig.worker.now();  // what the timer counts from
    unsigned turns = 0;
    BOOST_TEST(run_until(rig.worker, [&] {
      if (++turns % 2 == 0) rig.peer->send("x");
      return rig.peer->over();
    }));
    BOOST_TEST(monotonic_now() - begin >= 55'000'000u);
    BOOST_TEST(contains(rig.peer->got(), "HTTP/1.1 408 "));
    BOOST_TEST(log_word(rig.owner.fault) == "head-timeout");
  }
}

BOOST_AUTO_TEST_CASE(an_idle_connection_ends) {
  HttpLimits limits;
  limits.keep_alive_timeout = milliseconds(50);
  ServerRig rig(limits);
  rig.acceptor.setup = echo;
  rig.start();
  rig.play(kGet);
  const Instant begin = rig.worker.now();  // what the timer counts from
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->over(); }));
  BOOST_TEST(monotonic_now() - begin >= 45'000'000u);
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(log_word(rig.owner.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(a_request_in_progress_is_not_idle) {
  HttpLimits limits;
  limits.keep_alive_timeout = milliseconds(20);
  ServerRig rig(limits);
  rig.start();
  rig.play(kGet);
  BOOST_TEST(!run_until(rig.worker, [&] { return rig.peer->over() || rig.owner.gone; }, milliseconds(100)));
  rig.stream().respond(200, "x");
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->eof(); }));
  BOOST_TEST(contains(rig.peer->got(), "200 OK"));
}

BOOST_AUTO_TEST_CASE(a_body_must_keep_its_rate) {
  HttpLimits limits;
  limits.body_rate_window = milliseconds(50);
  limits.min_body_rate = 1000;
  ServerRig slow(limits);
  slow.start();
  slow.play(kPost + "Content-Length: 1000000\r\n\r\nhello");
  BOOST_TEST(run_until(slow.worker, [&] { return slow.peer->over(); }));
  BOOST_TEST(contains(slow.peer->got(), "HTTP/1.1 408 "));
  BOOST_TEST(log_word(slow.stream().fault) == "too-slow");

  // Fast enough, and slow only because we give no credit.
  for (const bool starved : {false, true}) {
    HttpLimits l = limits;
    if (starved) l.stream_window = 10;
    ServerRig rig(l);
    rig.acceptor.setup = [&](Recorder& r) { r.consume = !starved; };
    rig.start();
    rig.play(kPost + "Content-Length: 1000000\r\n\r\n" + std::string(20, 'x'));
    BOOST_TEST(!run_until(
        rig.worker,
        [&] {
          if (!starved) rig.peer->send(std::string(100, 'x'));
          return rig.owner.gone;
        },
        milliseconds(200)));
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_waits_for_continue_is_not_slow) {
  HttpLimits limits;
  limits.body_rate_window = milliseconds(20);
  ServerRig rig(limits);
  rig.start();
  rig.play(kPost + "Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n");
  BOOST_TEST(!run_until(rig.worker, [&] { return rig.owner.gone; }, milliseconds(100)));
}

BOOST_AUTO_TEST_CASE(drain_finishes_what_is_in_flight) {
  ServerRig rig;
  rig.start();
  rig.play(kGet);
  rig.owner.session()->drain();
  run_quiet(rig.worker);
  BOOST_TEST(!rig.owner.gone);
  rig.stream().respond(200, "x");
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->got() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
  BOOST_TEST(rig.peer->eof());
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(drain_lets_a_request_race_in) {
  ServerRig rig;
  rig.acceptor.setup = echo;
  rig.start();
  run_quiet(rig.worker);
  rig.owner.session()->drain();
  run_quiet(rig.worker);
  BOOST_TEST(!rig.owner.gone);
  rig.play(kGet);
  BOOST_TEST(contains(rig.peer->got(), "Connection: close\r\n"));
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(drain_ends_an_idle_connection_soon) {
  ServerRig rig;
  rig.acceptor.setup = echo;
  rig.start();
  rig.play(kGet);
  rig.owner.session()->drain();
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->eof(); }, std::chrono::seconds(3)));
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(close_ends_everything_at_once) {
  ServerRig rig;
  rig.start();
  rig.play(kGet);
  rig.owner.session()->close(Fault::shutdown);
  BOOST_TEST(rig.stream().gone);
  BOOST_TEST(log_word(rig.stream().fault) == "shutdown");
  BOOST_TEST(rig.owner.gone);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->was_reset());
}

BOOST_AUTO_TEST_CASE(a_peer_that_never_reads_cannot_keep_a_closing_connection) {
  ServerRig rig;
  rig.start();
  rig.transport->set_write_space(5);
  rig.peer->pause();
  rig.play("GET /\r\n\r\n");
  BOOST_TEST(!rig.owner.gone);
  BOOST_TEST(run_until(rig.worker, [&] { return rig.owner.gone; }, std::chrono::seconds(12)));
}

// Every call of the transport fails once: nothing leaks, nothing crashes, on_gone comes once (the recorder aborts else).
BOOST_AUTO_TEST_CASE(the_nth_call_of_the_transport_fails) {
  const std::string script = kGet + kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n" + kPost +
                             "Content-Length: 5\r\n\r\nhello" + kConnect + "tunnel";
  const std::size_t blocks = BlockPool::local().live_blocks();
  for (const bool reading : {true, false}) {
    unsigned n = 1;
    for (bool failed = true; failed; ++n) {
      BOOST_REQUIRE(n < 500u);
      ServerRig rig;
      rig.acceptor.setup = [](Recorder& r) {
        echo(r);
        r.on_request = [](Recorder& s) {
          if (!s.head->is_connect()) return;
          s.send_head(Head::response(200), End::no);
          s.send_body("down", End::no);
        };
      };
      rig.start(pieces_of(20));
      rig.transport->set_write_space(40);
      if (reading) rig.transport->fail_read_at(n);
      else rig.transport->fail_write_at(n);
      rig.play(script);
      failed = rig.owner.gone;
      for (auto& s : rig.acceptor.streams) BOOST_TEST(s->gone == (failed || &s != &rig.acceptor.streams.back()));
      if (failed) continue;
      BOOST_TEST(rig.acceptor.streams.size() == 4u);
      rig.peer->finish();
      run_quiet(rig.worker);
      rig.stream(3).send_body("", End::yes);
      run_quiet(rig.worker);
      BOOST_TEST(rig.owner.gone);
    }
    BOOST_TEST(n > 3u);
  }
  BOOST_TEST(BlockPool::local().live_blocks() <= blocks + 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace twp::test
