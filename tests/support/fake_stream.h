// Streams, sessions and dials without sockets, for tests that play both ends of an exchange.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "event/worker.h"
#include "http/session.h"
#include "net/transport.h"
#include "proxy/origin_pool.h"

namespace twp::test {

class FakeSession;

/// One end of an exchange as a codec would be, with everything that was done to it on record. What the peer
/// does is told with deliver_*(); octets leave with leave().
class FakeStream final : public Stream, Task {
 public:
  explicit FakeStream(FakeSession& session) noexcept : session_(session) {}

  void begin(StreamEvents& events) noexcept;

  // What the peer does.
  void deliver_head(Head&& head, End end);
  void deliver_body(std::string_view body, End end = End::no);
  void deliver_trailers(std::string_view name, std::string_view value);
  /// The connection dies.
  void fail(Fault why);
  /// `n` octets (default: all) leave the queue of what was sent.
  void leave(std::size_t n = ~std::size_t{0});

  // What was done to the stream.
  std::vector<Head> interims;
  Head head;                 ///< the final response's, or the request's
  bool has_head = false;
  std::string body;
  std::string trailers;      ///< "name: value\n"
  bool ended = false;        ///< the message was ended in order
  Fault reset_with = Fault::none;
  bool gone = false;

  std::size_t queued() const noexcept { return queued_; }       ///< octets not yet left
  std::size_t delivered() const noexcept { return delivered_; }  ///< octets the peer sent
  std::size_t consumed() const noexcept { return consumed_; }    ///< credit given for them
  bool active() const noexcept { return active_; }

  Session& session() const noexcept override;
  std::uint64_t id() const noexcept override { return 1; }

 private:
  void do_send_head(const Head& h, End end) override;
  void do_send_body(Slice b, End end) override;
  void do_send_trailers(const HeaderBlock& t) override;
  void do_consume(std::size_t n) noexcept override;
  void do_reset(Fault why) override;
  void run() noexcept override;  // later: on_gone
  void settle() noexcept;
  void end_with(Fault why) noexcept;

  FakeSession& session_;
  std::size_t queued_ = 0, delivered_ = 0, consumed_ = 0;
  bool active_ = false;
  bool received_ = false;  // the peer's message is complete
};

/// A connection with one stream at a time, or with many when `streams` says so.
class FakeSession final : public Session {
 public:
  FakeSession(Worker& w, SessionOwner* owner, unsigned max = 1) : worker(w), owner_(owner), max_(max) {}

  Stream* open(StreamEvents& events) noexcept override;
  unsigned capacity() const noexcept override;
  bool settled() const noexcept override { return settled_; }
  unsigned active() const noexcept override;
  void drain() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return info; }
  HttpVersion version() const noexcept override { return {1, 1}; }

  /// The peer has not said yet how many streams it allows: until set_max(), one.
  void unsettle() noexcept { settled_ = false; }
  /// The peer allows `max` streams from now on.
  void set_max(unsigned max) noexcept;
  /// The peer takes no further streams; those that are open go on.
  void go_away() noexcept;

  /// Server role: the stream for the next request.
  FakeStream& next_stream();
  void stream_over(FakeStream& s, Fault why) noexcept;

  PeerInfo info;
  Worker& worker;
  std::deque<FakeStream> streams;  ///< all there ever were
  bool refuse_open = false;
  bool draining = false;
  bool over = false;

 private:
  SessionOwner* owner_;
  unsigned max_;
  bool settled_ = true;
};

class FakeConnector;

class FakeDial final : public Dial {
 public:
  FakeDial(FakeConnector& c, const DialTarget& t, SessionOwner& o, DialHandler& h) : target(t), owner(o), handler(h), c_(c) {}
  ~FakeDial() override;
  const DialTarget& target;
  SessionOwner& owner;
  DialHandler& handler;

 private:
  FakeConnector& c_;
};

/// Dials wait until the test says how they end.
class FakeConnector final : public Connector {
 public:
  explicit FakeConnector(Worker& w) : worker(w) {}
  std::unique_ptr<Dial> start(const DialTarget& target, SessionOwner& owner, DialHandler& handler) noexcept override;

  /// The oldest dial in flight succeeds / fails.
  FakeSession& succeed(unsigned streams = 1);
  /// The same, with a session that does not know yet how many streams it may open.
  FakeSession& succeed_unsettled();
  void fail(Fault why, const std::string& detail = "refused by the test");

  Worker& worker;
  std::vector<FakeDial*> dials;          ///< in flight
  std::size_t started = 0;
  std::deque<FakeSession> sessions;      ///< all there ever were: tests look at them when they are over

 private:
  FakeSession& end_dial(unsigned streams, bool settled);
};

}  // namespace twp::test
