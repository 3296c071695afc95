// The server role where it ends: tunnels, refusals, time limits, drains, peers that go, and calls that fail.
#include <sys/mman.h>
#include <unistd.h>

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
  // 200 and 204 too: the origin has taken the handshake for an ordinary request.
  for (const auto& [early, status] : {std::pair{false, 403}, {true, 403}, {false, 200}, {true, 200}, {true, 204}, {true, 426}}) {
    ServerRig rig;
    rig.start();
    rig.play(kUpgrade + (early ? kGet : ""));
    rig.stream().respond(static_cast<std::uint16_t>(status), status == 204 ? "" : "no");
    run_quiet(rig.worker);
    BOOST_TEST(rig.peer->got().starts_with("HTTP/1.1 " + std::to_string(status) + " "));
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
    {"max_target above max_head", "GET /" + std::string(400, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, Fault::target_too_long},
    {"max_target without an end", "GET /" + std::string(100, 'x'), 414, Fault::target_too_long},
    {"method", std::string(400, 'G') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501, Fault::method_too_long},
    {"method without an end", std::string(100, 'G'), 501, Fault::method_too_long},
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

BOOST_AUTO_TEST_CASE(a_body_that_a_pump_does_not_take_is_not_slow) {
  struct Pump final : RawPump {
    void on_raw_ready(Stream&) noexcept override {}
  } pump;
  HttpLimits limits;
  limits.body_rate_window = milliseconds(30);
  ServerRig rig(limits);
  rig.start();
  rig.play(kPost + "Content-Length: 1000000\r\n\r\nhello");
  RawPort& port = *rig.stream().stream->raw_port();
  port.attach_source(&pump);
  port.raw_paused();
  BOOST_TEST(!run_until(rig.worker, [&] { return rig.peer->over() || rig.owner.gone; }, milliseconds(150)));
  port.raw_received(0, true);  // now it is the client that is waited for
  BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->over(); }));
  BOOST_TEST(contains(rig.peer->got(), "HTTP/1.1 408 "));
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

  // No upload but a conversation: the response has begun.
  ServerRig talk(limits);
  talk.start();
  talk.play(kPost + "Content-Length: 1000000\r\n\r\nhello");
  talk.stream().send_head(Head::response(200, BodySize::unknown()), End::no);
  BOOST_TEST(!run_until(talk.worker, [&] { return talk.owner.gone; }, milliseconds(200)));

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

BOOST_AUTO_TEST_CASE(drain_does_not_wait_for_a_part_of_a_head) {
  for (const bool before : {false, true}) {
    HttpLimits limits;
    limits.head_timeout = std::chrono::seconds(60);
    ServerRig rig(limits);
    rig.acceptor.setup = echo;
    rig.start();
    rig.play(kGet + (before ? "G" : ""));  // the first one is answered
    rig.owner.session()->drain();
    if (!before) rig.play("GET / HTTP/1.1\r\nHost:");
    rig.peer->take();
    BOOST_TEST(run_until(rig.worker, [&] { return rig.peer->over(); }, std::chrono::seconds(3)));
    BOOST_TEST(rig.peer->got() == "");
    BOOST_TEST(rig.owner.gone);
    BOOST_TEST(rig.acceptor.rejects.empty());
  }
}

BOOST_AUTO_TEST_CASE(drain_serves_a_head_that_is_on_its_way) {
  ServerRig rig;
  rig.acceptor.setup = echo;
  rig.start();
  rig.play(kGet.substr(0, 5));
  rig.owner.session()->drain();
  run_quiet(rig.worker);
  rig.play(kGet.substr(5));
  BOOST_TEST(rig.peer->got().starts_with("HTTP/1.1 200 "));
  BOOST_TEST(contains(rig.peer->got(), "\r\nConnection: close\r\n"));
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
