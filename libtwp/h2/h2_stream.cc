#include "h2/h2_stream.h"

#include <utility>

#include "h2/h2_impl.h"

namespace twp::h2 {

Session& H2Stream::session() const noexcept { return session_; }

void H2Stream::queue(Section::Kind kind, EncodedFields lines) noexcept {
  auto* s = static_cast<Section*>(arena_.allocate(sizeof(Section)));
  *s = {nullptr, lines, kind};
  if (last_ == nullptr)
    first_ = s;
  else
    last_->next = s;
  last_ = s;
}

void H2Stream::do_send_head(const Head& head, End end) {
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
    tunnel_refused_ = method_ == Method::connect && !ok;
    no_body_ = response_has_no_body(method_, head.status);
    exact_ = !no_body_ && !tunnel && head.body.is_exact();
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
bool H2Stream::length_fits(std::size_t n, End end) noexcept {
  if (!exact_) return true;
  if (n > send_left_ || (end == End::yes && n != send_left_)) return false;
  send_left_ -= n;
  return true;
}

void H2Stream::do_send_body(Slice body, End end) {
  if (going_) return;
  if (no_body_ || closed_) {
    // Nobody will see these octets; their sender still gets its credit back.
    dropped_ += body.size();
    session_.note_sent(*this);
    return;
  }
  if (!length_fits(body.size(), end)) {
    reset(Fault::internal);
    return;
  }
  body_.append(std::move(body));
  if (end == End::yes) end_ = true;
  session_.dirty(*this);
}

void H2Stream::do_send_trailers(const HeaderBlock& trailers) {
  if (going_ || no_body_) return;
  if (!length_fits(0, End::yes)) {
    reset(Fault::internal);
    return;
  }
  end_ = true;
  // CONNECT has no trailers: it just ends (RFC 9113 §8.5).
  if (method_ != Method::connect && !trailers.empty())
    queue(Section::Kind::trailers, encode_trailers(trailers, arena_));
  session_.dirty(*this);
}

void H2Stream::do_consume(std::size_t n) noexcept {
  unconsumed_ -= n < unconsumed_ ? n : unconsumed_;
  if (closed_ || remote_end_) return;
  credit_ += n;
  session_.dirty(*this);
}

void H2Stream::do_reset(Fault why) {
  go(why);
  session_.abandon(*this, why);
}

void H2Stream::mark(std::uint64_t end, std::uint64_t n) noexcept {
  if (mark_count_ == kMarks) {
    // Coarser, never early: the newest mark takes the new octets in.
    Mark& newest = marks_[(mark_head_ + mark_count_ - 1u) % kMarks];
    newest.end = end;
    newest.n += n;
    return;
  }
  marks_[(mark_head_ + mark_count_) % kMarks] = {end, n};
  ++mark_count_;
}

std::uint64_t H2Stream::take_sent(std::uint64_t sent) noexcept {
  std::uint64_t n = std::exchange(dropped_, 0);
  while (mark_count_ != 0 && marks_[mark_head_].end <= sent) {
    n += marks_[mark_head_].n;
    mark_head_ = static_cast<std::uint8_t>((mark_head_ + 1u) % kMarks);
    --mark_count_;
  }
  return n;
}

}  // namespace twp::h2
