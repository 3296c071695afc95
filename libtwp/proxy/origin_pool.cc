#include "proxy/origin_pool.h"

#include <algorithm>
#include <utility>

namespace twp {
namespace {

constexpr Duration kFirstBackOff = std::chrono::seconds(1);
constexpr Duration kLongestBackOff = std::chrono::seconds(30);
constexpr Duration kRedial = std::chrono::milliseconds(100);  // when there were no descriptors
// A dial takes the kernel some 20 us: a client that asks for a hundred at once is not to hold up the worker for all of
// them, and one that is thrown out in the next turn has cost no more than these.
constexpr unsigned kDialsPerTurn = 4;

}  // namespace

/// One connection: first a dial, then a session.
class OriginPool::Connection final : public SessionOwner,
                                     public DialHandler,
                                     public IListHook<AllTag>,
                                     public IListHook<AvailableTag> {
 public:
  explicit Connection(OriginPool& pool) noexcept : pool_(pool) {}

  void on_capacity(Session&) noexcept override { pool_.capacity_changed(*this); }
  void on_session_gone(Session&, Fault) noexcept override { pool_.session_gone(*this); }
  void on_dialed(Dial&, std::unique_ptr<Session> s) noexcept override {
    if (!closing) pool_.dial_done(*this, std::move(s));  // closing: cancelled in this very turn
  }
  void on_dial_failed(Dial&, Fault fault, const std::string& detail) noexcept override {
    if (!closing) pool_.dial_failed(*this, fault, detail);
  }

  bool available() const noexcept { return IListHook<AvailableTag>::linked(); }

  std::unique_ptr<Dial> dial;
  std::unique_ptr<Session> session;
  Instant idle_since = kNever;
  std::uint64_t number = 0;  ///< in the order of opening
  unsigned active = 0;   ///< streams of the session, as counted in the pool
  bool used = false;     ///< has carried a request
  bool unsettled = false;  ///< counted in the pool: what it takes is not known yet
  bool idle = false;
  bool closing = false;

 private:
  OriginPool& pool_;
};

PoolWaiter::~PoolWaiter() {
  if (pool_ != nullptr) pool_->cancel(*this);
}

void OriginPool::tell_empty() noexcept {
  if (owner_ != nullptr) owner_->on_pool_empty(*this);
}

OriginPool::OriginPool(Worker& worker, Connector& connector, const DialTarget& target, const PoolLimits& limits,
                       Counters& counters, PoolOwner* owner)
    : worker_(worker), connector_(connector), target_(target), limits_(limits), counters_(counters), owner_(owner),
      expected_(twp::expected_streams(target)) {}

OriginPool::~OriginPool() {
  shut_down_ = true;
  fail_waiters(Fault::shutdown, {});
  counters_.origin_connections -= connections_;
  counters_.origin_idle -= idle_;
  while (!all_.empty()) delete &all_.front();  // its hooks take it off the lists
}

OriginPool::Result OriginPool::acquire(StreamEvents& events, PoolWaiter& waiter, Reuse reuse,
                                        const void* client) noexcept {
  if (shut_down_) return {nullptr, Fault::shutdown, false};
  if (reuse == Reuse::no && connections_ >= limits_.max_connections) close_oldest_idle();
  // Where no connection may be opened any other is better than none.
  const bool fresh = reuse == Reuse::no && may_dial();
  // Nobody waits for a connection that is available: whoever makes one available serves the queue first.
  if (!fresh && !available_.empty()) {
    Connection& c = available_.front();
    Result result;
    result.stream = open_on(c, events, result.reused);
    if (result.stream != nullptr) return result;
  }
  if (waiting() >= limits_.max_queue) {
    ++counters_.queue_full;
    return {nullptr, Fault::queue_full, false};
  }
  waiter.pool_ = this;
  waiter.events_ = &events;
  waiter.after_ = fresh ? opened_ : 0;
  waiter.deadline_ = worker_.now() + static_cast<Instant>(limits_.queue_timeout.count());
  waiters_.push(waiter, client);
  ++counters_.waiting;
  if (!queue_timer_.armed()) worker_.arm_at(queue_timer_, waiter.deadline_);
  // Behind this turn's input: who is cancelled in it, and who gets a connection that it frees, needs none.
  worker_.schedule(Phase::flush, dial_task_);
  return {};
}

void OriginPool::cancel(PoolWaiter& waiter) noexcept {
  if (waiter.pool_ != this) return;
  waiter.pool_ = nullptr;
  waiters_.remove(waiter);
  --counters_.waiting;
}

/// Out of the queue, to be told something.
PoolWaiter& OriginPool::take_waiter(FairQueue::Item& item) noexcept {
  auto& w = static_cast<PoolWaiter&>(item);
  w.pool_ = nullptr;
  waiters_.serve(w);
  --counters_.waiting;
  return w;
}

/// Whose turn it is of those for whom `c` will do.
PoolWaiter* OriginPool::waiter_for(const Connection& c) noexcept {
  return static_cast<PoolWaiter*>(
      waiters_.find([&](const FairQueue::Item& w) { return static_cast<const PoolWaiter&>(w).after_ < c.number; }));
}

void OriginPool::fail_waiters(Fault why, const std::string& detail) noexcept {
  // Who fails may come back at once; only those that wait now are meant.
  for (std::size_t n = waiting(); n != 0 && !waiters_.empty(); --n)
    take_waiter(waiters_.front()).on_pool_failed(why, detail);
}

Stream* OriginPool::open_on(Connection& c, StreamEvents& events, bool& reused) noexcept {
  Stream* stream = c.session->open(events);
  if (stream == nullptr) {
    c.IListHook<AvailableTag>::unlink();
    set_idle(c, false);
    return nullptr;
  }
  reused = std::exchange(c.used, true);
  if (reused) ++counters_.reuses;
  set_idle(c, false);
  ++c.active;
  ++active_;
  if (c.session->capacity() == 0) c.IListHook<AvailableTag>::unlink();
  return stream;
}

void OriginPool::set_idle(Connection& c, bool idle) noexcept {
  if (c.idle == idle) return;
  c.idle = idle;
  if (idle) {
    c.idle_since = worker_.now();
    ++idle_;
    ++counters_.origin_idle;
    if (!idle_timer_.armed()) worker_.arm(idle_timer_, limits_.idle_timeout);
  } else {
    --idle_;
    --counters_.origin_idle;
  }
}

void OriginPool::capacity_changed(Connection& c) noexcept {
  if (c.session == nullptr || c.closing) return;
  const unsigned active = c.session->active();
  active_ -= c.active - std::min(active, c.active);
  c.active = std::min(active, c.active);
  learn(c);
  if (c.session->capacity() == 0) {
    c.IListHook<AvailableTag>::unlink();
    set_idle(c, false);
  } else {
    serve(c);
  }
  dial_for_waiters();  // it may carry fewer than was expected, or none any more
}

/// A session with room says how much there is in all; one without may be full or going.
void OriginPool::learn(Connection& c) noexcept {
  const Session& s = *c.session;
  if (!s.settled()) {
    if (!std::exchange(c.unsettled, true)) ++unsettled_;
    return;
  }
  if (std::exchange(c.unsettled, false)) {
    --unsettled_;
    // Full with its first stream: it takes one at a time. If it is going instead, the next connection will tell.
    if (s.capacity() == 0 && s.active() != 0) expected_ = s.active();
  }
  if (const unsigned room = s.capacity(); room != 0) expected_ = std::size_t{room} + s.active();
}

/// `c` has room: whoever waits longest gets it, or it becomes available.
void OriginPool::serve(Connection& c) noexcept {
  while (c.session->capacity() != 0) {
    PoolWaiter* const next = waiter_for(c);
    if (next == nullptr) break;
    PoolWaiter& w = take_waiter(*next);
    bool reused = false;
    Stream* stream = open_on(c, *w.events_, reused);
    if (stream == nullptr) {
      w.on_pool_failed(Fault::internal, "a connection with room gave no stream");
      return;
    }
    w.on_pool_stream(*stream, reused);
    if (c.closing || c.session == nullptr) return;
  }
  if (c.session->capacity() == 0 || c.closing) return;
  if (shut_down_ && c.active == 0) {
    c.closing = true;
    c.session->drain();
    return;
  }
  if (!c.available()) available_.push_front(c);
  set_idle(c, c.active == 0);
  if (idle_ > limits_.max_idle) close_oldest_idle();
}

void OriginPool::dial_for_waiters() noexcept {
  if (dial_turn_ != worker_.turns()) {
    dial_turn_ = worker_.turns();
    dials_this_turn_ = 0;
  }
  while (!shut_down_ && !redial_timer_.armed() && !all_have_a_place() && may_dial()) {
    if (dials_this_turn_ == kDialsPerTurn) {
      worker_.schedule(Phase::flush, dial_task_);
      return;
    }
    ++dials_this_turn_;
    start_dial();
  }
}

/// Who may get a place on a connection that works waits better for that than for one failing dial after the other.
bool OriginPool::may_dial() const noexcept {
  if (connections_ >= limits_.max_connections) return false;
  return expected_ == 1 || connections_ == 0 || !backing_off();
}

void OriginPool::start_dial() noexcept {
  auto* c = new Connection(*this);  // once per connection, not per request
  all_.push_back(*c);
  ++connections_;
  ++dialing_;
  ++counters_.dials;
  ++counters_.origin_connections;
  c->dial = connector_.start(target_, *c, *c);
}

void OriginPool::dial_done(Connection& c, std::unique_ptr<Session> session) noexcept {
  --dialing_;
  worker_.retire(std::move(c.dial));
  c.session = std::move(session);
  c.number = ++opened_;
  failures_ = 0;
  down_until_ = kNever;
  learn(c);
  serve(c);
  dial_for_waiters();
}

void OriginPool::dial_failed(Connection& c, Fault fault, const std::string& detail) noexcept {
  --dialing_;
  ++counters_.dial_failures;
  worker_.retire(std::move(c.dial));
  if (fault == Fault::too_many_files && !shut_down_) {
    // That says nothing about the origin.
    remove(c);
    worker_.arm(redial_timer_, kRedial);
    return;
  }
  // Several dials that fail together are one failure of the origin.
  if (!backing_off()) {
    const Duration wait = std::min<Duration>(kLongestBackOff, kFirstBackOff * (1 << std::min(failures_, 5u)));
    ++failures_;
    down_until_ = worker_.now() + static_cast<Instant>(wait.count());
  }
  remove(c);
  // One failed dial is the failure of the one that waits longest: others may yet get a connection, but they
  // are not made to wait for one dial after the other when nothing at all is connected. Where many share a connection,
  // those that are open serve the queue, within its deadline.
  if (waiters_.empty()) return;
  if (connections_ == 0)
    fail_waiters(fault, detail);
  else if (expected_ == 1)
    take_waiter(waiters_.front()).on_pool_failed(fault, detail);
  else
    serve_from_old();
  dial_for_waiters();
}

/// No new connection can be had: whoever waited for one takes what there is.
void OriginPool::serve_from_old() noexcept {
  waiters_.for_each([](FairQueue::Item& w) { static_cast<PoolWaiter&>(w).after_ = 0; });
  for (std::size_t n = available_.size(); n != 0 && !waiters_.empty() && !available_.empty(); --n) {
    Connection& c = available_.front();
    c.IListHook<AvailableTag>::unlink();
    serve(c);
  }
}

void OriginPool::remove(Connection& c) noexcept {
  c.closing = true;
  c.IListHook<AllTag>::unlink();
  c.IListHook<AvailableTag>::unlink();
  set_idle(c, false);
  active_ -= c.active;
  c.active = 0;
  --connections_;
  --counters_.origin_connections;
  if (c.dial != nullptr) --dialing_;
  if (std::exchange(c.unsettled, false)) --unsettled_;
  worker_.retire(std::unique_ptr<Connection>(&c));
  if (shut_down_ && connections_ == 0 && owner_ != nullptr) worker_.schedule(Phase::flush, empty_task_);
}

void OriginPool::session_gone(Connection& c) noexcept {
  remove(c);
  redial_timer_.cancel();  // its descriptor is free
  dial_for_waiters();
}

void OriginPool::close_oldest_idle() noexcept {
  Connection* oldest = nullptr;
  // The back of the list was idle longest; connections that are in use (multiplexing) are passed over.
  available_.for_each([&](Connection& c) {
    if (c.idle) oldest = &c;
  });
  if (oldest == nullptr) return;
  oldest->closing = true;
  oldest->IListHook<AvailableTag>::unlink();
  set_idle(*oldest, false);
  oldest->session->drain();
}

void OriginPool::close_expired() noexcept {
  const Instant now = worker_.now();
  const auto timeout = static_cast<Instant>(limits_.idle_timeout.count());
  Instant next = kNever;
  // drain() may end the session from inside the call, so it comes after the walk.
  IList<Connection, AvailableTag> expired;
  available_.for_each([&](Connection& c) {
    if (!c.idle) return;
    const Instant at = c.idle_since + timeout;
    if (at > now) {
      if (next == kNever || at < next) next = at;
      return;
    }
    c.IListHook<AvailableTag>::unlink();
    c.closing = true;
    set_idle(c, false);
    expired.push_back(c);
  });
  if (next != kNever) worker_.arm_at(idle_timer_, next);
  while (!expired.empty()) expired.pop_front().session->drain();
}

void OriginPool::expire_waiters() noexcept {
  const Instant now = worker_.now();
  const auto deadline = [](const FairQueue::Item& item) { return static_cast<const PoolWaiter&>(item).deadline_; };
  // A waiter with a dial of its own is bounded by the dial's time; one that waits for an origin to say what it takes is not.
  while (!all_have_a_dial()) {
    FairQueue::Item* const item = waiters_.find([&](const FairQueue::Item& i) { return deadline(i) <= now; });
    if (item == nullptr) break;
    ++counters_.queue_timeouts;
    take_waiter(*item).on_pool_failed(Fault::queue_timeout, target_.host + ": no connection became free in time");
  }
  if (waiters_.empty()) return;
  Instant next = now + 3600'000'000'000u;
  waiters_.for_each([&](const FairQueue::Item& i) { next = std::min(next, deadline(i)); });
  worker_.arm_at(queue_timer_, next > now ? next : now + 50'000'000u);
}

void OriginPool::shut_down() noexcept {
  if (std::exchange(shut_down_, true)) return;
  idle_timer_.cancel();
  queue_timer_.cancel();
  redial_timer_.cancel();
  fail_waiters(Fault::shutdown, "the origin was removed from the configuration");
  IList<Connection, AvailableTag> idle;
  available_.for_each([&](Connection& c) {
    if (!c.idle) return;
    c.IListHook<AvailableTag>::unlink();
    c.closing = true;
    set_idle(c, false);
    idle.push_back(c);
  });
  while (!idle.empty()) idle.pop_front().session->drain();
  IList<Connection, AllTag> all;
  all.splice_back(all_);
  while (!all.empty()) {
    Connection& c = all.pop_front();
    all_.push_back(c);
    if (c.dial != nullptr) remove(c);
  }
  if (connections_ == 0 && owner_ != nullptr) worker_.schedule(Phase::flush, empty_task_);
}

void OriginPool::close() noexcept {
  shut_down();
  while (!all_.empty()) {
    Connection& c = all_.front();
    if (c.session != nullptr) c.session->close(Fault::shutdown);
    if (!all_.empty() && &all_.front() == &c) remove(c);
  }
}

}  // namespace twp
