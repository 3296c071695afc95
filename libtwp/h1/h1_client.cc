// The client role: requests out, responses in.
#include <string>
#include <utility>

#include "base/log.h"
#include "h1/h1_connection.h"
#include "h1/h1_session.h"

namespace twp::h1 {
namespace {

class H1Client final : public H1Connection {
 public:
  H1Client(Worker& worker, std::unique_ptr<Transport> transport, SessionOwner& owner, const HttpLimits& limits)
      : H1Connection(worker, std::move(transport), owner, limits, Phase::origin) {}

  // Session
  Stream* open(StreamEvents& events) noexcept override;
  unsigned capacity() const noexcept override { return !active_ && keep_alive_ && !draining_ && !dead_ && !eof_ ? 1 : 0; }
  void drain() noexcept override;

 private:
  void do_send_head(const Head& head, twp::End end) override;
  bool take_head() noexcept override;
  void on_eof(bool truncated) noexcept override;
  void bad_message(Fault f, const LimitHit& limit) noexcept override;
  void after_stream(Fault why, bool complete) noexcept override;
  Fault peer_gone(Fault f) const noexcept override;
  void on_input_in_done() noexcept override;
  bool untouched() const noexcept override { return nothing_sent() && !send_broken_ && !came_back() && !head_done_; }
  void on_timer() noexcept override {
    if (closing_) {
      closing_timed_out();
      return;
    }
    probe();
    if (active_ && !dead_) worker_.arm(*this, kProbe);
  }

  /// Anything of a response is here: the request must not be sent again by itself.
  bool came_back() const noexcept { return head_done_ || recv_ == Recv::head || interims_ != 0; }
  /// The 101 answers our key. Who gave us a key checks the answer to it as well (RFC 6455 §4.1).
  bool proves_websocket(const Head& head) const noexcept {
    return head.fields.get(HeaderId::sec_websocket_accept) == accept_;
  }
  void log_defect(std::string_view what, std::string_view text, std::size_t at);
  void start_response(Head&& head, const MessageInfo& info) noexcept;
  void fail_stream(Fault f) noexcept;

