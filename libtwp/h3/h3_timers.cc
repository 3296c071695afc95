// What happens because time passes. Lost peers and idle connections without requests are QUIC's business as well.
#include <algorithm>

#include "h3/h3_impl.h"

namespace twp::h3 {
namespace {

constexpr Duration kLook = std::chrono::seconds(2);  // how often, while a stream is open

}  // namespace

void H3Session::arm() noexcept {
  if (!dead_) conn_->arm_timer(*this, next_deadline());
}

Instant H3Session::next_deadline() const noexcept {
  Instant at = now() + ns(active_ != 0 ? std::min({kLook, limits_.body_rate_window, limits_.head_timeout})
                                       : limits_.keep_alive_timeout);
  if (server() && active_ == 0 && !goaway_queued_)
    at = std::min(at, idle_since_ + ns(limits_.keep_alive_timeout));
  if (drain_at_ != kNever && !goaway_queued_) at = std::min(at, drain_at_);
  return std::max(at, now());
}

/// Since the last look; as HTTP/1 measures it, and as HTTP/2 not of conversations.
bool H3Session::body_too_slow(H3Stream& s, LimitHit& limit) noexcept {
  if (!server() || !s.live() || !s.accepted_ || s.recv_done_ || s.method_ == Method::connect) return false;
  if (s.at_own_pace_ || s.send_state() != SendState::head) return false;
  const Instant elapsed = now() - s.rate_since_;
  if (elapsed < ns(limits_.body_rate_window)) return false;
  const bool waits = s.expects_continue_ && s.body_octets_ == 0;
  const double rate = static_cast<double>(s.body_octets_ - s.rate_from_) / (static_cast<double>(elapsed) * 1e-9);
  const bool slow = rate < limits_.min_body_rate && !s.starved_ && !waits;
  limit = {"min_body_rate", static_cast<std::uint64_t>(rate), limits_.min_body_rate};
  s.rate_since_ = now();
  s.rate_from_ = s.body_octets_;
  s.starved_ = s.unconsumed_ >= limits_.stream_window / 2;
  return slow;
}

void H3Session::look_after_streams() noexcept {
  const Instant at = now();
  all_.for_each([&](H3Stream& s) {
    if (s.closed_ || s.reset_by_us_) return;
    if (server() && !s.head_taken_ && !s.refused_ && s.born_ + ns(limits_.head_timeout) <= at)
      reject(s, Fault::head_timeout, {});
    else if (LimitHit limit; body_too_slow(s, limit))
      reject(s, Fault::too_slow, limit);
    else if (s.has_unsent() && s.moved_at_ != kNever && s.moved_at_ + ns(limits_.stream_idle_timeout) <= at) {
      // The peer lives and opens no window.
      s.go(Fault::idle_timeout);
      s.reset_wanted_ = true;
      s.reset_code_ = NGHTTP3_H3_REQUEST_CANCELLED;
      dirty(s);
      may_be_over(s);
    }
  });
}

void H3Session::on_timer() noexcept {
  if (dead_) return;
  if (server() && opened_ && active_ == 0 && !goaway_queued_ &&
      idle_since_ + ns(limits_.keep_alive_timeout) <= now()) {
    close(Fault::none);
    return;
  }
  if (active_ != 0) look_after_streams();
  if (drain_at_ != kNever) flush_soon();
  arm();
}

}  // namespace twp::h3
