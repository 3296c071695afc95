// The server role: requests in, responses out.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "h1/h1_connection.h"
#include "h1/h1_session.h"

namespace twp::h1 {
namespace {

constexpr Duration kDrainGrace = std::chrono::seconds(1);      // for a request that crosses our decision to close

class H1Server final : public H1Connection {
 public:
  H1Server(Worker& worker, std::unique_ptr<Transport> transport, Acceptor& acceptor, SessionOwner& owner,
           const HttpLimits& limits, Chain first)
      : H1Connection(worker, std::move(transport), owner, limits, Phase::client), acceptor_(acceptor),
        tls_(peer().tls), idle_since_(worker.now()) {
    in_ = std::move(first);
    worker_.arm(*this, limits_.keep_alive_timeout);
    read_soon();
  }

  // Session
  Stream* open(StreamEvents&) noexcept override { return nullptr; }
  unsigned capacity() const noexcept override { return 0; }
  void drain() noexcept override;

 private:
  void do_send_head(const Head& head, twp::End end) override;
  bool take_head() noexcept override;
  void on_eof(bool truncated) noexcept override;
  void bad_message(Fault f, const LimitHit& limit) noexcept override;
  void after_stream(Fault why, bool complete) noexcept override;
  Fault peer_gone(Fault f) const noexcept override { return f == Fault::peer_reset ? Fault::client_reset : Fault::client_closed; }
  /// A client that was never told to go on does not send the body that we said we do not want.
  bool gives_up_rest() const noexcept override { return waits_for_continue(); }
  void on_timer() noexcept override;

  bool wait_for_head() noexcept;
  Instant head_due() const noexcept;
  /// Asked whether to send its body, was not told to, and has not begun all the same.
  bool waits_for_continue() const noexcept { return expects_continue_ && body_total_ == 0; }
  void start_request(Head&& head, const MessageInfo& info) noexcept;
  void choose_framing(const Head& head, twp::End end, WriteInfo& info) noexcept;
  void send_interim(const Head& head);
  void refuse_tunnel() noexcept;
  void reject(Fault f, const LimitHit& limit) noexcept;
  void write_error(Fault f);
  bool body_too_slow(LimitHit& limit) noexcept;

