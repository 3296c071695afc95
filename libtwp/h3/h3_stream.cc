#include "h3/h3_stream.h"

#include <utility>

#include "h3/h3_impl.h"

namespace twp::h3 {

void SentBody::acked(std::size_t n) noexcept {
  while (n != 0 && head_ < slices_.size()) {
    const std::size_t part = std::min(n, slices_[head_].size() - head_acked_);
    n -= part;
    head_acked_ += part;
    if (head_acked_ < slices_[head_].size()) break;
    slices_[head_] = Slice();
    head_acked_ = 0;
    ++head_;
  }
  // Moved up now and then, so that a long body does not leave a long row of empty slices.
  constexpr std::size_t kEmpty = 32;
  if (head_ < kEmpty && head_ != slices_.size()) return;
  slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(head_));
  at_ -= head_;
  head_ = 0;
}

Session& H3Stream::session() const noexcept { return session_; }

void H3Stream::queue(Section::Kind kind, EncodedFields lines) noexcept {
  auto* s = static_cast<Section*>(arena_.allocate(sizeof(Section)));
  *s = {nullptr, lines, kind};
  if (last_ == nullptr)
    first_ = s;
  else
    last_->next = s;
  last_ = s;
}

void H3Stream::do_send_head(const Head& head, End end) {
  if (going_) return;
  if (head.is_interim()) {
    if (head.status == 100) expects_continue_ = false;
    queue(Section::Kind::interim, encode_head(head, arena_));
    session_.dirty(*this);
    return;
  }
  if (head.is_request()) {
    method_ = head.method;
    extended_ = head.is_connect() && !head.protocol.empty();
    exact_ = !head.is_connect() && head.body.is_exact();
  } else {
    status_ = head.status;
    const bool ok = head.status / 100 == 2;
    const bool tunnel = method_ == Method::connect && ok;
    no_body_ = response_has_no_body(method_, head.status);
    exact_ = !no_body_ && !tunnel && head.body.is_exact();
    tunnel_refused_ = method_ == Method::connect && !ok;
    if (tunnel_refused_) stop_after_end_ = true;
  }
  send_left_ = exact_ ? head.body.n : 0;
  if (end == End::yes && send_left_ != 0) {
    reset(Fault::internal);  // announces octets that will never come
    return;
  }
  end_ = end == End::yes || no_body_;
  queue(Section::Kind::head, encode_head(head, arena_));
  session_.dirty(*this);
}

/// More or fewer octets than announced would make the peer take the message for a malformed one.
bool H3Stream::length_fits(std::size_t n, End end) noexcept {
  if (!exact_) return true;
  if (n > send_left_ || (end == End::yes && n != send_left_)) return false;
  send_left_ -= n;
  return true;
}

void H3Stream::do_send_body(Slice body, End end) {
  if (going_) return;
  if (no_body_ || closed_ || stopped_) {
    // Nobody will see these octets; their sender still gets its credit back.
    left_ += body.size();
    session_.note_sent(*this);
    return;
  }
  if (!length_fits(body.size(), end)) {
    reset(Fault::internal);
    return;
  }
  if (!has_unsent()) moved_at_ = session_.now();
  body_.append(std::move(body));
  if (end == End::yes) end_ = true;
  session_.dirty(*this);
}

void H3Stream::do_send_trailers(const HeaderBlock& trailers) {
  if (going_ || no_body_) return;
  if (!length_fits(0, End::yes)) {
    reset(Fault::internal);
    return;
  }
  end_ = true;
  // CONNECT has no trailers: it just ends (RFC 9114 §4.4).
  if (method_ != Method::connect && !trailers.empty())
    queue(Section::Kind::trailers, encode_trailers(trailers, arena_));
  session_.dirty(*this);
}

void H3Stream::do_consume(std::size_t n) noexcept {
  unconsumed_ -= n < unconsumed_ ? n : unconsumed_;
  if (closed_ || remote_end_ || remote_reset_) return;
  credit_ += n;
  session_.dirty(*this);
}

void H3Stream::do_reset(Fault why) {
  go(why);
  session_.abandon(*this, why);
}

}  // namespace twp::h3
