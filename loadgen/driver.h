// Driver: the load of one worker thread: its connections, its schedule, its counters.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event/worker.h"
#include "loadgen/endpoint.h"
#include "loadgen/lane.h"
#include "loadgen/pacer.h"
#include "loadgen/payload.h"
#include "loadgen/plan.h"
#include "net/resolver.h"
#include "proxy/dialer.h"

namespace twp::load {

/// What all drivers of a step share, read only.
struct Load {
  const Plan* plan = nullptr;
  Payload payload;
  bool check_hash = false;
  std::optional<std::uint64_t> expected_hash;  ///< none: what the first good response had
  unsigned index = 0, threads = 1;  ///< of this driver
  Spread spread;                    ///< of the step
  unsigned first = 0;               ///< number of this driver's first connection
  unsigned connections = 1;         ///< of this driver
};

/// The measured part of time, set once all connections are open. Closed loop: a request counts when it ends inside;
/// open loop: when it was due inside.
struct Window {
  Instant warm = 0;  ///< load begins
  Instant from = 0;
  Instant until = 0;
};

/// One connection and its lanes. Reconnects by itself, backing off while dials fail.
class Connection final : SessionOwner, DialHandler, Timer {
 public:
  Connection(Driver& driver, unsigned lanes);
  ~Connection();

  void dial() noexcept;
  void close() noexcept;
  Session* session() noexcept { return session_.get(); }
  template <class F>
  void for_each_lane(F&& f) {
    for (auto& lane : lanes_) f(*lane);
  }
  /// The handshake that the workload needs above the session is done on one more lane.
  void lane_opened() noexcept;
  /// That handshake has failed; it is tried again later.
  void lane_refused(Lane& lane) noexcept;
  /// `lane` has no stream: it goes on as soon as the session has room for one.
  void wait(Lane& lane) noexcept {
    if (!lane.linked()) waiting_.push_back(lane);
  }
  void note_answer() noexcept { answered_ = true; }
  /// A request failed with the connection.
  void note_broken() noexcept { broken_ = true; }
  Instant dial_began() const noexcept { return dial_began_; }

 private:
  void on_dialed(Dial& dial, std::unique_ptr<Session> session) noexcept override;
  void on_dial_failed(Dial& dial, Fault fault, const std::string& detail) noexcept override;
  void on_capacity(Session&) noexcept override;
  void on_session_gone(Session&, Fault why) noexcept override;
  void on_timer() noexcept override;
  void opened() noexcept;
  void look_at_limit(const Session& session) noexcept;
  void go_on() noexcept;
  void try_later() noexcept;

  Driver& driver_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Dial> dial_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  IList<Lane> waiting_;      // for the session to have room
  Instant dial_began_ = 0;
  unsigned failures_ = 0;    // dials or empty connections in a row
  unsigned open_lanes_ = 0;  // of this session
  unsigned usable_lanes_;    // of this session: as many as the server takes requests
  bool settled_ = false;   // the session's limit has been looked at
  bool answered_ = false;  // this connection has answered a request
  bool broken_ = false;    // a request of this connection failed with it
  bool counted_ = false;   // this object has been open once
};

class Driver final : PollHandler, Timer {
 public:
  enum class State : std::uint8_t { connecting, ready, failed, done };

  static Result<std::unique_ptr<Driver>> create(Load load);
  ~Driver();

  // --- any thread ---
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  unsigned connected() const noexcept { return connected_.load(std::memory_order_relaxed); }
  std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }  ///< for the progress line
  std::uint64_t wrong() const noexcept { return wrong_.load(std::memory_order_relaxed); }
  void go(const Window& window) { worker_.post([this, window] { begin(window); }); }
  /// The window ends at `at` (now or earlier); state() becomes done once what was in flight is accounted for.
  void finish(Instant at) { worker_.post([this, at] { end(at); }); }
  void stop() noexcept { worker_.stop(); }
  /// The thread's body: until stop().
  void run() noexcept;

  // --- after the thread has ended, or when state() is failed or done ---
  Counters& counters() noexcept { return counters_; }
  const std::string& failure() const noexcept { return failure_; }

  // --- lanes and connections ---
  Worker& worker() noexcept { return worker_; }
  Resolver& resolver() noexcept { return *resolver_; }
  const Load& load() const noexcept { return load_; }
  const Plan& plan() const noexcept { return *load_.plan; }
  const DialTarget& target() const noexcept { return endpoint_.target(); }
  const Head& request() const noexcept { return request_; }
  bool running() const noexcept { return running_; }
  bool stopping() const noexcept { return stopping_; }
  /// Time, read at most once in a turn: what one turn handles has arrived together.
  Instant clock() noexcept {
    return turn_ == worker_.turns() ? clock_ : read_clock();
  }
  /// Reads it now; clock() says so too until the turn is over.
  Instant read_clock() noexcept {
    turn_ = worker_.turns();
    return clock_ = monotonic_now();
  }
  std::uint32_t random() noexcept {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return static_cast<std::uint32_t>(random_ >> 32);
  }
  /// `lane` can take a request.
  void offer(Lane& lane) noexcept;
  /// `first`: of that Connection object.
  void connection_opened(Duration took, bool first) noexcept;
  void dial_failed(const std::string& detail) noexcept;
  void record_success(Lane& lane, std::uint64_t octets) noexcept;
  void record_failure(Lane& lane, Failure why, std::string_view detail) noexcept;
  /// The connection of `lane` turned out not to be in step right after an answer that was taken as right.
  void record_stray(const Lane& lane) noexcept;
  bool right_body(std::uint64_t hash) noexcept {
    if (!load_.expected_hash) load_.expected_hash = hash;
    return *load_.expected_hash == hash;
  }
  void note_early() noexcept { ++counters_.early; }
  /// A connection with more lanes takes only so many requests at a time.
  void note_allowed(unsigned streams) noexcept { counters_.note_allowed(streams); }

 private:
  explicit Driver(Load load);
  Result<void> prepare();
  void build_request();
  void begin(const Window& window) noexcept;
  void end(Instant at) noexcept;
  void settle() noexcept;
  void close_all() noexcept;
  void on_poll(Ready) noexcept override;  // timerfd: a request is due
  void on_timer() noexcept override;      // looks for timeouts
  void start_due() noexcept;
  void arm_pacer() noexcept;
  bool counts(const Lane& lane, Instant end) const noexcept;

  Worker worker_;
  Load load_;
  std::unique_ptr<Resolver> resolver_;
  Endpoint endpoint_;
  Head request_;
  std::vector<std::unique_ptr<Connection>> connections_;
  IList<Lane> idle_;      // open loop: free lanes
  Pacer pacer_;
  PollFd timer_fd_;
  Instant armed_ = kNever;
  Window window_;
  Counters counters_;
  Instant clock_ = 0;
  std::uint64_t turn_ = ~std::uint64_t{0};
  std::uint64_t random_;
  Instant settle_until_ = 0;
  bool running_ = false;
  bool stopping_ = false;
  std::string failure_;
  std::atomic<State> state_{State::connecting};
  std::atomic<unsigned> connected_{0};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace twp::load
