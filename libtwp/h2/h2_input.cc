// Heads, bodies and the rest of what the peer sends, as nghttp2 reports it.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "h2/h2_impl.h"

namespace twp::h2 {

void H2Session::begin_section(const nghttp2_frame& frame) noexcept {
  const std::int32_t id = frame.hd.stream_id;
  if (server() && frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    if (id >= kLateId) drain();
    if (active_ >= limits_.h2_max_streams) {
      // Reset streams count until the exchange behind them is gone.
      resets_.push_back({id, NGHTTP2_REFUSED_STREAM});
      guard_.we_reset(id);
      guard_.glitches.add(GlitchCounter::kWhole, worker_.now(), limits_);
      flush_soon();
      return;
    }
    H2Stream& s = make_stream(id);
    nghttp2_session_set_stream_user_data(ng_, id, &s);
    s.reader_.begin(false, limits_.max_head, limits_.max_fields);
    return;
  }
  H2Stream* s = stream(id);
  if (s == nullptr) return;
  if (s->head_taken_)
    s->reader_.begin(!server(), limits_.max_trailer, limits_.max_fields);
  else
    s->reader_.begin(true, limits_.max_response_head, limits_.max_fields);
}

void H2Session::take_request(H2Stream& s, bool ended) noexcept {
  Head head;
  LimitHit limit;
  s.head_taken_ = true;
  s.method_ = s.reader_.method();
  const Fault f = s.reader_.to_request(limits_, tls_, ended, head, limit);
  if (f != Fault::none) {
    reject(s, f, limit);
    return;
  }
  s.extended_ = !head.protocol.empty();
  s.max_body_ = head.is_connect() ? 0 : limits_.max_body;
  if (s.max_body_ != 0 && head.body.is_exact() && head.body.n > s.max_body_) {
    reject(s, Fault::body_too_large, {"max_body", head.body.n, s.max_body_});
    return;
  }
  s.accepted_ = true;
  s.recv_done_ = ended;
  s.expects_continue_ = head.fields.has(HeaderId::expect);
  s.at_own_pace_ = is_grpc(head);
  s.rate_since_ = worker_.now();
  s.use(acceptor_->accept(s));
  s.events().on_head(s, std::move(head), ended ? End::yes : End::no);
}

void H2Session::take_response(H2Stream& s, bool ended) noexcept {
  Head head;
  LimitHit limit;
  s.answered_ = true;
  const Fault f = s.reader_.to_response(s.method_, ended, head, limit);
  if (f != Fault::none) {
    reject(s, f, limit);
    return;
  }
  if (head.is_interim()) {
    if (++s.interims_ > limits_.max_interim)
      reject(s, Fault::origin_bad_head, {"max_interim", s.interims_, limits_.max_interim});
    else if (s.live())
      s.events().on_head(s, std::move(head), End::no);
    return;
  }
  s.head_taken_ = true;
  s.status_ = head.status;
  const bool last = ended || response_has_no_body(s.method_, head.status);
  s.recv_done_ = last;
  if (s.live()) s.events().on_head(s, std::move(head), last ? End::yes : End::no);
}

void H2Session::take_trailers(H2Stream& s) noexcept {
  release_held(End::no);
  if (!s.live() || s.recv_done_) return;
  HeaderBlock trailers;
  LimitHit limit;
  const Fault f = s.reader_.to_trailers(trailers, limit);
  if (f != Fault::none) {
    reject(s,
           server()                  ? f
           : f == Fault::bad_trailer ? Fault::origin_bad_framing
                                     : Fault::origin_head_too_large,
           limit);
    return;
  }
  s.recv_done_ = true;
  // A tunnel has no trailers; it just ends.
  const bool tunnel = s.method_ == Method::connect;
  if (trailers.empty() || tunnel)
    s.events().on_body(s, {}, End::yes);
  else
    s.events().on_trailers(s, std::move(trailers));
}

void H2Session::take_data(H2Stream& s, const std::uint8_t* data, std::size_t n) noexcept {
  s.body_octets_ += n;
  if (!s.live() || s.recv_done_) return;
  if (s.max_body_ != 0 && s.body_octets_ > s.max_body_) {
    release_held(End::no);
    reject(s, Fault::body_too_large, {"max_body", s.body_octets_, s.max_body_});
    return;
  }
  release_held(End::no);
  s.unconsumed_ += n;
  if (s.unconsumed_ >= limits_.stream_window / 2) s.starved_ = true;
  const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(data) - in_);
  Slice piece(BlockPool::retain(in_block_), in_off_ + static_cast<std::uint32_t>(at),
              static_cast<std::uint32_t>(n));
  // The frame head in front of it is dead: room for the frame or chunk head of the other side.
  if (at >= FrameGuard::kHead && at - FrameGuard::kHead == frame_at_) piece.set_headroom(FrameGuard::kHead);
  held_ = std::move(piece);
  held_by_ = &s;
}

