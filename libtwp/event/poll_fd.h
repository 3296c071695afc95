// PollFd: a file descriptor's one registration with the loop, for its whole life.
#pragma once

#include <cstddef>

namespace twp {

class Worker;

/// What a PollFd tells its owner.
class PollHandler {
 public:
  struct Ready {
    bool readable;
    bool writable;
    bool hangup;  ///< the peer has shut its writing side: read until 0 even after a short read
  };
  virtual void on_poll(Ready ready) noexcept = 0;

 protected:
  ~PollHandler() = default;
};

/// Edge-triggered read + write + hang-up interest, added once and removed in close(); there is no re-arming,
/// so "pause" is simply not reading (the owner remembers that it has not drained the descriptor). Owns the
/// descriptor. Worker thread only.
class PollFd {
 public:
  PollFd() noexcept = default;
  PollFd(const PollFd&) = delete;
  PollFd& operator=(const PollFd&) = delete;
  ~PollFd() { close(); }

  /// Takes `fd` (non-blocking) and registers it; false (and fd closed) when the kernel refuses.
  bool open(Worker& worker, int fd, PollHandler& handler) noexcept;
  /// Level-triggered read interest only, for listeners and wake-up descriptors.
  bool open_level(Worker& worker, int fd, PollHandler& handler) noexcept;
  /// As open(), for a descriptor that a library owns: it stays open when this fails; give it back with release().
  bool watch(Worker& worker, int fd, PollHandler& handler) noexcept;
  /// Removes the registration, then closes the descriptor. Idempotent.
  void close() noexcept;
  /// Hands the descriptor back unregistered and open.
  int release() noexcept;
  /// Stops and restarts a level-triggered registration (a listener out of descriptors).
  void pause() noexcept;
  void resume() noexcept;

  int fd() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  bool open_with(Worker& worker, int fd, PollHandler& handler, int what) noexcept;
  static void dispatch(int fd, short what, void* self) noexcept;

  // struct event of libevent, kept out of this header; poll_fd.cc checks the size.
  alignas(8) std::byte event_[128];
  Worker* worker_ = nullptr;
  PollHandler* handler_ = nullptr;
  int fd_ = -1;
};

}  // namespace twp
