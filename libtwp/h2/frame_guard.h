// FrameGuard: looks at every frame before nghttp2 does. It finds what nghttp2 lets pass (frames on closed streams,
// PRIORITY that contradicts itself) and counts what is legal but suspicious (RFC 9113 §10.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "http/glitch_counter.h"
#include "http/limits.h"

namespace twp::h2 {

struct FrameHead {
  std::uint32_t length = 0;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::int32_t stream = 0;
};

class FrameGuard {
 public:
  /// What the session knows of a stream.
  class Streams {
   public:
    virtual bool is_open(std::int32_t id) noexcept = 0;
    /// Whether cancelling it says nothing: its response has begun, or somebody has waited for it for a while.
    virtual bool is_fairly_cancelled(std::int32_t id) noexcept = 0;
    /// Takes what was checked, so that is_open() is up to date.
    virtual void catch_up() noexcept = 0;

   protected:
    ~Streams() = default;
  };
  static constexpr std::size_t kHead = 9;  ///< octets of a frame head
  enum class Verdict : std::uint8_t { pass, stream_closed, protocol_error };

  FrameGuard(const HttpLimits& limits, bool server) noexcept
      : limits_(limits), preface_left_(server ? kPreface : 0), server_(server) {}

  /// Looks at the octets from `at` up to the end of the next frame head or of the input, whichever comes first, and
  /// advances `at`. When a head was completed there, returns what is to be done with that frame; else `pass`.
  Verdict look(std::span<const std::byte> in, std::size_t& at, Streams& streams, Instant now) noexcept;

  /// Octets of the payload of the frame in progress that were looked at.
  std::uint32_t payload_seen() const noexcept { return head_.length - payload_left_; }
  /// Since the beginning: heads of frames, and streams that the peer has opened.
  std::uint64_t frames() const noexcept { return frames_; }
  std::uint64_t streams() const noexcept { return streams_; }
  bool in_header_block() const noexcept { return block_open_; }
  Instant header_block_since() const noexcept { return block_since_; }
  /// The stream whose header block is in progress.
  std::int32_t header_block_of() const noexcept { return head_.stream; }

  /// A stream that we reset: frames of it may still be on their way.
  void we_reset(std::int32_t id) noexcept;
  /// Streams above `last` are ignored from now on (GOAWAY was sent).
  void ignore_above(std::int32_t last) noexcept { ignore_above_ = last; }
  /// Client role: the highest stream that was opened.
  void opened(std::int32_t id) noexcept { last_id_ = id; }
  /// DATA of `n` octets was sent: WINDOW_UPDATE frames in answer to it are welcome, and a PING.
  void sent_data(std::size_t n) noexcept;

  GlitchCounter glitches;

 private:
  static constexpr std::size_t kPreface = 24;
  static constexpr std::size_t kRemembered = 256;

  Verdict check(Streams& streams, Instant now) noexcept;
  Verdict check_old_stream(Streams& streams) noexcept;
  void new_stream() noexcept;
  void count_update(Instant now) noexcept;
  Verdict take_payload(std::span<const std::byte> in, std::size_t& at) noexcept;
  bool was_reset_by_us(std::int32_t id) const noexcept;

  const HttpLimits& limits_;
  FrameHead head_;
  std::array<std::uint8_t, kHead> partial_;
  std::uint8_t partial_size_ = 0;
  std::uint8_t preface_left_;
  const bool server_;
  bool block_open_ = false;
  std::uint64_t frames_ = 0;
  std::uint64_t streams_ = 0;
  std::uint32_t payload_left_ = 0;
  std::uint32_t dependency_ = 0;  // of PRIORITY
  std::uint32_t settings_seen_ = 0;
  std::int64_t updates_allowed_ = 200;  // WINDOW_UPDATE frames before there was any DATA
  std::uint32_t pings_allowed_ = 0;     // one for each DATA frame of ours
  Instant block_since_ = kNever;

  std::int32_t last_id_ = 0;
  std::int32_t gap_from_ = 0, gap_to_ = -1;  // ids that were skipped last: never opened
  std::int32_t ignore_above_ = 0x7fffffff;
  std::unique_ptr<std::array<std::int32_t, kRemembered>> reset_;  // most connections never reset a stream
  std::uint32_t reset_at_ = 0;
  std::int32_t forgotten_up_to_ = 0;  // resets of ours up to here may have been forgotten
};

}  // namespace twp::h2
