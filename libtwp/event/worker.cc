#include "event/worker.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace twp {

struct Worker::WheelEvent {
  event ev;
};

struct Worker::Signal {
  event ev;
  Worker* worker;
  std::move_only_function<void()> f;
};

namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "twp: cannot start a worker: %s\n", what);
  std::_Exit(1);  // nothing to unwind: the program has not begun
}

event_base* make_base() {
  event_config* config = event_config_new();
  if (config == nullptr) die("event_config_new");
  // One base per thread and never shared: no lock needed.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  if (base == nullptr) die("event_base_new");
  return base;
}

timeval to_timeval(Instant ns) noexcept {
  return {static_cast<time_t>(ns / 1'000'000'000u), static_cast<suseconds_t>(ns % 1'000'000'000u / 1000u)};
}

}  // namespace

Worker::Worker(unsigned index)
    : index_(index), base_(make_base()), now_(monotonic_now()), wheel_(now_),
      wheel_event_(std::make_unique<WheelEvent>()) {
  wall_offset_ = wall_now() - now_;
  retired_.reserve(64);
  // libevent's clock is coarse: the event may fire some milliseconds before the wheel's deadline by now_, and
  // must then be armed again. So what tells that it fired is the callback, not the clock.
  evtimer_assign(&wheel_event_->ev, base_,
                 [](evutil_socket_t, short, void* armed) { *static_cast<Instant*>(armed) = kNever; }, &wheel_armed_);
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0 || !wake_.open(*this, fd, *this)) die("eventfd");
}

Worker::~Worker() {
  while (!guests_.empty()) delete &guests_.front();  // the hook takes it off the list
  reap();
  for (auto& s : signals_) event_del(&s->ev);
  event_del(&wheel_event_->ev);
  wake_.close();
  event_base_free(base_);
}

void Worker::run() noexcept {
  while (!stopping_) turn(Duration::max());
}

bool Worker::work_waiting() noexcept {
  return any_rest_ || std::any_of(queue_.begin(), queue_.end(), [](auto& q) { return !q.empty(); });
}

void Worker::turn(Duration max_wait) noexcept {
  int flags = EVLOOP_ONCE;
  if (work_waiting() || max_wait <= Duration::zero()) flags |= EVLOOP_NONBLOCK;
  if (max_wait != Duration::max() && max_wait > Duration::zero()) {
    const Instant until = now_ + static_cast<Instant>(max_wait.count());
    if (wheel_armed_ == kNever || until < wheel_armed_) {
      const timeval tv = to_timeval(static_cast<Instant>(max_wait.count()));
      event_add(&wheel_event_->ev, &tv);
      wheel_armed_ = until;
    }
  }
  now_is_fresh_ = false;
  event_base_loop(base_, flags);
  wait_is_over();
  ++turns_;
  run_phase(Phase::origin, ~0u);
  run_phase(Phase::client, kClientBudget);
  wheel_.advance(now_);
  run_phase(Phase::flush, ~0u);
  if (any_rest_) any_rest_ = std::ranges::any_of(rest_, [](auto& q) { return !q.empty(); });
  reap();
  rearm_wheel();
}

void Worker::run_phase(Phase phase, unsigned budget) noexcept {
  const auto i = static_cast<unsigned>(phase);
  read_octets_ = 0;
  if (!any_rest_) return run_queue(queue_[i], budget, phase);
  Queue rest;  // not what is only now told that its share is over
  rest.splice_back(rest_[i]);
  run_queue(queue_[i], budget, phase);
  // One at least has its turn, however much the others have read.
  read_octets_ = std::min(read_octets_, kOctetsPerTurn - 1);
  run_queue(rest, budget, phase);
  rest.splice_back(rest_[i]);
  rest_[i].splice_back(rest);
}

void Worker::run_queue(Queue& queue, unsigned budget, Phase phase) noexcept {
  // Only what is queued now: a task that queues itself again runs in the next turn.
  Queue batch;
  batch.splice_back(queue);
  const std::size_t most = phase == Phase::flush ? ~std::size_t{0} : kOctetsPerTurn;
  while (!batch.empty() && budget-- != 0 && read_octets_ < most) batch.pop_front().run();
  if (batch.empty()) return;
  batch.splice_back(queue);
  queue.splice_back(batch);
}

void Worker::arm_at(Timer& t, Instant deadline) noexcept { wheel_.arm(t, deadline); }

void Worker::rearm_wheel() noexcept {
  const Instant next = wheel_.next();
  // An event that is armed earlier than needed costs one idle wake-up; moving it later on every turn would
  // cost a heap operation on every turn.
  if (next == kNever || (wheel_armed_ != kNever && wheel_armed_ <= next)) return;
  const timeval tv = to_timeval(next > now_ ? next - now_ : 0);
  event_add(&wheel_event_->ev, &tv);
  wheel_armed_ = next;
}

void Worker::reap() noexcept {
  // Destructors may retire more.
  while (!retired_.empty()) {
    std::vector<Retired> now;
    now.swap(retired_);
    for (const Retired& r : now) r.destroy(r.object);
    if (retired_.empty()) {
      now.clear();
      retired_.swap(now);  // keeps the capacity
    }
  }
}

void Worker::stop() noexcept {
  post([this] { stopping_ = true; });
}

void Worker::post(std::move_only_function<void()> f) {
  // The wake-up is written under the lock too: what is posted may end this worker, and with it the descriptor, as soon
  // as the loop can take it.
  const std::lock_guard lock(mail_mutex_);
  mail_.push_back(std::move(f));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.fd(), &one, sizeof one);
}

void Worker::on_poll(Ready) noexcept {
  std::vector<std::move_only_function<void()>> mail;
  {
    const std::lock_guard lock(mail_mutex_);
    mail.swap(mail_);
  }
  for (auto& f : mail) f();
}

bool Worker::on_signal(int signal, std::move_only_function<void()> f) {
  auto s = std::make_unique<Signal>();
  s->f = std::move(f);
  s->worker = this;
  auto callback = [](evutil_socket_t, short, void* arg) {
    auto* caught = static_cast<Signal*>(arg);
    caught->worker->wait_is_over();
    caught->f();
  };
  if (event_assign(&s->ev, base_, signal, EV_SIGNAL | EV_PERSIST, callback, s.get()) != 0) return false;
  if (event_add(&s->ev, nullptr) != 0) return false;
  signals_.push_back(std::move(s));
  return true;
}

}  // namespace twp
