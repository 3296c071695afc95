// What is submitted to nghttp3, and how it leaves.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "h3/h3_impl.h"

namespace twp::h3 {
namespace {

/// Body octets that nghttp3 is given at a time: a DATA frame. What it was given cannot be taken back.
constexpr std::size_t kMostData = 64 * 1024;

static_assert(sizeof(iovec) == sizeof(nghttp3_vec) &&
              offsetof(iovec, iov_base) == offsetof(nghttp3_vec, base) &&
              offsetof(iovec, iov_len) == offsetof(nghttp3_vec, len));

}  // namespace

void H3Session::dirty(H3Stream& s) noexcept {
  if (dead_ || s.closed_) return;
  if (!s.DirtyHook::linked()) dirty_.push_back(s);
  flush_soon();
}

void H3Session::note_sent(H3Stream& s) noexcept {
  if (s.left_ == 0) return;
  if (!s.SentHook::linked()) sent_.push_back(s);
  flush_soon();
}

/// reset() from outside. A complete response still leaves.
void H3Session::abandon(H3Stream& s, Fault why) noexcept {
  if (dead_) return;
  const std::uint64_t code = info(why).h3_code;
  if (server() && s.end_ && !s.stopped_) {
    s.stop_after_end_ = true;
    if (s.local_end_) due_.push_back(&s);
  } else {
    s.reset_wanted_ = true;
    // NO_ERROR would say that there was nothing more to come.
    s.reset_code_ = code != NGHTTP3_H3_NO_ERROR ? code
                    : server()                  ? NGHTTP3_H3_INTERNAL_ERROR
                                                : NGHTTP3_H3_REQUEST_CANCELLED;
  }
  may_be_over(s);
  dirty(s);
  flush_soon();
}

void H3Session::on_flush() noexcept {
  if (dead_ || ng_ == nullptr) return;
  while (!dirty_.empty()) submit(dirty_.pop_front());
  continue_drain();
}

void H3Session::submit(H3Stream& s) noexcept {
  if (s.closed_) return;
  if (s.credit_ != 0 && s.id_ >= 0) conn_->credit(s.id_, std::exchange(s.credit_, 0));
  if (s.reset_wanted_) {
    reset_stream(s, s.reset_code_);
    return;
  }
  if (s.stopped_) return;
  while (s.first_ != nullptr && !s.submitted_) {
    const H3Stream::Section& section = *s.first_;
    if (section.kind == H3Stream::Section::Kind::interim) {
      nghttp3_conn_submit_info(ng_, s.id_, section.lines.data(), section.lines.size());
      s.answered_ = true;
    } else if (!submit_head(s, section)) {
      return;
    }
    s.first_ = section.next;
    if (s.first_ == nullptr) s.last_ = nullptr;
  }
  if (s.data_ && s.waiting_ && (!s.body_.empty() || s.end_)) {
    s.waiting_ = false;
    nghttp3_conn_resume_stream(ng_, s.id_);
  }
}

bool H3Session::submit_head(H3Stream& s, const H3Stream::Section& section) noexcept {
  if (!server() && s.extended_ && !connect_allowed_) {
    // RFC 9220 §3: not before the peer has said that it may come.
    if (settings_here_) refuse_unsent(s, Fault::origin_no_tunnel);
    return false;
  }
  const bool has_data = !s.end_ || !s.body_.empty() || section.next != nullptr;
  const nghttp3_data_reader* body = has_data ? &kReader : nullptr;
  if (server()) {
    if (nghttp3_conn_submit_response(ng_, s.id_, section.lines.data(), section.lines.size(), body) != 0) {
      s.reset_wanted_ = true;
      s.reset_code_ = NGHTTP3_H3_INTERNAL_ERROR;
      reset_stream(s, s.reset_code_);
      return false;
    }
    s.answered_ = true;
  } else if (!open_request(s, section, body)) {
    return false;
  }
  s.data_ = has_data;
  s.submitted_ = true;
  return true;
}

bool H3Session::open_request(H3Stream& s, const H3Stream::Section& section,
                             const nghttp3_data_reader* body) noexcept {
  const std::int64_t id = draining_ ? -1 : conn_->open_stream(true);
  if (id < 0) {
    refuse_unsent(s, Fault::origin_refused_stream);  // a GOAWAY has come since open(): nothing of it was sent
    return false;
  }
  s.id_ = id;
  --unopened_;
  table_.insert(s);
  if (nghttp3_conn_submit_request(ng_, id, section.lines.data(), section.lines.size(), body, &s) == 0)
    return true;
  s.go(Fault::internal);
  reset_stream(s, NGHTTP3_H3_INTERNAL_ERROR);
  return false;
}

void H3Session::refuse_unsent(H3Stream& s, Fault why) noexcept {
  s.go(why);
  s.closed_ = true;
  capacity_changed_ = true;
  drop_unsent(s);
  may_be_over(s);
}

/// Both directions: our octets end here, and the peer's are not wanted.
void H3Session::reset_stream(H3Stream& s, std::uint64_t code) noexcept {
  s.reset_wanted_ = s.stop_after_end_ = false;
  if (std::exchange(s.reset_by_us_, true)) return;
  if (s.id_ < 0) {
    s.closed_ = true;  // the peer never heard of it
    drop_unsent(s);
    may_be_over(s);
    return;
  }
  nghttp3_conn_shutdown_stream_write(ng_, s.id_);
  nghttp3_conn_shutdown_stream_read(ng_, s.id_);
  if (!s.local_end_) conn_->reset_stream(s.id_, code);
  if (!s.remote_end_ && !s.remote_reset_) conn_->stop_sending(s.id_, code);
  s.stopped_ = true;
  drop_unsent(s);
}

/// What nobody will see of the body. Its sender hears that it has left.
void H3Session::drop_unsent(H3Stream& s) noexcept {
  s.left_ += s.body_.size();
  s.body_.clear();
  s.first_ = s.last_ = nullptr;
  s.data_ = false;
  note_sent(s);
}

// --- from inside the flush --------------------------------------------------------------------------

QuicOutput::Piece H3Session::next() noexcept {
  if (ng_ == nullptr || dead_ || failing_ || write_error_ != 0) return {};
  std::int64_t id = -1;
  int fin = 0;
  const nghttp3_ssize n =
      nghttp3_conn_writev_stream(ng_, &id, &fin, reinterpret_cast<nghttp3_vec*>(piece_), kMostPieces);
  if (n < 0) {
    write_error_ = static_cast<int>(n);
    return {};
  }
  pieces_ = static_cast<std::size_t>(n);
  piece_fin_ = fin != 0;
  return {id, std::span<const iovec>(piece_, pieces_), piece_fin_};
}

nghttp3_ssize H3Session::read_body(H3Stream& s, nghttp3_vec* into, std::size_t most,
                                   std::uint32_t& flags) noexcept {
  std::size_t n = 0, octets = 0;
  while (n < most && octets < kMostData && !s.body_.empty()) {
    const std::span<const std::byte> piece = s.sent_.give(s.body_.take_front(kMostData - octets));
    into[n++] = {reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(piece.data())), piece.size()};
    octets += piece.size();
  }
  if (n == 0 && !s.end_) {
    s.waiting_ = true;
    return NGHTTP3_ERR_WOULDBLOCK;
  }
  if (!s.body_.empty() || !s.end_) return static_cast<nghttp3_ssize>(n);
  flags |= NGHTTP3_DATA_FLAG_EOF;
  s.data_ = false;
  if (s.first_ != nullptr) {
    flags |= NGHTTP3_DATA_FLAG_NO_END_STREAM;
    nghttp3_conn_submit_trailers(ng_, s.id_, s.first_->lines.data(), s.first_->lines.size());
    s.first_ = s.last_ = nullptr;
  }
  return static_cast<nghttp3_ssize>(n);
}

