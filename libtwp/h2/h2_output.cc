// What is submitted to nghttp2 and how its frames leave: all of a turn in one write.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "h2/h2_impl.h"

namespace twp::h2 {
namespace {

/// Payload of a DATA frame: with its head it fills one TLS record.
constexpr std::size_t kMostData = 16384 - 9;
constexpr int kRounds = 4;  // of filled output a turn: then others get a turn

}  // namespace

void H2Session::dirty(H2Stream& s) noexcept {
  if (dead_ || closing_ || s.closed_) return;
  if (!s.DirtyHook::linked()) dirty_.push_back(s);
  flush_soon();
}

void H2Session::note_sent(H2Stream& s) noexcept {
  if (!s.has_marks()) return;
  if (!s.SentHook::linked()) sent_.push_back(s);
  flush_soon();
}

/// reset() from outside. A complete response still leaves.
void H2Session::abandon(H2Stream& s, Fault why) noexcept {
  if (dead_) return;
  const std::uint32_t code = info(why).h2_code;
  if (server() && s.end_) {
    s.reset_after_end_ = true;
    s.reset_code_ = why == Fault::early_response ? std::uint32_t{NGHTTP2_NO_ERROR} : code;
  } else {
    // NO_ERROR would say that there was nothing more to come.
    s.reset_wanted_ = true;
    s.reset_code_ = code != 0  ? code
                    : server() ? std::uint32_t{NGHTTP2_INTERNAL_ERROR}
                               : std::uint32_t{NGHTTP2_CANCEL};
  }
  s.detached_at_ = worker_.now();
  if (!s.EndingHook::linked()) ending_.push_back(s);
  dirty(s);
  flush_soon();
}

void H2Session::flush() noexcept {
  if (dead_) return;
  for (int round = 0;; ++round) {
    if (!closing_ && !send_broken_) {
      submit_all();
      pull();
      if (broken_) {
        end_streams(Fault::internal, kAll);
        end_session(Fault::internal);
        return;
      }
    }
    const bool had = !out_.empty();
    if (!write()) break;
    report_sent();
    if (dead_ || !had || send_broken_ || !out_.empty()) break;
    if (dirty_.empty() && (closing_ || nghttp2_session_want_write(ng_) == 0)) break;
    if (round == kRounds) {
      flush_soon();
      break;
    }
  }
  settle();
}

void H2Session::submit_all() noexcept {
  if (connection_credit_ != 0) nghttp2_session_consume_connection(ng_, std::exchange(connection_credit_, 0));
  for (const Reset& r : resets_)  // unless the peer has reset it in the meantime
    if (is_open(r.id)) nghttp2_submit_rst_stream(ng_, NGHTTP2_FLAG_NONE, r.id, r.code);
  resets_.clear();
  while (!dirty_.empty()) submit(dirty_.pop_front());
  continue_drain();
}

void H2Session::submit(H2Stream& s) noexcept {
  if (s.closed_) return;
  if (s.credit_ != 0 && s.id_ != 0) nghttp2_session_consume_stream(ng_, s.id_, std::exchange(s.credit_, 0));
  if (s.reset_wanted_) {
    reset_stream(s, s.reset_code_);
    return;
  }
  while (s.first_ != nullptr && !s.submitted_) {
    const H2Stream::Section& section = *s.first_;
    if (section.kind == H2Stream::Section::Kind::interim) {
      nghttp2_submit_headers(ng_, NGHTTP2_FLAG_NONE, s.id_, nullptr, section.lines.data(),
                             section.lines.size(), nullptr);
      s.answered_ = true;
    } else {
      submit_head(s, section);
      if (!s.submitted_) return;
    }
    s.first_ = section.next;
    if (s.first_ == nullptr) s.last_ = nullptr;
  }
  if (s.data_) {
    if (s.waiting_ && (!s.body_.empty() || s.end_)) {
      s.waiting_ = false;
      nghttp2_session_resume_data(ng_, s.id_);
    }
  }
  if (s.reset_after_end_ && s.local_end_) reset_stream(s, s.reset_code_);
}

void H2Session::submit_head(H2Stream& s, const H2Stream::Section& section) noexcept {
  if (!server() && s.extended_ && !connect_allowed_) {
    if (!ready_) {
      waits_for_settings_ = true;  // RFC 8441 §3: not before the peer has said that it may come
      return;
    }
    s.go(Fault::origin_no_tunnel);
    s.closed_ = true;
    if (!s.EndingHook::linked()) ending_.push_back(s);
    return;
  }
  nghttp2_data_provider2 body;
  body.source.ptr = &s;
  body.read_callback = kRead;
  const bool trailers_only = section.next != nullptr && s.body_.empty();
  const bool has_data = !s.end_ || !s.body_.empty() || section.next != nullptr;
  if (server()) {
    if (trailers_only) {
      nghttp2_submit_headers(ng_, NGHTTP2_FLAG_NONE, s.id_, nullptr, section.lines.data(),
                             section.lines.size(), nullptr);
      s.trailers_due_ = true;
      due_.push_back(&s);
    } else {
      nghttp2_submit_response2(ng_, s.id_, section.lines.data(), section.lines.size(),
                               has_data ? &body : nullptr);
      s.data_ = has_data;
    }
    s.answered_ = true;
  } else {
    const std::int32_t id = nghttp2_submit_request2(ng_, nullptr, section.lines.data(), section.lines.size(),
                                                    has_data ? &body : nullptr, &s);
    if (id < 0) {
      // No ids are left, or a GOAWAY has come since open(): nothing of it was sent.
      s.go(Fault::origin_refused_stream);
      s.closed_ = true;
      capacity_changed_ = true;
      if (!s.EndingHook::linked()) ending_.push_back(s);
      return;
    }
    s.id_ = id;
    s.data_ = has_data;
    guard_.opened(id);
  }
  s.submitted_ = true;
}

void H2Session::reset_stream(H2Stream& s, std::uint32_t code) noexcept {
  if (std::exchange(s.reset_queued_, true)) return;
  s.reset_wanted_ = s.reset_after_end_ = false;
  s.body_.clear();
  if (s.id_ == 0) {
    s.closed_ = true;  // the peer never heard of it
    return;
  }
  guard_.we_reset(s.id_);
  nghttp2_submit_rst_stream(ng_, NGHTTP2_FLAG_NONE, s.id_, code);
}

/// What can be submitted only now that frames before it are out. True when something was.
bool H2Session::submit_due() noexcept {
  bool any = false;
  for (std::size_t i = 0; i < due_.size(); ++i) {
    H2Stream& s = *due_[i];
    if (s.closed_) continue;
    if (std::exchange(s.trailers_due_, false) && s.first_ != nullptr) {
      nghttp2_submit_trailer(ng_, s.id_, s.first_->lines.data(), s.first_->lines.size());
      s.first_ = s.last_ = nullptr;
      any = true;
    } else if (s.reset_wanted_ || s.reset_after_end_) {
      reset_stream(s, s.reset_code_);
      any = true;
    }
  }
  due_.clear();
  return any;
}

void H2Session::pull() noexcept {
  while (out_.size() < kMostOutput) {
    const std::uint8_t* data = nullptr;
    const nghttp2_ssize n = nghttp2_session_mem_send2(ng_, &data);
    if (n < 0) {
      broken_ = true;  // no memory: there is no way to go on
      return;
    }
    if (n == 0) {
      if (out_.size() < kMostOutput && submit_due()) continue;
      break;
    }
    out_.append_copy(std::span(reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(n)));
  }
  if (!failing_ && guard_.glitches.over(limits_)) {
    flooded();
    pull();
  }
}

nghttp2_ssize H2Session::read_body(H2Stream& s, std::size_t most, std::uint32_t& flags) noexcept {
  const std::size_t n = std::min({most, kMostData, s.body_.size()});
  if (n == 0 && !s.end_) {
    s.waiting_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (n != s.body_.size() || !s.end_) return static_cast<nghttp2_ssize>(n);
  flags |= NGHTTP2_DATA_FLAG_EOF;
  s.data_ = false;
  if (s.first_ != nullptr) {
    flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    s.trailers_due_ = true;
    due_.push_back(&s);
  }
  return static_cast<nghttp2_ssize>(n);
}

/// Nobody waits for `s` any more, but it moves: it has more time, when its peer takes it at a pace that is put up with.
void H2Session::stay_detached(H2Stream& s, std::size_t n) noexcept {
  s.trickle_ += n;
  const double seconds = std::chrono::duration<double>(limits_.h2_detached_timeout).count();
  if (static_cast<double>(s.trickle_) < limits_.min_body_rate * seconds) return;
  s.trickle_ = 0;
  s.detached_at_ = worker_.now();
}

void H2Session::put_data(H2Stream& s, const std::uint8_t* head, std::size_t n) noexcept {
  const auto header = std::as_bytes(std::span(head, FrameGuard::kHead));
  std::size_t left = n;
  bool headed = false;
  while (left != 0) {
    Slice piece = s.body_.take_front(left);
    left -= piece.size();
    if (!std::exchange(headed, true) && !(piece.size() > kCopyBelow && piece.prepend(header)))
      out_.append_copy(header);
    out_.append(std::move(piece));
  }
  if (!headed) out_.append_copy(header);
  guard_.sent_data(n);
  if (s.detached_at_ != kNever) stay_detached(s, n);
  if (n == 0) return;
  s.mark(output_end(), n);
  if (!s.SentHook::linked()) sent_.push_back(s);
}

void H2Session::frame_sent(const nghttp2_frame& frame) noexcept {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
      H2Stream* s = stream(frame.hd.stream_id);
      if (s == nullptr) return;
      s->local_end_ = true;
      s->end_at_ = output_end();
      if (!s->remote_end_ && server() && s->tunnel_refused_ && !s->reset_after_end_) {
        s->reset_after_end_ = true;
        s->reset_code_ = NGHTTP2_NO_ERROR;
      }
      if (s->reset_after_end_ && !s->remote_end_) due_.push_back(s);
      return;
    }
    case NGHTTP2_RST_STREAM: {
      guard_.we_reset(frame.hd.stream_id);
      H2Stream* s = stream(frame.hd.stream_id);
      if (s != nullptr) s->reset_by_us_ = true;
      // Resets that the peer made us send cost as much as those it sends itself.
      const std::uint32_t code = frame.rst_stream.error_code;
      if (code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR ||
          code == NGHTTP2_STREAM_CLOSED || code == NGHTTP2_FRAME_SIZE_ERROR)
        guard_.glitches.add(GlitchCounter::kWhole, worker_.now(), limits_);
      return;
    }
    case NGHTTP2_GOAWAY: goaway_sent(frame.goaway); return;
    default: return;
  }
}

