#include "event/poll_fd.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <unistd.h>

#include <utility>

#include "event/worker.h"

namespace twp {
namespace {

event* as_event(std::byte* storage) noexcept { return reinterpret_cast<event*>(storage); }

}  // namespace

void PollFd::dispatch(int, short what, void* self) noexcept {
  auto* p = static_cast<PollFd*>(self);
  p->worker_->wait_is_over();
  p->handler_->on_poll({(what & (EV_READ | EV_CLOSED)) != 0, (what & EV_WRITE) != 0, (what & EV_CLOSED) != 0});
}

bool PollFd::open_with(Worker& worker, int fd, PollHandler& handler, int what) noexcept {
  static_assert(sizeof(event) <= sizeof(event_));
  worker_ = &worker;
  handler_ = &handler;
  fd_ = fd;
  auto callback = [](evutil_socket_t f, short w, void* self) { dispatch(static_cast<int>(f), w, self); };
  if (event_assign(as_event(event_), worker.base(), fd, static_cast<short>(what), callback, this) != 0 ||
      event_add(as_event(event_), nullptr) != 0) {
    fd_ = -1;
    return false;
  }
  return true;
}

bool PollFd::open(Worker& worker, int fd, PollHandler& handler) noexcept {
  if (watch(worker, fd, handler)) return true;
  ::close(fd);
  return false;
}

bool PollFd::watch(Worker& worker, int fd, PollHandler& handler) noexcept {
  return open_with(worker, fd, handler, EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST);
}

bool PollFd::open_level(Worker& worker, int fd, PollHandler& handler) noexcept {
  if (open_with(worker, fd, handler, EV_READ | EV_PERSIST)) return true;
  ::close(fd);
  return false;
}

void PollFd::close() noexcept {
  const int fd = release();
  if (fd >= 0) ::close(fd);
}

int PollFd::release() noexcept {
  if (fd_ < 0) return -1;
  // Before close(2): a reused number must not meet this event in the same batch.
  event_del(as_event(event_));
  return std::exchange(fd_, -1);
}

void PollFd::pause() noexcept {
  if (fd_ >= 0) event_del(as_event(event_));
}

void PollFd::resume() noexcept {
  if (fd_ >= 0) event_add(as_event(event_), nullptr);
}

}  // namespace twp
