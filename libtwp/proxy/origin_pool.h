// OriginPool: the connections of one worker to one origin (see origin_key.h): idle ones, ones being opened,
// and the requests that wait for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/ilist.h"
#include "base/slab.h"
#include "event/member_task.h"
#include "event/worker.h"
#include "http/session.h"
#include "proxy/counters.h"
#include "proxy/dialer.h"
#include "proxy/fair_queue.h"

namespace twp {

class OriginPool;

/// How connections come to be. A seam for tests; the proxy's own is Dial::start.
class Connector {
 public:
  virtual std::unique_ptr<Dial> start(const DialTarget& target, SessionOwner& owner, DialHandler& handler) noexcept = 0;

 protected:
  ~Connector() = default;
};

/// The pool's own part of a waiter.
class PoolQueued : public FairQueue::Item {
 private:
  friend class OriginPool;
  friend class PoolWaiter;
  OriginPool* pool_ = nullptr;
  StreamEvents* events_ = nullptr;
  Instant deadline_ = kNever;
  std::uint64_t after_ = 0;  // only a connection that was opened as a later one than this will do
};

/// A request that waits for a connection. Takes itself out of the queue when destroyed or on cancel().
class PoolWaiter : public PoolQueued {
 public:
  /// `stream` is open and wants send_head(request) now. `reused`: its connection has carried requests before.
  virtual void on_pool_stream(Stream& stream, bool reused) noexcept = 0;
  /// No connection could be had. `detail` is one line for the log, valid during the call.
  virtual void on_pool_failed(Fault why, const std::string& detail) noexcept = 0;

 protected:
  PoolWaiter() noexcept = default;
  ~PoolWaiter();
};

struct PoolLimits {
  Duration idle_timeout = std::chrono::seconds(60);   ///< an idle connection closes after this
  Duration queue_timeout = std::chrono::seconds(5);   ///< a request without a dial of its own waits at most this
  unsigned max_connections = 1024;
  unsigned max_queue = 1024;
  unsigned max_idle = 256;
};

/// Told when a pool that was shut down holds nothing any more and may be destroyed.
class PoolOwner {
 public:
  virtual void on_pool_empty(OriginPool&) noexcept = 0;

 protected:
  ~PoolOwner() = default;
};

/// How many requests a connection can carry at once is what its session says; until one has, `expected_streams` of the
/// target. A connection that is in use and has room takes the next request, so that there are only as many as are needed;
/// one that is going (GOAWAY, Connection: close) takes none. One whose origin has not yet said how many it takes (see
/// Session::settled) carries one, and counts like a dial for the rest.
///
/// Invariants: a dial is started only when those in flight are not expected to carry all waiters; connections (open and
/// being opened) never exceed max_connections; clients that wait are served in turn, each one's requests in the order they
/// came, but for those that need a connection opened after they came. When the process is out of descriptors they wait for a
/// connection that becomes free, or for descriptors, as at max_connections.
class OriginPool {
 public:
  /// `target`, `counters`, `connector` and `owner` outlive the pool.
  OriginPool(Worker& worker, Connector& connector, const DialTarget& target, const PoolLimits& limits,
             Counters& counters, PoolOwner* owner = nullptr);
  ~OriginPool();
  OriginPool(const OriginPool&) = delete;
  OriginPool& operator=(const OriginPool&) = delete;

  enum class Reuse : bool { no, yes };
  /// A stream at once (`reused` in `result`), or `waiter` is queued (stream null, fault none) and is called
  /// later, or nothing can be had (fault set). Reuse::no asks for a connection opened after this call where
  /// the limits allow it: a replay must not meet a second connection that the origin has given up. `client` says whose
  /// request it is; it is only told apart from others.
  struct Result {
    Stream* stream = nullptr;
    Fault fault = Fault::none;
    bool reused = false;
  };
  Result acquire(StreamEvents& events, PoolWaiter& waiter, Reuse reuse = Reuse::yes, const void* client = nullptr) noexcept;
  /// `waiter` no longer waits. No-op when it does not.
  void cancel(PoolWaiter& waiter) noexcept;