void H2Session::goaway_sent(const nghttp2_goaway& frame) noexcept {
  if (frame.last_stream_id != 0x7fffffff) guard_.ignore_above(frame.last_stream_id);
  const std::uint32_t code = frame.error_code;
  if (code == NGHTTP2_NO_ERROR) return;
  if (ending_why_ == Fault::none) ending_why_ = server() ? Fault::bad_request : Fault::origin_bad_framing;
  if (code == NGHTTP2_INTERNAL_ERROR || code == NGHTTP2_ENHANCE_YOUR_CALM || code == NGHTTP2_CANCEL) return;
  const std::string_view why(reinterpret_cast<const char*>(frame.opaque_data), frame.opaque_data_len);
  log_limited(LogLevel::warning, "HTTP/2 connection of " + peer().remote.text() +
                                     " closed: " + nghttp2_http2_strerror(code) +
                                     (why.empty() ? "" : ": " + std::string(why)));
}

/// False when the session is over.
bool H2Session::write() noexcept {
  if (out_.empty()) return true;
  const IoResult r = transport_->write(out_);
  if (r.status == IoStatus::error) {
    // The peer takes no more. It may have said why before it went: read that first.
    out_sent_ += out_.size();
    out_.clear();
    if (std::exchange(send_broken_, true) || closing_ || eof_) {
      handle_read_error(r.fault);
      return false;
    }
    read_soon();
    return true;
  }
  out_sent_ += r.n;
  if (out_.empty())
    out_since_ = kNever;
  else if (r.n != 0 || out_since_ == kNever)
    out_since_ = worker_.now();
  return true;
}

void H2Session::report_sent() noexcept {
  // The streams that can report now; what they are given in return may put them on the list again.
  IList<H2Stream, SentTag> some;
  some.splice_back(sent_);
  while (!some.empty()) {
    H2Stream& s = some.pop_front();
    const std::uint64_t n = s.take_sent(out_sent_);
    if (s.has_marks()) sent_.push_back(s);
    if (n != 0 && s.live()) s.events().on_sent(s, static_cast<std::size_t>(n));
    if (dead_) return;
  }
}

}  // namespace twp::h2
