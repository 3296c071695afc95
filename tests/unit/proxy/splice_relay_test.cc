#include "proxy/splice_relay.h"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "event/poll_fd.h"
#include "support/fake_stream.h"

using namespace twp;
using namespace twp::test;

namespace {

/// A stream on a real socket, as an HTTP/1 session would be while its body is plain octets.
class RawStream final : public Stream, public RawPort, PollHandler {
 public:
  RawStream(FakeSession& session, int fd, std::uint64_t size) : session_(session), left_(size) {
    BOOST_REQUIRE(poll_.open(session.worker, fd, *this));
  }
  Session& session() const noexcept override { return session_; }
  std::uint64_t id() const noexcept override { return 1; }
  RawPort* raw_port() noexcept override { return this; }

  RawPort::End source() noexcept override { return {poll_.fd(), left_}; }
  RawPort::End sink() noexcept override { return {poll_.fd(), left_}; }
  void attach_source(RawPump* p) noexcept override { pump = p; }
  void attach_sink(RawPump* p) noexcept override { pump = p; }
  void raw_received(std::uint64_t n, bool drained) noexcept override {
    count += n;
    left_ -= n;
    drains += drained;
    if (left_ == 0) pump = nullptr;
  }
  void raw_paused() noexcept override { ++pauses; }
  void raw_sent(std::uint64_t n, bool full) noexcept override {
    count += n;
    left_ -= n;
    fulls += full;
  }
  void raw_failed(int err) noexcept override {
    failed = true;
    error = err;
  }

  RawPump* pump = nullptr;
  std::uint64_t count = 0;
  int drains = 0, fulls = 0, pauses = 0, error = 0;
  bool failed = false;

 private:
  void on_poll(Ready) noexcept override {
    if (pump != nullptr) pump->on_raw_ready(*this);
  }
  void do_send_head(const Head&, twp::End) override {}
  void do_send_body(Slice, twp::End) override {}
  void do_send_trailers(const HeaderBlock&) override {}
  void do_consume(std::size_t) noexcept override {}
  void do_reset(Fault) override {}

  FakeSession& session_;
  std::uint64_t left_;
  PollFd poll_;
};

struct Rig final : SpliceOwner {
  explicit Rig(std::uint64_t size) {
    std::signal(SIGPIPE, SIG_IGN);
    for (auto* pair : {in, out})
      BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    source = std::make_unique<RawStream>(session, in[1], size);
    sink = std::make_unique<RawStream>(session, out[1], size);
  }
  ~Rig() {
    relay.stop();
    ::close(in[0]);
    ::close(out[0]);
  }
  void on_splice_done(SpliceRelay&) noexcept override { ++done; }
  void on_splice_broken(SpliceRelay&) noexcept override { ++broken; }

  /// Feeds and drains as the sockets allow until `stop()` or a deadline.
  template <class F>
  void pump(std::string_view feed, bool drain, F stop) {
    const Instant until = monotonic_now() + 10'000'000'000u;
    while (!stop() && monotonic_now() < until) {
      if (!feed.empty()) {
        const ssize_t n = ::send(in[0], feed.data(), feed.size(), MSG_NOSIGNAL);
        if (n > 0) feed.remove_prefix(static_cast<std::size_t>(n));
      }
      char buffer[65536];
      if (drain)
        for (ssize_t n; (n = ::recv(out[0], buffer, sizeof buffer, 0)) > 0;)
          got.append(buffer, static_cast<std::size_t>(n));
      worker.turn(std::chrono::milliseconds(1));
    }
    BOOST_TEST(stop());
  }

