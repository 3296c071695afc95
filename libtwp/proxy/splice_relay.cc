#include "proxy/splice_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace twp {
namespace {

constexpr std::size_t kMaxFreePipes = 16;
constexpr int kWantedPipe = 1024 * 1024;      // the usual fs.pipe-max-size
constexpr std::uint64_t kBudget = 1024 * 1024;  // octets a relay moves before others get their turn
constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

}  // namespace

PipePool::~PipePool() {
  for (const Pipe& p : free_) {
    ::close(p.read_end);
    ::close(p.write_end);
  }
}

PipePool::Pipe PipePool::take() noexcept {
  if (!free_.empty()) {
    const Pipe p = free_.back();
    free_.pop_back();
    return p;
  }
  int fds[2];
  if (::pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return {};
  // Refused (EPERM) when the user's pipes together pass fs.pipe-user-pages-soft: the default size then does.
  int size = ::fcntl(fds[1], F_SETPIPE_SZ, kWantedPipe);
  if (size < 0) size = ::fcntl(fds[1], F_GETPIPE_SZ);
  return {fds[0], fds[1], size > 0 ? static_cast<std::size_t>(size) : std::size_t{4096}};
}

void PipePool::give(Pipe pipe, bool empty) noexcept {
  if (!pipe.ok()) return;
  if (empty && free_.size() < kMaxFreePipes) {
    free_.push_back(pipe);
    return;
  }
  ::close(pipe.read_end);
  ::close(pipe.write_end);
}

bool SpliceRelay::start(Stream& source, Stream& sink, std::uint64_t least) noexcept {
  RawPort* const from = source.raw_port();
  RawPort* const to = sink.raw_port();
  if (from == nullptr || to == nullptr) return false;
  const RawPort::End in = from->source();
  if (in.fd < 0 || in.remaining < least) return false;
  const RawPort::End out = to->sink();
  if (out.fd < 0 || out.remaining < in.remaining) return false;
  pipe_ = pipes_.take();
  if (!pipe_.ok()) return false;
  source_ = &source;
  sink_ = &sink;
  remaining_ = in.remaining;
  in_pipe_ = moved_ = 0;
  last_move_ = kNever;
  source_ready_ = sink_ready_ = true;
  from->attach_source(this);
  to->attach_sink(this);
  worker_.schedule(Phase::client, *this);
  return true;
}

void SpliceRelay::on_raw_ready(Stream& stream) noexcept {
  if (&stream == source_) source_ready_ = true;
  if (&stream == sink_) sink_ready_ = true;
  // Pumping is never done from inside a session: what it finds may end streams.
  worker_.schedule(Phase::client, *this);
}

void SpliceRelay::pump() noexcept {
  std::uint64_t moved = 0;
  while (active()) {
    const Step filled = in_pipe_ < pipe_.size / 2 ? fill() : Step::blocked;
    if (!active()) return;
    const std::uint64_t before = in_pipe_;
    const Step drained = drain();
    moved += before - in_pipe_;
    if (!active()) return;
    if (in_pipe_ == 0 && source_ == nullptr) {
      finish();
      return;
    }
    if (filled != Step::progress && drained != Step::progress) {
      if (in_pipe_ != 0 && source_ != nullptr) source_->raw_port()->raw_paused();
      return;
    }
    if (moved >= kBudget) {
      worker_.schedule(Phase::client, *this);
      return;
    }
  }
}

SpliceRelay::Step SpliceRelay::fill() noexcept {
  if (source_ == nullptr || !source_ready_) return Step::blocked;
  RawPort* const port = source_->raw_port();
  const int fd = port->source().fd;
  if (fd < 0) {
    source_ready_ = false;
    return Step::blocked;
  }
  const std::size_t want = std::min<std::uint64_t>(remaining_, pipe_.size - in_pipe_);
  ssize_t n = 0;
  do {
    n = ::splice(fd, nullptr, pipe_.write_end, nullptr, want, kFlags);
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    last_move_ = worker_.now();
    in_pipe_ += static_cast<std::uint64_t>(n);
    remaining_ -= static_cast<std::uint64_t>(n);
    // The session ends the message, and with it the attachment, when its count is complete.
    if (remaining_ == 0) source_ = nullptr;
    port->raw_received(static_cast<std::uint64_t>(n), false);
    return Step::progress;
  }
  if (n < 0 && errno == EAGAIN) {
    // The pipe may be what is full: its pages count, not its octets.
    if (in_pipe_ != 0) return Step::blocked;
    source_ready_ = false;
    port->raw_received(0, true);
    return Step::blocked;
  }
  const int err = n < 0 ? errno : 0;
  source_ = nullptr;
  port->attach_source(nullptr);
  port->raw_failed(err);
  return Step::over;
}

SpliceRelay::Step SpliceRelay::drain() noexcept {
  if (in_pipe_ == 0 || sink_ == nullptr || !sink_ready_) return Step::blocked;
  RawPort* const port = sink_->raw_port();
  const int fd = port->sink().fd;
  if (fd < 0) {
    sink_ready_ = false;
    return Step::blocked;
  }
  ssize_t n = 0;
  do {
    n = ::splice(pipe_.read_end, nullptr, fd, nullptr, in_pipe_, kFlags);
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    last_move_ = worker_.now();
    in_pipe_ -= static_cast<std::uint64_t>(n);
    moved_ += static_cast<std::uint64_t>(n);
    port->raw_sent(static_cast<std::uint64_t>(n), false);
    return Step::progress;
  }
  if (n < 0 && errno == EAGAIN) {
    sink_ready_ = false;
    port->raw_sent(0, true);
    return Step::blocked;
  }
  const int err = n < 0 ? errno : EPIPE;
  Stream* const failed = std::exchange(sink_, nullptr);
  failed->raw_port()->attach_sink(nullptr);
  failed->raw_port()->raw_failed(err);
  owner_.on_splice_broken(*this);
  return Step::over;
}

void SpliceRelay::finish() noexcept {
  stop();
  owner_.on_splice_done(*this);
}

void SpliceRelay::forget(const Stream& gone) noexcept {
  if (&gone == source_) source_ = nullptr;
  if (&gone == sink_) sink_ = nullptr;
}

void SpliceRelay::stop() noexcept {
  if (!active()) return;
  unlink();
  pipes_.give(std::exchange(pipe_, {}), in_pipe_ == 0);
  if (Stream* s = std::exchange(source_, nullptr)) s->raw_port()->attach_source(nullptr);
  if (Stream* s = std::exchange(sink_, nullptr)) s->raw_port()->attach_sink(nullptr);
}

}  // namespace twp