  Method method_ = Method::get;  // of the request
  std::string accept_;           // Sec-WebSocket-Accept for a key that we made; empty: somebody else's key, or none
  bool websocket_ = false;
  bool head_done_ = false;       // the final response head is here
  bool out_of_step_ = false;     // octets came after the end of a response
  std::uint32_t interims_ = 0;
};

Stream* H1Client::open(StreamEvents& events) noexcept {
  if (capacity() == 0) return nullptr;
  begin_stream(events);
  worker_.arm(*this, kProbe);
  recv_ = Recv::idle;
  head_done_ = false;
  interims_ = 0;
  return this;
}

void H1Client::do_send_head(const Head& head, twp::End end) {
  method_ = head.method;
  websocket_ = head.is_connect() && !head.protocol.empty();
  if (websocket_ && head.protocol != "websocket") {
    // Only the WebSocket handshake has a form in HTTP/1.1; sending that for another protocol would be a lie.
    reset(Fault::origin_no_tunnel);
    return;
  }
  WriteInfo info;
  info.websocket = websocket_;
  if (head.is_connect()) {
    info.framing = Framing::tunnel;
  } else if (head.body.is_exact()) {
    info.framing = Framing::length;
    info.length = head.body.n;
  } else if (head.body.is_unknown() && end == twp::End::no) {
    info.framing = Framing::chunked;
  } else if (method_ == Method::post || method_ == Method::put || method_ == Method::patch) {
    info.framing = Framing::length;  // says "Content-Length: 0" (RFC 9110 §8.6)
  }
  if (end == twp::End::yes && info.framing == Framing::length && info.length != 0) {
    reset(Fault::internal);  // announces octets that will never come
    return;
  }
  send_framing_ = info.framing;
  send_left_ = info.length;
  const std::string key = write_request(out_, head, info);
  // Whoever made the key: an origin that cannot answer it does not speak WebSocket, and the client relies on that.
  if (websocket_) accept_ = websocket_accept(key.empty() ? head.fields.get(HeaderId::sec_websocket_key) : key);
  else accept_.clear();
  if (end == twp::End::yes) end_send();
  flush_soon();
}

bool H1Client::take_head() noexcept {
  if (!active_) {
    // Octets that nobody asked for: whatever they are, this connection is not in step any more.
    end_session(Fault::protocol_error);
    return true;
  }
  recv_ = Recv::head;
  std::string_view text;
  if (!gather(text, limits_.max_response_head)) return false;
  RawHead raw;
  const ParseResult r = parse_response_head(text, limits_, raw);
  if (r.status == ParseStatus::need_more) {
    stash();
    return false;
  }
  if (r.status == ParseStatus::bad) {
    if (r.limit.key.empty()) log_defect("malformed head", text, r.size);
    bad_message(r.fault, r.limit);
    return true;
  }
  Head head;
  MessageInfo info;
  Fault f = to_response(std::move(raw), text.substr(0, r.size), method_, websocket_, head, info);
  if (f == Fault::none && info.websocket && !proves_websocket(head)) f = Fault::origin_bad_accept;
  if (f != Fault::none) {
    log_defect(f == Fault::origin_bad_framing ? "lengths or codings that contradict each other" : "a head that does not answer the request", text, 0);
    bad_message(f, {});
    return true;
  }
  drop_parsed(r.size);
  if (!head.is_interim()) {
    start_response(std::move(head), info);
    return true;
  }
  if (++interims_ > limits_.max_interim) {
    bad_message(Fault::origin_bad_head, {"max_interim", interims_, limits_.max_interim});
    return true;
  }
  recv_ = Recv::idle;
  if (gone_ == Fault::none) events().on_head(*this, std::move(head), twp::End::no);
  return true;
}

void H1Client::start_response(Head&& head, const MessageInfo& info) noexcept {
  head_done_ = true;
  if (!info.keep_alive) keep_alive_ = false;
  begin_body(info);
  if (info.framing == Framing::tunnel) {
    keep_alive_ = false;
  } else if (method_ == Method::connect) {
    // Refused: no tunnel, so our side of it is over as well.
    send_framing_ = Framing::none;
    send_done_ = true;
  }
  if (gone_ == Fault::none)
    events().on_head(*this, std::move(head), recv_ == Recv::done ? twp::End::yes : twp::End::no);
}

void H1Client::on_input_in_done() noexcept {
  // More than the response: never a response to anything we asked.
  keep_alive_ = false;
  out_of_step_ = true;
  cur_ = {};
  in_.clear();
}

Fault H1Client::peer_gone(Fault f) const noexcept {
  // The response is whole: what is lost is at most the rest of an upload that the origin did not want.
  if (recv_ == Recv::done) return send_done_ && out_.empty() && !send_broken_ ? Fault::none : Fault::early_response;
  if (came_back()) return Fault::origin_truncated;
  return f == Fault::peer_reset ? Fault::origin_reset : Fault::origin_closed;
}

void H1Client::on_eof(bool) noexcept {
  keep_alive_ = false;
  if (!active_) {
    end_session(Fault::peer_closed);
    return;
  }
  if (recv_ == Recv::done && send_done_ && out_.empty()) return;  // settle() ends it in order
  if (recv_ == Recv::done) fail_stream(Fault::early_response);
  else fail_stream(came_back() ? Fault::origin_truncated : Fault::origin_closed);
}

void H1Client::fail_stream(Fault f) noexcept {
  keep_alive_ = false;
  finish_stream(f);
  end_session(f);
}

void H1Client::log_defect(std::string_view what, std::string_view text, std::size_t at) {
  constexpr std::size_t kShown = 60;
  log_limited(LogLevel::warning, "response from " + peer().remote.text() + " refused: " + std::string(what) + " at octet " +
                                     std::to_string(at) + ": \"" + std::string(text.substr(at, kShown)) + '"');
}

void H1Client::bad_message(Fault f, const LimitHit& limit) noexcept {
  if (f == Fault::bad_chunk || f == Fault::bad_trailer)
    log_limited(LogLevel::warning, "response from " + peer().remote.text() + " refused: malformed " +
                                       (f == Fault::bad_chunk ? "chunk" : "trailer section") + " after " +
                                       std::to_string(body_octets_) + " octets of body");
  if (!limit.key.empty())
    log_limited(LogLevel::warning, "response from " + peer().remote.text() + " refused: limits." + std::string(limit.key) +
                                       " = " + std::to_string(limit.limit) + ", seen " +
                                       std::to_string(limit.observed) + " (raise limits." + std::string(limit.key) + ")");
  switch (f) {
    case Fault::bad_chunk:
    case Fault::bad_trailer: fail_stream(Fault::origin_bad_framing); return;
    case Fault::too_many_fields:
    case Fault::head_too_large: fail_stream(Fault::origin_head_too_large); return;
    default: fail_stream(f);
  }
}

void H1Client::after_stream(Fault why, bool complete) noexcept {
  if (!complete) {
    end_session(why);
    return;
  }
  recv_ = Recv::idle;
  if (has_input()) {
    keep_alive_ = false;
    out_of_step_ = true;
  }
  if (!keep_alive_ || draining_ || eof_) {
    end_session(out_of_step_ ? Fault::protocol_error : Fault::none);
    return;
  }
  owner_.on_capacity(*this);
}

void H1Client::drain() noexcept {
  draining_ = true;
  if (!active_) end_session(Fault::none);
  else owner_.on_capacity(*this);
}

}  // namespace
}  // namespace twp::h1

namespace twp {

std::unique_ptr<Session> make_h1_client(Worker& worker, std::unique_ptr<Transport> transport, SessionOwner& owner,
                                        const HttpLimits& limits) {
  return std::make_unique<h1::H1Client>(worker, std::move(transport), owner, limits);
}

}  // namespace twp
