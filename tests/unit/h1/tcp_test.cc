// Sessions over kernel sockets: what memory transports cannot show.
#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "h1/h1_session.h"
#include "net/tcp_transport.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace twp::test {
namespace {

/// A connected pair of TCP sockets on loopback; `far` is a plain blocking descriptor.
struct TcpPair {
  TcpPair() {
    const Address any = *Address::parse("127.0.0.1", 0);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    socklen_t n = sizeof at;
    BOOST_REQUIRE(bind(listener, any.sa(), any.length()) == 0);
    BOOST_REQUIRE(listen(listener, 1) == 0);
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &n);
    far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BOOST_REQUIRE(connect(far, reinterpret_cast<sockaddr*>(&at), n) == 0);
    near = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listener);
  }
  /// Octets and a reset right behind them: both are there before anybody looks.
  void send_and_reset(std::string_view octets) {
    BOOST_REQUIRE(send(far, octets.data(), octets.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(octets.size()));
    const linger reset{1, 0};
    setsockopt(far, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(far);
  }
  std::unique_ptr<Transport> transport(Worker& worker) {
    const Address a = *Address::parse("127.0.0.1", 1);
    return TcpTransport::accepted(worker, near, a, a);
  }
  int near = -1, far = -1;
};

BOOST_AUTO_TEST_SUITE(tcp)

BOOST_AUTO_TEST_CASE(a_reset_right_behind_part_of_a_response) {
  for (const std::string_view part : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "HTTP/1.1 200 OK\r\nConte",
                                      "HTTP/1.1 200 OK\r\n\r\nhello",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: "}) {
    Worker worker;
    const HttpLimits limits;
    RecordingOwner owner(worker);
    TcpPair pair;
    Session* s = owner.hold(make_h1_client(worker, pair.transport(worker), owner, limits));
    Recorder r;
    r.stream = s->open(r);
    r.send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
    run_quiet(worker);
    pair.send_and_reset(part);
    BOOST_TEST(run_until(worker, [&] { return r.gone; }, std::chrono::seconds(2)), part);
    BOOST_TEST(log_word(r.fault) == "origin-truncated");
    BOOST_TEST(!r.ended);
  }
}

BOOST_AUTO_TEST_CASE(a_reset_right_behind_part_of_a_request) {
  Worker worker;
  const HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner owner(worker);
  TcpPair pair;
  owner.hold(make_h1_server(worker, pair.transport(worker), acceptor, owner, limits));
  run_quiet(worker);
  pair.send_and_reset("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
  BOOST_TEST(run_until(worker, [&] { return owner.gone; }, std::chrono::seconds(2)));
  BOOST_REQUIRE(acceptor.streams.size() == 1u);
  BOOST_TEST(log_word(acceptor.streams[0]->fault) == "client-reset");
}

// The first octets are a whole request: nothing more is asked for, and the reset behind the rest makes no edge of its own.
BOOST_AUTO_TEST_CASE(a_reset_behind_a_request_that_is_being_answered) {
  Worker worker;
  const HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner owner(worker);
  TcpPair pair;
  owner.hold(make_h1_server(worker, pair.transport(worker), acceptor, owner, limits));
  run_quiet(worker);
  pair.send_and_reset("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  BOOST_TEST(run_until(worker, [&] { return owner.gone; }, std::chrono::seconds(6)));
  BOOST_REQUIRE(acceptor.streams.size() == 1u);
  BOOST_TEST(log_word(acceptor.streams[0]->fault) == "client-reset");
}

BOOST_AUTO_TEST_CASE(a_client_that_resets_an_upload_while_nobody_reads_it) {
  Worker worker;
  HttpLimits limits;
  limits.stream_window = 4096;
  RecordingAcceptor acceptor;
  acceptor.setup = [](Recorder& r) { r.consume = false; };
  RecordingOwner owner(worker);
  TcpPair pair;
  owner.hold(make_h1_server(worker, pair.transport(worker), acceptor, owner, limits));
  run_quiet(worker);
  pair.send_and_reset("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + std::string(60'000, 'x'));
  BOOST_TEST(run_until(worker, [&] { return owner.gone; }, std::chrono::seconds(6)));
  BOOST_TEST(log_word(acceptor.streams[0]->fault) == "client-reset");
}

// A69: the origin refuses an upload with a response that the client is slow to take, and resets. Our write meets the
// reset while reading is paused; the rest of the response is still there when there is room for it again.
BOOST_AUTO_TEST_CASE(a_response_behind_paused_reading_survives_a_failed_write) {
  Worker worker;
  HttpLimits limits;
  limits.stream_window = 4096;
  RecordingOwner owner(worker);
  TcpPair pair;
  Session* s = owner.hold(make_h1_client(worker, pair.transport(worker), owner, limits));
  Recorder r;
  r.consume = false;
  r.stream = s->open(r);
  r.send_head(Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(1 << 20)), End::no);
  r.send_body("begin", End::no);
  run_quiet(worker);
  const std::string body(100'000, 'x');
  pair.send_and_reset("HTTP/1.1 413 Content Too Large\r\nContent-Length: 100000\r\n\r\n" + body);
  BOOST_REQUIRE(run_until(worker, [&] { return r.unconsumed >= limits.stream_window; }));
  for (int i = 0; i < 3; ++i) {
    r.send_body("more", End::no);
    run_quiet(worker);
  }
  BOOST_TEST(!r.gone);
  BOOST_TEST(r.body.size() < body.size());
  r.consume = true;
  r.give_credit(r.unconsumed);
  BOOST_TEST(run_until(worker, [&] { return r.gone; }, std::chrono::seconds(2)));
  BOOST_TEST((r.body == body));
  BOOST_TEST(r.ended);
  BOOST_TEST(log_word(r.fault) == "early-response");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace twp::test