  /// Closes what is idle, fails who waits; the rest goes when its streams end, then PoolOwner::on_pool_empty
  /// (never from inside this call).
  void shut_down() noexcept;
  /// As shut_down(), and ends every connection now, with the streams on it.
  void close() noexcept;

  // Passive health.
  /// Connecting failed lately and the back-off is not over.
  bool backing_off() const noexcept { return worker_.now() < down_until_; }
  /// Streams open and requests waiting: what power of two choices compares.
  std::size_t load() const noexcept { return active_ + waiters_.size(); }

  const DialTarget& target() const noexcept { return target_; }
  std::size_t connections() const noexcept { return connections_; }  ///< open or being opened
  std::size_t dialing() const noexcept { return dialing_; }
  std::size_t waiting() const noexcept { return waiters_.size(); }
  std::size_t idle() const noexcept { return idle_; }
  /// Streams that the next connection is expected to carry at once.
  std::size_t expected_streams() const noexcept { return expected_; }

 private:
  class Connection;
  struct AvailableTag {};
  struct AllTag {};

  Stream* open_on(Connection& c, StreamEvents& events, bool& reused) noexcept;
  void capacity_changed(Connection& c) noexcept;
  void learn(Connection& c) noexcept;
  void serve(Connection& c) noexcept;
  void serve_from_old() noexcept;
  void set_idle(Connection& c, bool idle) noexcept;
  void dial_for_waiters() noexcept;
  void start_dial() noexcept;
  void dial_done(Connection& c, std::unique_ptr<Session> session) noexcept;
  void dial_failed(Connection& c, Fault fault, const std::string& detail) noexcept;
  void remove(Connection& c) noexcept;
  void session_gone(Connection& c) noexcept;
  PoolWaiter& take_waiter(FairQueue::Item& w) noexcept;
  PoolWaiter* waiter_for(const Connection& c) noexcept;
  bool may_dial() const noexcept;
  bool all_have_a_dial() const noexcept { return waiting() <= dialing_ * expected_; }
  /// The same with the connections that have one stream and are expected to take more.
  bool all_have_a_place() const noexcept { return waiting() <= dialing_ * expected_ + unsettled_ * (expected_ - 1); }
  void fail_waiters(Fault why, const std::string& detail) noexcept;
  void close_oldest_idle() noexcept;
  void close_expired() noexcept;
  void expire_waiters() noexcept;
  void tell_empty() noexcept;

  Worker& worker_;
  Connector& connector_;
  const DialTarget& target_;
  const PoolLimits limits_;
  Counters& counters_;
  PoolOwner* const owner_;

  IList<Connection, AllTag> all_;
  IList<Connection, AvailableTag> available_;  // front: used last, so that the rest can age and close
  FairQueue waiters_;
  std::size_t connections_ = 0, dialing_ = 0, unsettled_ = 0, idle_ = 0, active_ = 0;
  std::uint64_t opened_ = 0;  // connections that were ever opened
  std::uint64_t dial_turn_ = 0;  // the turn in which it dialled last
  unsigned dials_this_turn_ = 0;
  std::size_t expected_ = 1;  // streams of one connection
  Instant down_until_ = kNever;
  unsigned failures_ = 0;  // in a row
  bool shut_down_ = false;
  MemberTimer<&OriginPool::close_expired> idle_timer_{*this};
  MemberTimer<&OriginPool::expire_waiters> queue_timer_{*this};
  MemberTimer<&OriginPool::dial_for_waiters> redial_timer_{*this};  // armed: there were no descriptors for a dial
  MemberTask<&OriginPool::dial_for_waiters> dial_task_{*this};
  MemberTask<&OriginPool::tell_empty> empty_task_{*this};
};

}  // namespace twp
