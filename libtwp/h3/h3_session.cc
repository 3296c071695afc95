// How streams and sessions begin and end.
#include "h3/h3_session.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "h3/h3_impl.h"

namespace twp::h3 {
namespace {

/// Streams come and go with every request, on all sessions of a thread.
Slab<H3Stream>& streams() noexcept {
  static thread_local Slab<H3Stream> slab;
  return slab;
}

}  // namespace

H3Session::H3Session(Worker& worker, std::unique_ptr<QuicConnection> connection, Acceptor* acceptor,
                     H3Opening* opening, SessionOwner& owner, const HttpLimits& limits)
    : worker_(worker), conn_(std::move(connection)), acceptor_(acceptor), opening_(opening), owner_(owner),
      limits_(limits), idle_since_(conn_->now()) {
  conn_->attach(*this, *this);
  conn_->flush_soon();
}

H3Session::~H3Session() {
  conn_.reset();  // nothing points into nghttp3's memory any more
  nghttp3_conn_del(ng_);
  while (!all_.empty()) streams().destroy(&all_.front());  // the worker ends with streams open
}

void H3Session::on_keys() noexcept {
  if (dead_) return;
  if (!make_nghttp3() || !bind_streams())
    fail(NGHTTP3_H3_INTERNAL_ERROR, server() ? Fault::bad_request : Fault::origin_bad_framing);
}

/// RFC 9114 §6.2: every peer must let us have these three.
bool H3Session::bind_streams() noexcept {
  const std::int64_t control = conn_->open_stream(false);
  const std::int64_t encoder = conn_->open_stream(false);
  const std::int64_t decoder = conn_->open_stream(false);
  return control >= 0 && encoder >= 0 && decoder >= 0 &&
         nghttp3_conn_bind_control_stream(ng_, control) == 0 &&
         nghttp3_conn_bind_qpack_streams(ng_, encoder, decoder) == 0;
}

void H3Session::on_open() noexcept {
  opened_ = true;
  tell_opening_ = opening_ != nullptr;
  idle_since_ = now();
  if (draining_) flush_soon();
  arm();
}

// --- streams ----------------------------------------------------------------------------------------

H3Stream& H3Session::make_stream(std::int64_t id) noexcept {
  H3Stream& s = *streams().make(*this, id);
  s.born_ = now();
  all_.push_back(s);
  if (id >= 0)
    table_.insert(s);
  else
    ++unopened_;
  if (active_++ == 0) {
    conn_->keep_alive(true);
    arm();
  }
  return s;
}

void H3Session::destroy(H3Stream& s) noexcept {
  if (!due_.empty()) std::erase(due_, &s);
  if (!to_close_.empty()) std::erase(to_close_, &s);
  if (held_by_ == &s) {
    held_by_ = nullptr;
    held_ = {};
  }
  if (s.id_ >= 0)
    table_.erase(s);
  else
    --unopened_;
  if (server()) {
    // Only now: a client that resets as soon as it has asked cannot have more exchanges running than it has streams.
    conn_->grant_streams(1);
    nghttp3_conn_set_max_client_streams_bidi(ng_, ++max_client_streams_);
    flush_soon();
  }
  if (--active_ == 0) {
    idle_since_ = now();
    conn_->keep_alive(false);
  }
  capacity_changed_ = !server();
  streams().destroy(&s);
}

Stream* H3Session::open(StreamEvents& events) noexcept {
  if (capacity() == 0) return nullptr;
  H3Stream& s = make_stream(-1);
  s.use(events);
  return &s;
}

unsigned H3Session::capacity() const noexcept {
  if (server() || dead_ || draining_ || failing_ || !opened_) return 0;
  const std::uint64_t left = conn_->streams_left();
  if (left <= unopened_ || active_ >= limits_.h2_max_streams) return 0;
  return static_cast<unsigned>(std::min<std::uint64_t>(left - unopened_, limits_.h2_max_streams - active_));
}

void H3Session::on_more_streams() noexcept {
  capacity_changed_ = !server();
  flush_soon();
}

void H3Session::may_be_over(H3Stream& s) noexcept {
  if (s.EndingHook::linked() || !(is_done(s) || s.closed_)) return;
  ending_.push_back(s);
  flush_soon();
}

/// Nothing of `s` is still to come or to leave.
bool H3Session::is_done(const H3Stream& s) const noexcept {
  return s.going_ || s.closed_ || (s.local_end_ && s.remote_end_) ||
         (!server() && s.stopped_ &&
          s.remote_end_);  // an answer to a request that it did not want to the end
}

/// What nobody else would say of a stream that nghttp3 refused by itself.
void H3Session::note_refusal(const H3Stream& s) noexcept {
  if (server() || (s.gone_ != Fault::origin_bad_head && s.gone_ != Fault::origin_bad_framing)) return;
  log_limited(LogLevel::warning,
              "response from " + peer().remote.text() + " refused: " +
                  (s.gone_ == Fault::origin_bad_head ? "a head that RFC 9114 forbids"
                                                     : "a body that contradicts its head, after " +
                                                           std::to_string(s.body_octets_) + " octets"));
}

void H3Session::settle_stream(H3Stream& s) noexcept {
  if (s.attached_ && is_done(s)) {
    if (s.left_ != 0 && s.live()) s.events().on_sent(s, std::exchange(s.left_, 0));
    if (dead_) return;
    s.go(done_fault(s));
    if (s.gone_ == Fault::none) glitches_.forgive();
    s.attached_ = false;
    note_refusal(s);
    s.events().on_gone(s, s.gone_);
    if (dead_) return;
  }
  if (!s.attached_ && s.closed_) destroy(s);
}

void H3Session::settle_streams() noexcept {
  IList<H3Stream, EndingTag> some;
  some.splice_back(ending_);
  while (!some.empty() && !dead_) settle_stream(some.pop_front());
}

void H3Session::settle() noexcept {
  if (std::exchange(tell_opening_, false) && !failing_) {
    H3Opening& waits = *std::exchange(opening_, nullptr);
    waits.on_h3_open(*this);
  }
  if (!dead_) settle_streams();
  if (dead_ || failing_) return;
  if (!server() && draining_ && active_ == 0 && opened_) {
    close(Fault::none);
    return;
  }
  if (server() && goaway_queued_ && active_ == 0 && nghttp3_conn_is_drained(ng_) != 0) {
    close(Fault::none);
    return;
  }
  if (std::exchange(capacity_changed_, false) && opened_) owner_.on_capacity(*this);
}

Fault H3Session::peer_gone(const H3Stream& s, Fault f) const noexcept {
  if (!server() && !s.submitted_) return Fault::origin_refused_stream;  // it was never sent
  if (failing_) return f;
  const bool reset = f != Fault::peer_closed && f != Fault::none;
  if (server()) {
    if (s.local_end_) return s.remote_end_ ? Fault::none : Fault::early_response;
    return reset ? Fault::client_reset : Fault::client_closed;
  }
  if (s.remote_end_) return s.local_end_ ? Fault::none : Fault::early_response;
  if (s.answered_) return Fault::origin_truncated;
  return reset ? Fault::origin_reset : Fault::origin_closed;
}

void H3Session::end_streams(Fault why) noexcept {
  while (!all_.empty()) {
    H3Stream& s = all_.front();
    if (s.attached_) {
      s.go(s.closed_ ? done_fault(s) : why);
      s.attached_ = false;
      s.events().on_gone(s, s.gone_);
    }
    destroy(s);
  }
}

// --- the end ----------------------------------------------------------------------------------------

void H3Session::drain() noexcept {
  if (dead_ || std::exchange(draining_, true)) return;
  capacity_changed_ = !server();
  flush_soon();
}

/// RFC 9114 §5.2: a GOAWAY that says "no more", then, when the peer has had time to hear it, one that says which were the last.
void H3Session::continue_drain() noexcept {
  if (!draining_ || goaway_queued_ || failing_ || !server() || !opened_) return;
  if (!std::exchange(drain_noticed_, true)) {
    nghttp3_conn_submit_shutdown_notice(ng_);
    drain_at_ = now() + ns(conn_->probe_timeout());
    arm();
    return;
  }
  if (now() < drain_at_) return;
  goaway_queued_ = true;
  nghttp3_conn_shutdown(ng_);
}

void H3Session::fail(std::uint64_t code, Fault why) noexcept {
  if (dead_ || std::exchange(failing_, true)) return;
  failing_why_ = why;
  conn_->close(code, why);  // on_over() follows
}

void H3Session::close(Fault why) noexcept {
  if (std::exchange(dead_, true)) return;
  cancel();
  end_streams(why);
  conn_->close(info(why).h3_code, why);
  if (opening_ == nullptr) owner_.on_session_gone(*this, why);
}

void H3Session::on_over(Fault why, const std::string& detail) noexcept {
  if (std::exchange(dead_, true)) return;
  cancel();
  if (!detail.empty() && opening_ == nullptr) log_limited(LogLevel::warning, detail);
  all_.for_each([&](H3Stream& s) { s.go(s.closed_ ? done_fault(s) : peer_gone(s, why)); });
  end_streams(why);
  if (opening_ != nullptr)
    opening_->on_h3_open_failed(*this, why, detail);
  else
    owner_.on_session_gone(*this, why);
}

}  // namespace twp::h3

namespace twp {

QuicSettings h3_quic_settings(const HttpLimits& limits) noexcept {
  QuicSettings s;
  s.stream_window = limits.stream_window;
  s.connection_window = limits.h2_connection_window;
  s.max_streams = limits.h2_max_streams;
  s.idle_timeout = limits.keep_alive_timeout + std::chrono::seconds(5);  // HTTP is to end it in order, before QUIC does
  return s;
}

std::unique_ptr<Session> make_h3_server(Worker& worker, std::unique_ptr<QuicConnection> connection,
                                        Acceptor& acceptor, SessionOwner& owner, const HttpLimits& limits) {
  return std::make_unique<h3::H3Session>(worker, std::move(connection), &acceptor, nullptr, owner, limits);
}

std::unique_ptr<Session> make_h3_client(Worker& worker, std::unique_ptr<QuicConnection> connection,
                                        H3Opening& opening, SessionOwner& owner, const HttpLimits& limits) {
  return std::make_unique<h3::H3Session>(worker, std::move(connection), nullptr, &opening, owner, limits);
}

}  // namespace twp
