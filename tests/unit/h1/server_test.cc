// The server role over memory transports: requests in, responses out, bodies and credit.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "server_support.h"

namespace bdata = boost::unit_test::data;

namespace twp::test {
namespace {

using namespace server_role;
using std::chrono::milliseconds;

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

BOOST_AUTO_TEST_CASE(a_half_close_is_a_departure_when_asked_for) {
  for (const bool abort : {false, true}) {
    for (const std::string& octets : {kGet, kUpgrade}) {
      HttpLimits limits;
      limits.abort_on_close = abort;
      ServerRig rig(limits);
      rig.start();
      rig.play(octets);
      BOOST_TEST(!rig.stream().gone);
      rig.peer->finish();
      run_quiet(rig.worker);
      BOOST_TEST(rig.stream().gone == abort);
      if (abort) {
        BOOST_TEST(log_word(rig.stream().fault) == "client-closed");
        BOOST_TEST(rig.owner.gone);
        continue;
      }
      rig.stream().respond(403, "x");
      BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->over(); }));
    }
  }
  // Its response is whole and on its way: nothing is waited for any more.
  HttpLimits limits;
  limits.abort_on_close = true;
  ServerRig rig(limits);
  rig.start();
  rig.play(kGet);
  rig.transport->set_write_space(1000);
  rig.peer->pause();
  const std::string body(100'000, 'x');
  rig.stream().respond(200, body);
  run_quiet(rig.worker);
  BOOST_REQUIRE(!rig.owner.gone);
  rig.peer->finish();
  run_quiet(rig.worker);
  rig.peer->resume();
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->over(); }));
  BOOST_TEST(rig.peer->got().ends_with(body));
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

/// A body out of its chunks; empty when they are broken.
std::string unchunked(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t line = text.find("\r\n");
    if (line == std::string_view::npos) return {};
    const std::size_t n = std::stoul(std::string(text.substr(0, line)), nullptr, 16);
    text.remove_prefix(line + 2);
    if (text.size() < n + 2 || text.substr(n, 2) != "\r\n") return {};
    if (n == 0) return text.size() == 2 ? out : std::string();
    out += text.substr(0, n);
    text.remove_prefix(n + 2);
  }
}

BOOST_AUTO_TEST_CASE(tiny_chunks_to_a_slow_reader_cost_about_a_window) {
  HttpLimits limits;
  ServerRig rig(limits);
  rig.start();
  rig.transport->set_write_space(1);
  rig.peer->pause();
  rig.play(kGet);
  Recorder& s = rig.stream();
  s.send_head(Head::response(200, BodySize::unknown()), End::no);
  const std::size_t blocks = BlockPool::local().live_blocks();
  std::string body;
  for (std::size_t i = 0; i < limits.stream_window; ++i) {
    body.push_back(static_cast<char>('a' + i % 26));
    s.send_body(std::string_view(body).substr(i), End::no);
    // As other connections do, which share a worker's blocks with this one.
    if (i % 16 == 0) Slice::copy_of(std::string(1024, 'o'));
  }
  const std::size_t window = limits.stream_window / kBlockSize;
  BOOST_TEST(BlockPool::local().live_blocks() - blocks <= window + window / 2);
  run_quiet(rig.worker);
  BOOST_TEST(s.sent == 0u);
  s.send_body("", End::yes);
  rig.transport->set_write_space(~std::size_t{0});
  rig.peer->resume();
  BOOST_TEST(run_until(rig.worker, [&] { return s.gone; }));
  run_quiet(rig.worker);
  BOOST_TEST(s.sent == body.size());
  const std::string got = rig.peer->take();
  BOOST_TEST((unchunked(std::string_view(got).substr(got.find("\r\n\r\n") + 4)) == body));
  BOOST_TEST(BlockPool::local().live_blocks() <= blocks + 2);
}

BOOST_AUTO_TEST_CASE(tiny_chunks_are_sent_at_once_to_who_reads) {
  ServerRig rig;
  rig.start();
  rig.play(kGet);
  Recorder& s = rig.stream();
  s.send_head(Head::response(200, BodySize::unknown()), End::no);
  // More than is gathered from in one turn, and nothing may stay behind when the output is empty again.
  for (std::size_t i = 0; i < 40'000; ++i) s.send_body("x", End::no);
  run_quiet(rig.worker);
  BOOST_TEST(s.sent == 40'000u);
  rig.peer->take();
  s.send_body("y", End::no);
  run_quiet(rig.worker);
  BOOST_TEST(rig.peer->take() == "1\r\ny\r\n");
  s.send_body("", End::yes);
  run_quiet(rig.worker);
  BOOST_TEST(s.gone);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace twp::test
