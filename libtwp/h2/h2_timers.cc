// What happens because time passes: timeouts of the connection, slow bodies, lost peers.
#include <algorithm>

#include "h2/h2_impl.h"

namespace twp::h2 {
namespace {

constexpr Duration kProbe = std::chrono::seconds(2);  // how often, while a stream waits

}  // namespace

void H2Session::arm() noexcept {
  if (dead_ || closing_) return;
  worker_.arm_at(*this, next_deadline());
}

Instant H2Session::next_deadline() const noexcept {
  // A connection to an origin that idles is its owner's business.
  Instant at = worker_.now() + ns(active_ != 0 || failing_ || goaway_queued_
                                      ? std::min(kProbe, limits_.body_rate_window)
                                      : limits_.keep_alive_timeout);
  const auto sooner = [&](Instant since, Duration after) {
    if (since != kNever) at = std::min(at, since + ns(after));
  };
  if (failing_) {
    sooner(failing_since_, kCloseTimeout);
    return std::max(at, worker_.now());
  }
  if (server() && active_ == 0 && !goaway_queued_) sooner(idle_since_, limits_.keep_alive_timeout);
  if (server()) sooner(ready_ ? kNever : idle_since_, limits_.head_timeout);
  if (guard_.in_header_block()) sooner(guard_.header_block_since(), limits_.head_timeout);
  sooner(settings_sent_, limits_.h2_settings_timeout);
  if (!goaway_queued_) sooner(drain_at_, Duration::zero());
  if (!out_.empty()) sooner(out_since_, limits_.stream_idle_timeout);
  return std::max(at, worker_.now());
}

/// True when a deadline of the whole connection has passed, and the session is ending.
bool H2Session::expired() noexcept {
  const auto due = [&](Instant since, Duration after) {
    return since != kNever && since + ns(after) <= worker_.now();
  };
  if (failing_) {
    if (!due(failing_since_, kCloseTimeout)) return false;
    send_broken_ = true;  // it does not even take a GOAWAY
    close(ending_why_);
  } else if (!out_.empty() && due(out_since_, limits_.stream_idle_timeout)) {
    send_broken_ = true;
    close(Fault::idle_timeout);
  } else if (due(settings_sent_, limits_.h2_settings_timeout)) {
    fail(NGHTTP2_SETTINGS_TIMEOUT, server() ? Fault::client_closed : Fault::origin_timeout);
  } else if ((server() && !ready_ && due(idle_since_, limits_.head_timeout)) ||
             (guard_.in_header_block() && due(guard_.header_block_since(), limits_.head_timeout))) {
    fail(NGHTTP2_ENHANCE_YOUR_CALM, server() ? Fault::head_timeout : Fault::origin_timeout);
  } else if (server() && active_ == 0 && !goaway_queued_ && due(idle_since_, limits_.keep_alive_timeout)) {
    close(Fault::none);
    return true;
  } else {
    return false;
  }
  return true;
}

/// Since the last look; as HTTP/1 measures it. Not of what is no upload but a conversation, which goes at the pace of
/// those who lead it: tunnels, calls of gRPC, whatever has begun to be answered. timeouts.stream_idle bounds them.
bool H2Session::body_too_slow(H2Stream& s, LimitHit& limit) noexcept {
  if (!server() || !s.live() || !s.accepted_ || s.recv_done_ || s.method_ == Method::connect) return false;
  if (s.at_own_pace_ || s.send_state() != SendState::head) return false;
  const Instant elapsed = worker_.now() - s.rate_since_;
  if (elapsed < ns(limits_.body_rate_window)) return false;
  const bool waits = s.expects_continue_ && s.body_octets_ == 0;
  const double rate = static_cast<double>(s.body_octets_ - s.rate_from_) / (static_cast<double>(elapsed) * 1e-9);
  const bool slow = rate < limits_.min_body_rate && !s.starved_ && !waits;
  limit = {"min_body_rate", static_cast<std::uint64_t>(rate), limits_.min_body_rate};
  s.rate_since_ = worker_.now();
  s.rate_from_ = s.body_octets_;
  s.starved_ = s.unconsumed_ >= limits_.stream_window / 2;
  return slow;
}

void H2Session::look_after_streams() noexcept {
  all_.for_each([&](H2Stream& s) {
    if (LimitHit limit; body_too_slow(s, limit)) reject(s, Fault::too_slow, limit);
    if (s.attached_ || s.closed_ || s.reset_queued_ || s.detached_at_ == kNever) return;
    if (s.detached_at_ + ns(limits_.h2_detached_timeout) > worker_.now()) return;
    s.reset_wanted_ = true;
    s.reset_code_ = NGHTTP2_CANCEL;
    dirty(s);
  });
}

void H2Session::on_timer() noexcept {
  if (dead_) return;
  if (closing_) {
    if (!all_.empty()) return;  // over() goes on
    if (out_.size() == closing_left_) {
      send_broken_ = true;
      end_session(closing_why_);
      return;
    }
    closing_left_ = out_.size();
    worker_.arm(*this, kCloseTimeout);
    return;
  }
  if (expired()) return;
  if (drain_at_ != kNever && !goaway_queued_) flush_soon();
  if (active_ != 0) {
    look_after_streams();
    probe();
  }
  arm();
}

}  // namespace twp::h2
