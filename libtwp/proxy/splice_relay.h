// SpliceRelay: moves a large body from one plain socket to another inside the kernel (splice(2)).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "event/worker.h"
#include "http/stream.h"

namespace twp {

/// Bodies and rests of bodies below this many octets are not worth a pipe.
inline constexpr std::uint64_t kSpliceFrom = 64 * 1024;

/// Empty pipes kept for the next body; per worker.
class PipePool {
 public:
  struct Pipe {
    int read_end = -1;
    int write_end = -1;
    std::size_t size = 0;  ///< octets it holds
    bool ok() const noexcept { return read_end >= 0; }
  };
  PipePool() noexcept = default;
  PipePool(const PipePool&) = delete;
  PipePool& operator=(const PipePool&) = delete;
  ~PipePool();

  /// Not ok() when the process is out of descriptors: the body is then copied instead.
  Pipe take() noexcept;
  /// `empty` false: octets are left in it, so it is closed.
  void give(Pipe pipe, bool empty) noexcept;

 private:
  std::vector<Pipe> free_;
};

class SpliceRelay;

class SpliceOwner {
 public:
  /// The source has nothing more and all of it is on the sink. The relay has detached itself.
  virtual void on_splice_done(SpliceRelay&) noexcept = 0;
  /// The sink takes nothing more. Its session knows, but may still have something to read from its peer; a
  /// session with nothing of its own to write would never meet the failure again.
  virtual void on_splice_broken(SpliceRelay&) noexcept = 0;

 protected:
  ~SpliceOwner() = default;
};

/// One direction of one exchange. The octets are accounted for by the sessions through their RawPort; the end
/// of the message still comes by StreamEvents::on_body(End::yes), which the owner holds back until
/// on_splice_done().
class SpliceRelay final : RawPump, Task {
 public:
  SpliceRelay(Worker& worker, PipePool& pipes, SpliceOwner& owner) noexcept
      : worker_(worker), pipes_(pipes), owner_(owner) {}
  ~SpliceRelay() { stop(); }

  /// Takes over when both streams can now, and `least` or more octets of body are still to come; else false
  /// and nothing has changed. `source` and `sink` must outlive the relay or stop() comes first.
  bool start(Stream& source, Stream& sink, std::uint64_t least) noexcept;
  /// Gives both sides back. Octets that are in the pipe are lost: only for an exchange that is given up.
  /// Idempotent.
  void stop() noexcept;
  /// A stream is gone: it must not be touched by stop().
  void forget(const Stream& gone) noexcept;

  bool active() const noexcept { return pipe_.ok(); }
  /// Octets put onto the sink since the last call.
  std::uint64_t take_moved() noexcept { return std::exchange(moved_, 0); }
  /// Octets taken from the source and not yet put onto the sink: it is the sink that is late.
  std::uint64_t in_pipe() const noexcept { return in_pipe_; }
  /// When an octet was last taken or put; kNever: not since start().
  Instant last_move() const noexcept { return last_move_; }

 private:
  enum class Step : std::uint8_t { progress, blocked, over };

  void on_raw_ready(Stream&) noexcept override;
  void run() noexcept override { pump(); }
  void pump() noexcept;
  Step fill() noexcept;
  Step drain() noexcept;
  void finish() noexcept;

  Worker& worker_;
  PipePool& pipes_;
  SpliceOwner& owner_;
  Stream* source_ = nullptr;  // null: has given everything, or is gone
  Stream* sink_ = nullptr;
  PipePool::Pipe pipe_;
  std::uint64_t remaining_ = 0;  // still on the source
  std::uint64_t in_pipe_ = 0;
  std::uint64_t moved_ = 0;
  Instant last_move_ = kNever;
  bool source_ready_ = true;
  bool sink_ready_ = true;
};

}  // namespace twp
