// Worker: one thread, one event loop. It owns everything it touches; nothing is shared between workers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/ilist.h"
#include "base/timer_wheel.h"
#include "event/poll_fd.h"

struct event_base;

namespace twp {

struct TaskTag {};

/// Work that a turn runs once per schedule(). Takes itself off the queue when destroyed.
class Task : public IListHook<TaskTag> {
 public:
  virtual void run() noexcept = 0;
  bool scheduled() const noexcept { return linked(); }

 protected:
  ~Task() = default;
};

struct GuestTag {};

/// An object that owns itself until its work is done (then it retires itself), or until the worker ends.
class Guest : public IListHook<GuestTag> {
 public:
  virtual ~Guest() = default;
};

/// The order inside a turn: origins first, then clients, flush last, so that many responses leave in one write.
enum class Phase : std::uint8_t { origin, client, flush };

/// A turn: wait for events -> origin tasks -> client tasks (budgeted) -> timers -> flush tasks -> retire.
///
/// Everything but post() and stop() belongs to the worker's own thread.
class Worker final : PollHandler {
 public:
  /// `index` 0..N-1. Aborts with a message when the kernel has no epoll or eventfd left.
  explicit Worker(unsigned index = 0);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Turns until stop().
  void run() noexcept;
  /// One turn; waits at most `max_wait` for something to happen (0: does not wait).
  void turn(Duration max_wait) noexcept;
  /// Any thread: run() returns after the current turn.
  void stop() noexcept;
  /// Any thread: `f` runs on this worker, in the next turn.
  void post(std::move_only_function<void()> f);

  /// Time at the start of this turn: read once when the wait is over, before the first event is told.
  Instant now() const noexcept { return now_; }
  /// Wall clock of this turn in ns, derived from now() without a system call.
  std::uint64_t wall() const noexcept { return now_ + wall_offset_; }

  /// Queues `t` for this turn's phase, or for the next turn when that phase has passed. No-op when queued.
  void schedule(Phase phase, Task& t) noexcept {
    if (!t.linked()) queue_[static_cast<unsigned>(phase)].push_back(t);
  }

  /// Tells that the running task has read `octets`. When those of a phase add up to kOctetsPerTurn the rest of its tasks, which
  /// are not those of the flush phase, waits for the next turn: bulk bodies make no turn long.
  void charge(std::size_t octets) noexcept { read_octets_ += octets; }
  static constexpr std::size_t kOctetsPerTurn = 512 * 1024;

  /// Whether tasks wait for the next turn.
  bool work_waiting() noexcept;

  /// The same for what has had its share of a turn and wants more: those that have had none yet come first, whoever asks for
  /// little is not kept waiting by bulk.
  void schedule_rest(Phase phase, Task& t) noexcept {
    if (t.linked()) return;
    rest_[static_cast<unsigned>(phase)].push_back(t);
    any_rest_ = true;
  }

  void arm(Timer& t, Duration in) noexcept { arm_at(t, now_ + static_cast<Instant>(in.count())); }
  void arm_at(Timer& t, Instant deadline) noexcept;

  /// Destroys `object` at the end of this turn: nothing dies inside a callback of its own.
  template <class T>
  void retire(std::unique_ptr<T> object) noexcept {
    if (object == nullptr) return;
    retired_.push_back({object.release(), [](void* p) noexcept { delete static_cast<T*>(p); }});
  }
  /// Calls `f(p)` at the end of this turn (slab objects).
  void retire(void* p, void (*f)(void*) noexcept) noexcept { retired_.push_back({p, f}); }

  /// Keeps `guest` until it retires itself; destroyed with the worker at the latest.
  void adopt(std::unique_ptr<Guest> guest) noexcept { guests_.push_back(*guest.release()); }

  /// For whoever is called by the loop itself (PollFd, signals): a wait may have been long.
  void wait_is_over() noexcept {
    if (now_is_fresh_) return;
    now_ = monotonic_now();
    now_is_fresh_ = true;
  }

  unsigned index() const noexcept { return index_; }
  event_base* base() noexcept { return base_; }
  std::uint64_t turns() const noexcept { return turns_; }

  /// A second signal of the same kind is delivered like the first. Worker 0 only; loop-safe (self-pipe inside
  /// libevent). Returns false when the handler cannot be installed.
  bool on_signal(int signal, std::move_only_function<void()> f);

 private:
  struct Retired {
    void* object;
    void (*destroy)(void*) noexcept;
  };
  struct Signal;

  void on_poll(Ready) noexcept override;  // mailbox wake-up
  void run_phase(Phase phase, unsigned budget) noexcept;
  void run_queue(IList<Task, TaskTag>& queue, unsigned budget, Phase phase) noexcept;
  void rearm_wheel() noexcept;
  void reap() noexcept;

  static constexpr unsigned kClientBudget = 512;  // client tasks a turn: bounds the age of the first response

  const unsigned index_;
  event_base* base_ = nullptr;
  std::size_t read_octets_ = 0;  // in the phase that runs
  Instant now_ = 0;
  bool now_is_fresh_ = true;
  std::uint64_t wall_offset_ = 0;
  std::uint64_t turns_ = 0;
  TimerWheel wheel_;
  Instant wheel_armed_ = kNever;
  struct WheelEvent;
  std::unique_ptr<WheelEvent> wheel_event_;
  using Queue = IList<Task, TaskTag>;
  std::array<Queue, 3> queue_;
  std::array<Queue, 3> rest_;  // see schedule_rest()
  bool any_rest_ = false;
  std::vector<Retired> retired_;
  IList<Guest, GuestTag> guests_;
  std::vector<std::unique_ptr<Signal>> signals_;
  bool stopping_ = false;

  PollFd wake_;
  std::mutex mail_mutex_;
  std::vector<std::move_only_function<void()>> mail_;
};

}  // namespace twp
