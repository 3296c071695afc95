// Heads, bodies and the rest of what the peer sends, as nghttp3 reports it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "h3/h3_impl.h"

namespace twp::h3 {
namespace {

bool is_request(std::int64_t id) noexcept { return id % 4 == 0; }  // RFC 9000 §2.1

}  // namespace

void H3Session::on_data(std::int64_t id, std::span<const std::byte> octets, bool fin) noexcept {
  if (dead_ || failing_) return;
  H3Stream* s = nullptr;
  if (is_request(id)) {
    s = table_.find(id);
    if (s == nullptr && server()) s = &make_stream(id);
    if (s != nullptr && fin && octets.empty() && !s->begun_) {
      incomplete(*s);
      return;
    }
    if (s != nullptr && fin) s->fin_seen_ = true;
  }
  credited_ = 0;
  const nghttp3_ssize n = nghttp3_conn_read_stream2(
      ng_, id, reinterpret_cast<const std::uint8_t*>(octets.data()), octets.size(), fin ? 1 : 0, now());
  if (n < 0) {
    read_failed(s, static_cast<int>(n), octets.size() - credited_);
    return;
  }
  if (n != 0) {
    conn_->credit(id, static_cast<std::size_t>(n));
    conn_->credit_connection(static_cast<std::size_t>(n));
  }
  if (s != nullptr && s->bomb_ && !s->refused_)
    reject(*s, server() ? Fault::head_too_large : Fault::origin_head_too_large, {});
  if (glitches_.over(limits_)) flooded();
}

/// A malformed message ends its stream (RFC 9114 §4.1.2), everything else the connection. A message that was waiting for the
/// table when it turned out to be malformed cannot be told from its neighbours: that ends the connection too (§8).
void H3Session::read_failed(H3Stream* s, int error, std::size_t uncredited) noexcept {
  const bool message =
      error == NGHTTP3_ERR_MALFORMED_HTTP_HEADER || error == NGHTTP3_ERR_MALFORMED_HTTP_MESSAGING;
  if (message && s != nullptr) {
    conn_->credit_connection(uncredited);
    malformed(*s, error);
    return;
  }
  if (error == NGHTTP3_ERR_H3_EXCESSIVE_LOAD) {
    glitches_.add(limits_.h2_glitch_burst * GlitchCounter::kWhole + GlitchCounter::kWhole, now(), limits_);
    if (flooded()) return;
  }
  const std::uint64_t code = nghttp3_err_infer_quic_app_error_code(error);
  log_limited(LogLevel::warning,
              "HTTP/3 connection of " + peer().remote.text() + " closed: " + nghttp3_strerror(error));
  fail(code, server() ? Fault::bad_request : Fault::origin_bad_framing);
}

void H3Session::malformed(H3Stream& s, int error) noexcept {
  nghttp3_conn_shutdown_stream_read(ng_, s.id_);
  if (held_by_ == &s) release_held(End::no);
  glitches_.add(GlitchCounter::kWhole, now(), limits_);
  const bool head = error == NGHTTP3_ERR_MALFORMED_HTTP_HEADER;
  if (server())
    reject(s, !head ? Fault::bad_framing : s.in_trailers_ ? Fault::bad_trailer : Fault::bad_header, {});
  else
    reject(s, head ? Fault::origin_bad_head : Fault::origin_bad_framing, {});
}

/// The stream ended before its message had begun (RFC 9114 §4.1).
void H3Session::incomplete(H3Stream& s) noexcept {
  s.remote_end_ = true;
  if (server())
    reject(s, Fault::bad_framing, {});
  else
    reject(s, Fault::origin_bad_framing, {});
}

void H3Session::on_reset(std::int64_t id, std::uint64_t code) noexcept {
  if (dead_ || failing_ || !is_request(id)) return;
  nghttp3_conn_shutdown_stream_read(ng_, id);
  H3Stream* s = table_.find(id);
  if (s == nullptr && server()) s = &make_stream(id);
  if (s == nullptr) return;
  if (held_by_ == s) release_held(End::no);
  s->remote_reset_ = true;
  if (s->recv_done_) return;  // the whole message was here
  if (s->asked_to_stop_) {
    s->go(fault_of_close(*s));
    may_be_over(*s);
    return;
  }
  count_cancel(*s);
  s->go(reset_fault(*s, code));
  if (!s->local_end_ && !s->reset_by_us_) {
    s->reset_wanted_ = true;
    s->reset_code_ = NGHTTP3_H3_REQUEST_CANCELLED;
    dirty(*s);
  }
  may_be_over(*s);
}

void H3Session::on_closed(std::int64_t id, std::optional<std::uint64_t> code) noexcept {
  if (dead_ || ng_ == nullptr) return;
  H3Stream* s = is_request(id) ? table_.find(id) : nullptr;
  if (s != nullptr && !code && s->fin_seen_ && !s->remote_end_ && !s->going_ && !s->reset_by_us_) {
    // All octets are here, but the last of them wait for the table that they refer to (RFC 9204 §2.1.2).
    s->close_waits_ = true;
    return;
  }
  finish_close(s, id, code);
}

void H3Session::finish_close(H3Stream* s, std::int64_t id, std::optional<std::uint64_t> code) noexcept {
  if (held_by_ != nullptr && held_by_ == s) release_held(End::no);
  const int rc = nghttp3_conn_close_stream(ng_, id, code.value_or(NGHTTP3_H3_NO_ERROR));
  if (rc == NGHTTP3_ERR_H3_CLOSED_CRITICAL_STREAM) {
    read_failed(nullptr, rc, 0);
    return;
  }
  if (s == nullptr) {
    if (server() && is_request(id)) conn_->grant_streams(1);  // nothing of it was ever seen
    return;
  }
  s->closed_ = true;
  s->close_code_ = code.value_or(0);
  if (!s->going_ && !s->local_end_) count_cancel(*s);
  drop_unsent(*s);
  s->sent_.clear();
  s->credit_ = 0;
  s->DirtyHook::unlink();
  may_be_over(*s);
}

void H3Session::on_input_over() noexcept {
  if (dead_ || failing_) return;
  release_held(End::no);
  for (std::size_t i = 0; i < to_close_.size(); ++i)
    finish_close(to_close_[i], to_close_[i]->id_, std::nullopt);
  to_close_.clear();
  // Before anything is flushed: a request that was reset in the same input need not even reach an origin.
  settle_streams();
}

// --- field sections ---------------------------------------------------------------------------------

void H3Session::begin_section(H3Stream& s, bool trailers) noexcept {
  s.begun_ = true;
  s.in_trailers_ = trailers;
  if (trailers)
    s.reader_.begin(!server(), limits_.max_trailer, limits_.max_fields);
  else
    s.reader_.begin(!server(), server() ? limits_.max_head : limits_.max_response_head, limits_.max_fields);
}

void H3Session::end_section(H3Stream& s, bool ended) noexcept {
  if (s.going_ || s.refused_) return;
  if (s.bomb_)
    reject(s, server() ? Fault::head_too_large : Fault::origin_head_too_large, {});
  else if (s.in_trailers_)
    take_trailers(s);
  else if (server())
    take_request(s, ended);
  else
    take_response(s, ended);
}

void H3Session::take_request(H3Stream& s, bool ended) noexcept {
  Head head;
  LimitHit limit;
  s.head_taken_ = true;
  s.method_ = s.reader_.method();
  const Fault f = s.reader_.to_request(limits_, true, ended, head, limit);
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
  s.rate_since_ = now();
  s.use(acceptor_->accept(s));
  s.events().on_head(s, std::move(head), ended ? End::yes : End::no);
}

void H3Session::take_response(H3Stream& s, bool ended) noexcept {
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

void H3Session::take_trailers(H3Stream& s) noexcept {
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
  if (trailers.empty())
    s.events().on_body(s, {}, End::yes);
  else
    s.events().on_trailers(s, std::move(trailers));
}

// --- bodies -----------------------------------------------------------------------------------------

void H3Session::take_data(H3Stream& s, std::span<const std::byte> octets) noexcept {
  s.body_octets_ += octets.size();
  if (!s.live() || s.recv_done_ || s.refused_) return;
  if (s.max_body_ != 0 && s.body_octets_ > s.max_body_) {
    release_held(End::no);
    reject(s, Fault::body_too_large, {"max_body", s.body_octets_, s.max_body_});
    return;
  }
  s.unconsumed_ += octets.size();
  if (s.unconsumed_ >= limits_.stream_window / 2) s.starved_ = true;
  hold(s, octets);
}

/// Octets of many small packets become one piece, and the last piece waits for its end: nghttp3 compares the length with
/// what was announced when the end is here, and End::yes is to come with the octets.
void H3Session::hold(H3Stream& s, std::span<const std::byte> octets) noexcept {
  if (held_by_ != &s) release_held(End::no);
  while (!octets.empty() && s.live()) {
    Block* b = BlockPool::local().inbox(1);
    const std::uint32_t off = b->used;
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(octets.size(), b->size - off));
    std::memcpy(b->data + off, octets.data(), n);
    b->used += n;
    if (held_by_ != &s || !held_.grow(b, off, n)) {
      Slice piece(BlockPool::retain(b), off, n);
      release_held(End::no);
      held_ = std::move(piece);
      held_by_ = &s;
    }
    octets = octets.subspan(n);
  }
}

void H3Session::release_held(End end) noexcept {
  H3Stream* s = std::exchange(held_by_, nullptr);
  if (s == nullptr) return;
  Slice piece = std::move(held_);
  if (!s->live()) return;
  if (end == End::yes) s->recv_done_ = true;
  s->events().on_body(*s, std::move(piece), end);
}

void H3Session::end_of_message(H3Stream& s) noexcept {
  if (held_by_ == &s) {
    release_held(End::yes);
  } else {
    release_held(End::no);
    if (s.live() && !std::exchange(s.recv_done_, true)) s.events().on_body(s, {}, End::yes);
  }
  if (std::exchange(s.close_waits_, false)) to_close_.push_back(&s);
  may_be_over(s);
}

// --- the connection's own ---------------------------------------------------------------------------

void H3Session::take_settings(const nghttp3_proto_settings& settings) noexcept {
  settings_here_ = true;
  connect_allowed_ = settings.enable_connect_protocol != 0;
  if (server()) return;
  all_.for_each([&](H3Stream& s) {
    if (s.first_ != nullptr && !s.submitted_) dirty(s);
  });
}

/// RFC 9114 §5.2: requests from `id` on were not and will not be processed.
void H3Session::take_goaway(std::int64_t id) noexcept {
  if (server()) return;  // a client has nothing to announce: we push nothing
  draining_ = capacity_changed_ = true;
  all_.for_each([&](H3Stream& s) {
    if (s.id_ < id || s.head_taken_ || s.going_) return;
    s.go(Fault::origin_refused_stream);
    s.reset_wanted_ = true;
    s.reset_code_ = NGHTTP3_H3_REQUEST_CANCELLED;
    may_be_over(s);
    dirty(s);
  });
  flush_soon();
}

void H3Session::log_limit(const LimitHit& limit) noexcept {
  if (limit.key.empty()) return;
  log_limited(LogLevel::warning,
              refusal_text((server() ? "request from " : "response from ") + peer().remote.text(), limit));
}

void H3Session::reject(H3Stream& s, Fault f, const LimitHit& limit) noexcept {
  if (s.going_ || s.refused_) return;
  log_limit(limit);
  s.refused_ = true;
  s.defect_ = f;
  if (server() && !s.accepted_) acceptor_->rejected(*this, f);
  // What a person or a program can do something about is said; the rest is a broken peer (RFC 9114 §4.1.2).
  const std::uint16_t status = info(f).http_status;
  const bool tell = server() && status != 0 && status != 400 && s.send_state() == SendState::head;
  const bool answered = server() && s.send_state() == SendState::done;
  if (s.attached_) {
    s.go(f);
    may_be_over(s);
  }
  if (tell) write_error(s, f);
  if (tell || answered) {
    s.stop_after_end_ = true;  // a complete response is not damaged by what comes behind it
    if (s.local_end_) due_.push_back(&s);
  } else {
    s.reset_wanted_ = true;
    s.reset_code_ = server() && !s.begun_                                ? NGHTTP3_H3_REQUEST_INCOMPLETE
                    : server() && info(f).h3_code != NGHTTP3_H3_NO_ERROR ? info(f).h3_code
                                                                         : NGHTTP3_H3_MESSAGE_ERROR;
  }
  dirty(s);
}

void H3Session::write_error(H3Stream& s, Fault f) noexcept {
  const std::uint16_t status = info(f).http_status;
  const std::string body = std::to_string(status) + " " + std::string(reason_phrase(status)) + ": " +
                           std::string(log_word(f)) + "\n";
  Head head = Head::response(status, BodySize::exactly(body.size()));
  head.fields.add(HeaderId::date, http_date(worker_.wall()));
  head.fields.add(HeaderId::content_type, "text/plain");
  head.fields.add(HeaderId::content_length, std::to_string(body.size()));
  s.queue(H3Stream::Section::Kind::head, encode_head(head, s.arena_));
  if (s.method_ != Method::head) s.body_.append_copy(body);
  s.moved_at_ = now();
  s.status_ = status;
  s.end_ = true;
}

// --- why --------------------------------------------------------------------------------------------

/// Requests that are cancelled before anything of a response was seen cost us more than their sender.
void H3Session::count_cancel(const H3Stream& s) noexcept {
  constexpr Duration kPatience = std::chrono::seconds(1);  // who waits so long and cancels is no flood
  const bool fair =
      !server() || s.answered_ || s.refused_ || (s.accepted_ && s.rate_since_ + ns(kPatience) <= now());
  glitches_.add(fair ? GlitchCounter::kQuarter : GlitchCounter::kWhole, now(), limits_);
  flooded();
}

/// True when the connection is ending because of it.
bool H3Session::flooded() noexcept {
  if (failing_ || dead_ || !glitches_.over(limits_)) return false;
  log_limited(LogLevel::warning,
              "HTTP/3 connection of " + peer().remote.text() + " closed: limits.h2_glitch_burst = " +
                  std::to_string(limits_.h2_glitch_burst) + ", seen " + std::to_string(glitches_.events()) +
                  " suspicious events (raise limits.h2_glitch_burst or limits.h2_glitch_rate)");
  fail(NGHTTP3_H3_EXCESSIVE_LOAD, flood());
  return true;
}

Fault H3Session::reset_fault(const H3Stream& s, std::uint64_t code) const noexcept {
  if (server()) return Fault::client_reset;
  if (code == NGHTTP3_H3_REQUEST_REJECTED && !s.answered_) return Fault::origin_refused_stream;
  return s.answered_ ? Fault::origin_truncated : Fault::origin_stream_reset;
}

/// Why an unfinished stream was closed, seen from this role.
Fault H3Session::fault_of_close(const H3Stream& s) const noexcept {
  if (s.defect_ != Fault::none) return s.defect_;
  if (server() && !s.local_end_) return Fault::client_reset;
  if (server()) return s.tunnel_refused_ || s.remote_end_ ? Fault::none : Fault::early_response;
  if (s.remote_end_) return Fault::early_response;
  return reset_fault(s, s.close_code_);
}

Fault H3Session::done_fault(const H3Stream& s) const noexcept {
  return s.local_end_ && s.remote_end_ && !s.reset_by_us_ ? Fault::none : fault_of_close(s);
}

}  // namespace twp::h3