/// nghttp3 does not say which of the octets are a body's: those at the place where the next one is.
void H3Session::wrote(std::int64_t id, std::size_t n) noexcept {
  nghttp3_conn_add_write_offset(ng_, id, n);
  H3Stream* s = table_.find(id);
  if (s == nullptr) return;  // control or QPACK
  std::size_t left = n, total = 0;
  for (const iovec& v : std::span<const iovec>(piece_, pieces_)) {
    total += v.iov_len;
    const std::size_t part = std::min(left, v.iov_len);
    left -= part;
    if (part == 0 || v.iov_base != s->sent_.next()) continue;
    s->sent_.wrote(part);
    s->left_ += part;
  }
  s->moved_at_ = now();
  if (s->left_ != 0 && !s->SentHook::linked()) sent_.push_back(*s);
  if (!piece_fin_ || n != total) return;
  s->local_end_ = true;
  if (s->stop_after_end_) due_.push_back(s);
  may_be_over(*s);
}

void H3Session::blocked(std::int64_t id) noexcept { nghttp3_conn_block_stream(ng_, id); }

void H3Session::unblocked(std::int64_t id) noexcept {
  if (ng_ != nullptr) nghttp3_conn_unblock_stream(ng_, id);
}

void H3Session::stopped(std::int64_t id) noexcept {
  nghttp3_conn_shutdown_stream_write(ng_, id);
  H3Stream* s = table_.find(id);
  if (s == nullptr || std::exchange(s->stopped_, true)) return;
  due_.push_back(s);
}

void H3Session::acked(std::int64_t id, std::uint64_t n) noexcept {
  if (ng_ != nullptr && !dead_) nghttp3_conn_add_ack_offset(ng_, id, n);
}

// --- when it is over --------------------------------------------------------------------------------

void H3Session::on_flushed() noexcept {
  if (dead_) return;
  if (write_error_ != 0) {
    fail(NGHTTP3_H3_INTERNAL_ERROR, Fault::internal);
    return;
  }
  handle_stopped();
  report_sent();
  settle();
}

void H3Session::handle_stopped() noexcept {
  for (std::size_t i = 0; i < due_.size(); ++i) {
    H3Stream& s = *due_[i];
    if (s.closed_) continue;
    if (s.local_end_) {
      if (!std::exchange(s.stop_after_end_, false) || s.remote_end_ || s.remote_reset_) continue;
      // RFC 9114 §4.1: the whole response is out, the rest of the request is not needed.
      s.asked_to_stop_ = true;
      nghttp3_conn_shutdown_stream_read(ng_, s.id_);
      conn_->stop_sending(s.id_, NGHTTP3_H3_NO_ERROR);
      flush_soon();
      continue;
    }
    // The peer wants no more of what we send. A client may still want the answer to what it has got.
    drop_unsent(s);
    if (!server() || s.going_) continue;
    count_cancel(s);
    if (failing_ || dead_) return;
    s.go(Fault::client_reset);
    s.reset_wanted_ = true;
    s.reset_code_ = NGHTTP3_H3_REQUEST_CANCELLED;
    dirty(s);
    may_be_over(s);
  }
  due_.clear();
}

void H3Session::report_sent() noexcept {
  // The streams that can report now; what they are given in return may put them on the list again.
  IList<H3Stream, SentTag> some;
  some.splice_back(sent_);
  while (!some.empty()) {
    H3Stream& s = some.pop_front();
    const std::size_t n = std::exchange(s.left_, 0);
    if (n != 0 && s.live()) s.events().on_sent(s, n);
    if (dead_) return;
  }
}

}  // namespace twp::h3