  Acceptor& acceptor_;
  const bool tls_;
  Instant drain_since_ = kNever;
  Instant idle_since_;            // since when no request is in progress, or its head began
  std::string websocket_key_;
  HttpVersion version_;           // of the request
  Method method_ = Method::get;
  bool websocket_ = false;
  bool explicit_keep_alive_ = false;
  bool expects_continue_ = false;  // asked and not yet told to go on
  bool rejecting_ = false;         // the connection ends with an answer of our own
};

bool H1Server::take_head() noexcept {
  if (recv_ == Recv::idle) {
    recv_ = Recv::head;
    idle_since_ = worker_.now();
  }
  std::string_view text;
  const std::size_t before = partial_.size();
  if (!gather(text, limits_.max_head) && !request_line_is_due(before, text.size(), limits_)) return wait_for_head();
  RawHead raw;
  const ParseResult r = parse_request_head(text, limits_, raw);
  if (r.status == ParseStatus::need_more) {
    stash();
    return wait_for_head();
  }
  if (r.status == ParseStatus::bad) {
    reject(r.fault, r.limit);
    return true;
  }
  Head head;
  MessageInfo info;
  const Fault f = to_request(std::move(raw), text.substr(0, r.size), tls_, head, info);
  if (f != Fault::none) {
    reject(f, {});
    return true;
  }
  if (limits_.max_body != 0 && info.framing == Framing::length && info.length > limits_.max_body) {
    reject(Fault::body_too_large, {"max_body", info.length, limits_.max_body});
    return true;
  }
  drop_parsed(r.size);
  start_request(std::move(head), info);
  return true;
}

bool H1Server::wait_for_head() noexcept {
  worker_.arm_at(*this, head_due());
  return false;
}

/// A drain does not wait for a head that comes slowly: who has not sent a whole request has lost none.
Instant H1Server::head_due() const noexcept {
  const Instant due = idle_since_ + static_cast<Instant>(limits_.head_timeout.count());
  return draining_ ? std::min(due, drain_since_ + static_cast<Instant>(kDrainGrace.count())) : due;
}

void H1Server::start_request(Head&& head, const MessageInfo& info) noexcept {
  version_ = head.version;
  method_ = head.method;
  websocket_ = info.websocket;
  if (websocket_) websocket_key_ = head.fields.get(HeaderId::sec_websocket_key);
  keep_alive_ = info.keep_alive;
  explicit_keep_alive_ = info.explicit_keep_alive;
  expects_continue_ = info.expect_continue;
  begin_body(info);
  max_body_ = info.framing == Framing::tunnel ? 0 : limits_.max_body;
  if (info.framing == Framing::tunnel) recv_ = Recv::hold;
  body_since_ = worker_.now();
  worker_.arm(*this, std::min(kProbe, limits_.body_rate_window));
  begin_stream(acceptor_.accept(*this));
  events().on_head(*this, std::move(head), recv_ == Recv::done ? twp::End::yes : twp::End::no);
}

void H1Server::choose_framing(const Head& head, twp::End end, WriteInfo& info) noexcept {
  const bool tunnel = method_ == Method::connect && head.status / 100 == 2 && (!websocket_ || head.is_connect());
  if (tunnel) {
    info.framing = Framing::tunnel;
    info.websocket = websocket_;
  } else if (response_has_no_body(websocket_ ? Method::get : method_, head.status)) {
    info.framing = Framing::none;
    info.no_framing_fields = method_ == Method::head || head.status == 304;
  } else if (head.body.is_exact() || end == twp::End::yes || head.body.is_none()) {
    info.framing = Framing::length;
    info.length = head.body.is_exact() ? head.body.n : 0;
  } else if (version_.minor != 0) {
    info.framing = Framing::chunked;
  } else {
    info.framing = Framing::until_close;
  }
}

void H1Server::send_interim(const Head& head) {
  // HTTP/1.0 knows no interim responses (RFC 9110 §15.2).
  if (version_.minor == 0) return;
  if (head.status == 100) expects_continue_ = false;
  WriteInfo info;
  info.framing = Framing::none;
  write_response(out_, head, info, {});
  flush_soon();
}

void H1Server::do_send_head(const Head& head, twp::End end) {
  if (head.is_interim()) {
    send_interim(head);
    return;
  }
  WriteInfo info;
  choose_framing(head, end, info);
  if (end == twp::End::yes && info.framing == Framing::length && info.length != 0) {
    reset(Fault::internal);  // announces octets that will never come
    return;
  }
  send_framing_ = info.framing;
  send_left_ = info.length;
  // A client that was never told to go on may or may not send its body: only closing is unambiguous
  // (RFC 9110 §10.1.1).
  const bool last = eof_ && cur_.empty() && in_.empty();
  if (draining_ || last || info.framing == Framing::until_close || (expects_continue_ && recv_ != Recv::done))
    keep_alive_ = false;
  if (info.framing == Framing::tunnel) {
    keep_alive_ = false;
    if (recv_ == Recv::hold) recv_ = Recv::body;
    read_soon();
  } else {
    if (recv_ == Recv::hold) refuse_tunnel();
    info.close = !keep_alive_;
    info.keep_alive = keep_alive_ && explicit_keep_alive_;
  }
  write_response(out_, head, info, websocket_key_);
  if (end == twp::End::yes) end_send();
  flush_soon();
}

void H1Server::refuse_tunnel() noexcept {
  // Octets sent ahead of the answer were meant for the tunnel; as a next request they would be a smuggled one. They may
  // still be on their way, and nothing tells them from a request: no CONNECT and no upgrade that is refused leaves a
  // connection to go on with (RFC 9931).
  keep_alive_ = false;
  cur_ = {};
  in_.clear();
  recv_ = Recv::done;
}

void H1Server::on_eof(bool) noexcept {
  if (!active_) {
    end_session(Fault::none);
    return;
  }
  const bool whole = recv_ == Recv::done || recv_ == Recv::hold;
  if (whole && (send_done_ || !limits_.abort_on_close)) return;  // half-closed: it still wants the answer (RFC 9112 §9.6)
  if (send_done_ && out_.empty()) {
    finish_stream(Fault::early_response);
    return;
  }
  finish_stream(Fault::client_closed);
}

void H1Server::bad_message(Fault f, const LimitHit& limit) noexcept { reject(f, limit); }

void H1Server::reject(Fault f, const LimitHit& limit) noexcept {
  if (!limit.key.empty())
    log_limited(LogLevel::warning, refusal_text("request from " + peer().remote.text(), limit));
  const bool was_active = active_;
  const bool head_sent = was_active && send_state() != SendState::head;
  recv_ = Recv::ended;
  keep_alive_ = false;
  rejecting_ = true;
  if (was_active) finish_stream(f);
  if (dead_) return;
  if (head_sent) {
    // A complete response is not damaged by what comes behind it; a cut one must not look whole.
    if (send_done_ && !send_broken_) close_after_flush(f);
    else end_session(f);
    return;
  }
  if (!was_active) acceptor_.rejected(*this, f);
  write_error(f);
  close_after_flush(f);
}

void H1Server::write_error(Fault f) {
  const std::uint16_t status = info(f).http_status != 0 ? info(f).http_status : std::uint16_t{400};
  std::string body = std::to_string(status) + " " + std::string(reason_phrase(status)) + ": " + std::string(log_word(f)) + "\n";
  Head head = Head::response(status, BodySize::exactly(body.size()));
  head.fields.add(HeaderId::date, http_date(worker_.wall()));
  head.fields.add(HeaderId::content_type, "text/plain");
  WriteInfo how;
  how.framing = Framing::length;
  how.length = body.size();
  how.close = true;
  write_response(out_, head, how, {});
  out_.append_copy(body);
}

void H1Server::after_stream(Fault why, bool complete) noexcept {
  if (rejecting_) return;  // reject() goes on
  websocket_key_.clear();
  if (!complete) {
    // The response is whole and only the rest of the request is given up: the client may read it.
    if (send_done_ && !send_broken_) close_after_flush(why);
    else end_session(why);
    return;
  }
  if (send_framing_ == Framing::tunnel) {
    end_session(Fault::none);
    return;
  }
  if (!keep_alive_ || draining_ || (eof_ && !has_input())) {
    if (eof_) end_session(Fault::none);
    else close_after_flush(Fault::none);
    return;
  }
  recv_ = Recv::idle;
  idle_since_ = worker_.now();
  if (has_input()) read_soon();
}

void H1Server::drain() noexcept {
  if (dead_) return;
  if (!draining_) drain_since_ = worker_.now();
  draining_ = true;
  if (active_) return;
  if (recv_ == Recv::head) worker_.arm_at(*this, head_due());
  if (recv_ != Recv::idle) return;
  worker_.arm_at(*this, idle_since_ + static_cast<Instant>(kDrainGrace.count()));
}

/// Not of what is no upload but a conversation, which goes at the pace of those who lead it: tunnels, and whatever has
/// begun to be answered. timeouts.stream_idle bounds them.
bool H1Server::body_too_slow(LimitHit& limit) noexcept {
  const Instant elapsed = worker_.now() - body_since_;
  if (elapsed < static_cast<Instant>(limits_.body_rate_window.count())) return false;
  const double rate = static_cast<double>(body_octets_) / (static_cast<double>(elapsed) * 1e-9);
  const bool slow = rate < limits_.min_body_rate && !starved_ && credit_ > 0 && !waits_for_continue() &&
                    recv_framing_ != Framing::tunnel && send_state() == SendState::head;
  limit = {"min_body_rate", static_cast<std::uint64_t>(rate), limits_.min_body_rate};
  body_since_ = worker_.now();
  body_octets_ = 0;
  starved_ = credit_ <= 0 || pump_paused_;
  return slow;
}

void H1Server::on_timer() noexcept {
  if (dead_) return;
  if (closing_ && !active_) {
    closing_timed_out();
    return;
  }
  const auto due = [&](Duration after) {
    const Instant at = idle_since_ + static_cast<Instant>(after.count());
    if (at <= worker_.now()) return true;
    worker_.arm_at(*this, at);
    return false;
  };
  switch (recv_) {
    case Recv::idle:
      if (due(draining_ ? kDrainGrace : limits_.keep_alive_timeout)) end_session(Fault::none);
      return;
    case Recv::head:
      if (head_due() > worker_.now()) worker_.arm_at(*this, head_due());
      else if (draining_) end_session(Fault::none);
      else reject(Fault::head_timeout, {});
      return;
    case Recv::body:
    case Recv::trailers:
      if (LimitHit limit; body_too_slow(limit)) {
        reject(Fault::too_slow, limit);
        return;
      }
      break;
    default: break;
  }
  probe();
  if (!dead_) worker_.arm(*this, active_ ? std::min(kProbe, limits_.body_rate_window) : limits_.keep_alive_timeout);
}

}  // namespace
}  // namespace twp::h1

namespace twp {

std::unique_ptr<Session> make_h1_server(Worker& worker, std::unique_ptr<Transport> transport, Acceptor& acceptor,
                                        SessionOwner& owner, const HttpLimits& limits, Chain first) {
  return std::make_unique<h1::H1Server>(worker, std::move(transport), acceptor, owner, limits, std::move(first));
}

}  // namespace twp