/// The last piece of a body waits until nghttp2 has compared the length, so that End::yes comes with it.
void H2Session::release_held(End end) noexcept {
  H2Stream* s = std::exchange(held_by_, nullptr);
  if (s == nullptr) return;
  Slice piece = std::move(held_);
  if (!s->live()) return;
  if (end == End::yes) s->recv_done_ = true;
  s->events().on_body(*s, std::move(piece), end);
}

void H2Session::end_of_message(H2Stream& s) noexcept {
  if (held_by_ == &s) {
    release_held(End::yes);
    return;
  }
  release_held(End::no);
  if (!s.live() || std::exchange(s.recv_done_, true)) return;
  s.events().on_body(s, {}, End::yes);
}

void H2Session::take_settings() noexcept {
  ready_ = true;
  connect_allowed_ = nghttp2_session_get_remote_settings(ng_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
  capacity_changed_ = !server();
  if (std::exchange(waits_for_settings_, false))
    all_.for_each([&](H2Stream& s) {
      if (s.first_ != nullptr && !s.submitted_) dirty(s);
    });
  flush_soon();
}

void H2Session::take_goaway() noexcept {
  // A client that says it opens no stream any more changes nothing: nghttp2 ends when the last one does.
  if (server()) return;
  capacity_changed_ = true;
  draining_ = true;
  flush_soon();
}

void H2Session::log_limit(const LimitHit& limit) noexcept {
  if (limit.key.empty()) return;
  log_limited(LogLevel::warning, refusal_text((server() ? "request from " : "response from ") + peer().remote.text(), limit));
}

void H2Session::reject(H2Stream& s, Fault f, const LimitHit& limit) noexcept {
  if (s.going_ || s.refused_) return;
  log_limit(limit);
  s.refused_ = true;
  s.defect_ = f;
  if (server() && !s.accepted_) acceptor_->rejected(*this, f);
  // What a person or a program can do something about is said; the rest is a broken peer (RFC 9113 §8.1.1).
  const std::uint16_t status = info(f).http_status;
  const bool tell = server() && status != 0 && status != 400 && s.send_state() == SendState::head;
  const bool answered = server() && s.send_state() == SendState::done;
  if (s.attached_) {
    s.go(f);
    if (!s.EndingHook::linked()) ending_.push_back(s);
  }
  if (tell) {
    write_error(s, f);
    s.reset_after_end_ = true;
    s.reset_code_ = NGHTTP2_NO_ERROR;
  } else if (answered) {
    s.reset_after_end_ = true;  // a complete response is not damaged by what comes behind it
    s.reset_code_ = NGHTTP2_NO_ERROR;
  } else {
    s.reset_wanted_ = true;
    s.reset_code_ =
        info(f).h2_code != 0 && server() ? info(f).h2_code : std::uint32_t{NGHTTP2_PROTOCOL_ERROR};
  }
  if (s.detached_at_ == kNever) s.detached_at_ = worker_.now();
  dirty(s);
}

void H2Session::write_error(H2Stream& s, Fault f) noexcept {
  const std::uint16_t status = info(f).http_status;
  const std::string body = std::to_string(status) + " " + std::string(reason_phrase(status)) + ": " +
                           std::string(log_word(f)) + "\n";
  Head head = Head::response(status, BodySize::exactly(body.size()));
  head.fields.add(HeaderId::date, http_date(worker_.wall()));
  head.fields.add(HeaderId::content_type, "text/plain");
  head.fields.add(HeaderId::content_length, std::to_string(body.size()));
  s.queue(H2Stream::Section::Kind::head, encode_head(head, s.arena_));
  if (s.method_ != Method::head) s.body_.append_copy(body);
  s.status_ = status;
  s.end_ = true;
}

void H2Session::stream_closed(H2Stream& s, std::uint32_t code) noexcept {
  s.closed_ = true;
  s.close_code_ = code;
  s.body_.clear();
  s.credit_ = 0;
  s.DirtyHook::unlink();
  if (held_by_ == &s) release_held(End::no);
  if (!s.EndingHook::linked()) ending_.push_back(s);
  flush_soon();
}

/// Why an unfinished stream was closed, seen from this role.
Fault H2Session::fault_of_close(const H2Stream& s) const noexcept {
  const bool sent_all = s.local_end_, got_all = s.remote_end_;
  if (s.reset_by_us_ || s.defect_ != Fault::none) {
    if (s.defect_ == Fault::head_too_large && !server()) return Fault::origin_head_too_large;
    if (s.defect_ != Fault::none) return s.defect_;
    if (s.tunnel_refused_ && sent_all) return Fault::none;
    return server() ? Fault::bad_framing
                    : Fault::origin_bad_framing;  // nghttp2 found a length or window violated
  }
  if (server()) return sent_all && !got_all ? Fault::early_response : Fault::client_reset;
  if (s.close_code_ == NGHTTP2_REFUSED_STREAM) return Fault::origin_refused_stream;
  if (got_all) return Fault::early_response;
  return s.answered_ ? Fault::origin_truncated : Fault::origin_stream_reset;
}

}  // namespace twp::h2
