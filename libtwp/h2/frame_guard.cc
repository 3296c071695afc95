#include "h2/frame_guard.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>

namespace twp::h2 {
namespace {

constexpr std::uint32_t kFreeSettings = 4;        // frames of a peer that tunes itself
constexpr std::uint32_t kSmallContinuation = 64;  // octets
constexpr std::int64_t kMostUpdates = 1 << 20;
constexpr std::int64_t kUpdatesPerFrame = 4;
constexpr std::uint32_t kMostPings = 1024;
constexpr std::size_t kOctetsPerUpdate = 512;

}  // namespace

FrameGuard::Verdict FrameGuard::look(std::span<const std::byte> in, std::size_t& at, Streams& streams,
                                     Instant now) noexcept {
  if (preface_left_ != 0) {
    const std::size_t n = std::min<std::size_t>(preface_left_, in.size() - at);
    preface_left_ -= static_cast<std::uint8_t>(n);
    at += n;
    return Verdict::pass;
  }
  if (payload_left_ != 0) return take_payload(in, at);
  while (partial_size_ < kHead && at < in.size())
    partial_[partial_size_++] = static_cast<std::uint8_t>(in[at++]);
  if (partial_size_ < kHead) return Verdict::pass;
  partial_size_ = 0;
  ++frames_;
  const auto& p = partial_;
  head_.length = std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | p[2];
  head_.type = p[3];
  head_.flags = p[4];
  head_.stream = static_cast<std::int32_t>((std::uint32_t{p[5]} & 0x7f) << 24 | std::uint32_t{p[6]} << 16 |
                                           std::uint32_t{p[7]} << 8 | p[8]);
  payload_left_ = head_.length;
  dependency_ = 0;
  const Verdict v = check(streams, now);
  if (payload_left_ == 0 && (head_.flags & NGHTTP2_FLAG_END_HEADERS) != 0 &&
      (head_.type == NGHTTP2_HEADERS || head_.type == NGHTTP2_CONTINUATION))
    block_open_ = false;
  return v;
}

FrameGuard::Verdict FrameGuard::take_payload(std::span<const std::byte> in, std::size_t& at) noexcept {
  const std::size_t n = std::min<std::size_t>(payload_left_, in.size() - at);
  if (head_.type == NGHTTP2_PRIORITY)
    for (std::size_t i = 0; i < n && payload_seen() + i < 4; ++i)
      dependency_ = dependency_ << 8 | static_cast<std::uint8_t>(in[at + i]);
  payload_left_ -= static_cast<std::uint32_t>(n);
  at += n;
  if (payload_left_ != 0) return Verdict::pass;
  if (head_.type == NGHTTP2_HEADERS || head_.type == NGHTTP2_CONTINUATION)
    block_open_ &= (head_.flags & NGHTTP2_FLAG_END_HEADERS) == 0;
  // RFC 9113 leaves priorities to others, but a stream that depends on itself is a defect (RFC 7540 §5.3.1).
  if (head_.type == NGHTTP2_PRIORITY && head_.length == 5 &&
      (dependency_ & 0x7fffffff) == static_cast<std::uint32_t>(head_.stream))
    return Verdict::protocol_error;
  return Verdict::pass;
}

FrameGuard::Verdict FrameGuard::check(Streams& streams, Instant now) noexcept {
  const auto count = [&](std::uint32_t quarters) { glitches.add(quarters, now, limits_); };
  switch (head_.type) {
    case NGHTTP2_DATA:
      if (head_.length == 0 && (head_.flags & NGHTTP2_FLAG_END_STREAM) == 0) count(GlitchCounter::kWhole);
      return check_old_stream(streams);
    case NGHTTP2_HEADERS:
      if ((head_.flags & NGHTTP2_FLAG_END_HEADERS) == 0 || head_.length != 0) {
        if (!block_open_) block_since_ = now;
        block_open_ = true;
      }
      if (server_ && head_.stream > last_id_) {
        new_stream();
        return Verdict::pass;
      }
      return check_old_stream(streams);
    case NGHTTP2_PRIORITY:
      count(GlitchCounter::kQuarter);
      return head_.stream == 0 ? Verdict::protocol_error : Verdict::pass;
    case NGHTTP2_RST_STREAM:
      streams.catch_up();
      // An origin that resets costs us nothing but the answer.
      count(!server_ || streams.is_fairly_cancelled(head_.stream) ? GlitchCounter::kQuarter
                                                                  : GlitchCounter::kWhole);
      return Verdict::pass;
    case NGHTTP2_SETTINGS:
      if ((head_.flags & NGHTTP2_FLAG_ACK) == 0 && ++settings_seen_ > kFreeSettings)
        count(GlitchCounter::kWhole);
      return Verdict::pass;
    case NGHTTP2_PING:
      if (pings_allowed_ > 0)
        --pings_allowed_;
      else
        count(GlitchCounter::kQuarter);
      return Verdict::pass;
    case NGHTTP2_WINDOW_UPDATE: count_update(now); return Verdict::pass;
    case NGHTTP2_CONTINUATION:
      if (head_.length < kSmallContinuation)
        count(head_.length == 0 ? GlitchCounter::kWhole : GlitchCounter::kQuarter);
      return Verdict::pass;
    case NGHTTP2_GOAWAY: count(GlitchCounter::kQuarter); return Verdict::pass;
    default: count(GlitchCounter::kQuarter); return Verdict::pass;
  }
}

void FrameGuard::new_stream() noexcept {
  if (head_.stream % 2 == 0) return;  // nghttp2 refuses it
  if (head_.stream > last_id_ + 2) {
    gap_from_ = last_id_ + 1;
    gap_to_ = head_.stream - 1;
  }
  last_id_ = head_.stream;
  ++streams_;
}

/// DATA, or HEADERS that begin no stream. RFC 9113 §5.1: on a stream that is closed because the peer ended or reset
/// it they are an error; on one that we reset they may have crossed our RST_STREAM.
FrameGuard::Verdict FrameGuard::check_old_stream(Streams& streams) noexcept {
  const std::int32_t id = head_.stream;
  if (id == 0 || id % 2 == 0 || id > last_id_ || id > ignore_above_)
    return Verdict::pass;  // nghttp2's business
  streams.catch_up();
  if (streams.is_open(id) || id <= forgotten_up_to_ || was_reset_by_us(id)) return Verdict::pass;
  const bool never_opened = id >= gap_from_ && id <= gap_to_;
  return never_opened ? Verdict::protocol_error : Verdict::stream_closed;
}

void FrameGuard::count_update(Instant now) noexcept {
  if (updates_allowed_ > 0)
    --updates_allowed_;
  else
    glitches.add(GlitchCounter::kQuarter, now, limits_);
}

void FrameGuard::sent_data(std::size_t n) noexcept {
  updates_allowed_ = std::min(
      updates_allowed_ + kUpdatesPerFrame + static_cast<std::int64_t>(n / kOctetsPerUpdate), kMostUpdates);
  // Receivers measure the way with a PING for each DATA frame that finds none under way: gRPC does it all the time.
  if (n != 0) pings_allowed_ = std::min(pings_allowed_ + 1, kMostPings);
}

void FrameGuard::we_reset(std::int32_t id) noexcept {
  if (reset_ == nullptr) reset_ = std::make_unique<std::array<std::int32_t, kRemembered>>();
  std::int32_t& slot = (*reset_)[reset_at_++ % kRemembered];
  forgotten_up_to_ = std::max(forgotten_up_to_, slot);
  slot = id;
}

bool FrameGuard::was_reset_by_us(std::int32_t id) const noexcept {
  return reset_ != nullptr && std::ranges::find(*reset_, id) != reset_->end();
}

}  // namespace twp::h2