  Worker worker;
  FakeSession session{worker, nullptr};
  PipePool pipes;
  int in[2], out[2];
  std::unique_ptr<RawStream> source, sink;
  SpliceRelay relay{worker, pipes, *this};
  std::string got;
  int done = 0, broken = 0;
};

std::string pattern(std::size_t n) {
  std::string s(n, 0);
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 31 + i / 251);
  return s;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(splice_relay)

BOOST_AUTO_TEST_CASE(moves_a_body_unchanged_and_says_when_it_is_through) {
  const std::string body = pattern(5'000'000);
  Rig rig(body.size());
  BOOST_REQUIRE(rig.relay.start(*rig.source, *rig.sink, kSpliceFrom));
  rig.pump(body, true, [&] { return rig.got.size() == body.size() && rig.done == 1; });
  BOOST_TEST((rig.got == body));
  BOOST_TEST(rig.source->count == body.size());
  BOOST_TEST(rig.sink->count == body.size());
  BOOST_TEST(rig.relay.take_moved() == body.size());
  BOOST_TEST(!rig.relay.active());
  BOOST_CHECK(rig.sink->pump == nullptr);
}

BOOST_AUTO_TEST_CASE(a_sink_that_does_not_read_stops_the_source) {
  const std::string body = pattern(20'000'000);
  Rig rig(body.size());
  BOOST_REQUIRE(rig.relay.start(*rig.source, *rig.sink, kSpliceFrom));
  rig.pump(body, false, [&] { return rig.sink->fulls != 0; });
  const std::uint64_t before = rig.source->count;
  for (int i = 0; i < 20; ++i) rig.worker.turn(Duration::zero());
  BOOST_TEST(rig.source->count - before <= 2u << 20);  // a pipe's worth, not the body
  BOOST_TEST(rig.source->count < 8u << 20);
  BOOST_TEST(rig.source->pauses != 0);
  BOOST_TEST(rig.relay.in_pipe() == rig.source->count - rig.sink->count);
  BOOST_TEST(rig.relay.in_pipe() != 0u);
}

BOOST_AUTO_TEST_CASE(an_end_too_early_is_the_sessions_business) {
  Rig rig(1'000'000);
  const std::string part = pattern(100'000);
  BOOST_REQUIRE(rig.relay.start(*rig.source, *rig.sink, kSpliceFrom));
  rig.pump(part, true, [&] { return rig.got.size() == part.size(); });
  ::shutdown(rig.in[0], SHUT_WR);
  rig.pump({}, true, [&] { return rig.source->failed; });
  BOOST_TEST(rig.source->error == 0);
  BOOST_TEST(rig.got == part);
}

BOOST_AUTO_TEST_CASE(a_broken_sink_is_told_to_its_session) {
  Rig rig(1'000'000);
  BOOST_REQUIRE(rig.relay.start(*rig.source, *rig.sink, kSpliceFrom));
  ::shutdown(rig.out[0], SHUT_RD);
  ::close(rig.out[0]);
  rig.out[0] = -1;
  rig.pump(pattern(200'000), false, [&] { return rig.sink->failed; });
  BOOST_TEST(rig.sink->error == EPIPE);
  BOOST_TEST(rig.broken == 1);
}

BOOST_AUTO_TEST_CASE(short_bodies_and_stopping_leave_everything_as_it_was) {
  Rig small(1000);
  BOOST_TEST(!small.relay.start(*small.source, *small.sink, kSpliceFrom));
  BOOST_CHECK(small.source->pump == nullptr);
  Rig rig(1'000'000);
  BOOST_REQUIRE(rig.relay.start(*rig.source, *rig.sink, kSpliceFrom));
  rig.relay.stop();
  rig.relay.stop();
  BOOST_CHECK(rig.source->pump == nullptr);
  BOOST_CHECK(rig.sink->pump == nullptr);
  BOOST_TEST(!rig.relay.active());
}

BOOST_AUTO_TEST_CASE(pipes_are_used_again_when_empty) {
  PipePool pool;
  const PipePool::Pipe p = pool.take();
  BOOST_REQUIRE(p.ok());
  BOOST_TEST(p.size >= 4096u);
  pool.give(p, true);
  BOOST_TEST(pool.take().read_end == p.read_end);
  pool.give(p, false);
  BOOST_TEST(::fcntl(p.read_end, F_GETFD) == -1);
}

BOOST_AUTO_TEST_SUITE_END()
