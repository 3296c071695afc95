#include "origin/handlers.h"

#include <algorithm>
#include <chrono>

#include "origin/content.h"

namespace twp::origin {
namespace {

std::chrono::milliseconds ms(std::uint64_t n) noexcept { return std::chrono::milliseconds(n); }

std::string_view as_text(std::span<const std::byte> octets) noexcept {
  return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

}  // namespace

void Discard::on_body(Stream& s, Slice body, End end) noexcept {
  s.consume(body.size());
  if (end == End::yes) finish(s);
}

void Discard::finish(Stream& s) noexcept {
  // The answer may hand the stream to another handler: then on_gone goes there and this object is free.
  site_.answer(s, ask_);
  if (&s.events() != this) site_.release(*this);
}

Delay::Delay(Site& site, Stream& s, const Ask& ask) noexcept : Handler(site), stream_(s), head_(ask.head) {
  site_.worker().arm(*this, ms(ask.page.n));
}
void Delay::on_timer() noexcept { site_.answer_json(stream_, head_); }
void Delay::on_gone(Stream&, Fault) noexcept {
  cancel();
  site_.release(*this);
}

void Download::pump(Stream& s) noexcept {
  while (left_ != 0 && queued_ < kAhead) {
    Slice piece = pattern_slice(at_, std::min<std::uint64_t>(left_, kAhead - queued_));
    at_ += piece.size();
    left_ -= piece.size();
    queued_ += piece.size();
    s.send_body(std::move(piece), left_ == 0 ? End::yes : End::no);
  }
}
void Download::on_sent(Stream& s, std::size_t n) noexcept {
  queued_ -= n;
  if (queued_ <= kAhead / 2) pump(s);
}

Ticker::Ticker(Site& site, Stream& s, const Page& page) noexcept : Handler(site), stream_(s), page_(page) {
  site_.worker().arm(*this, ms(0));
}
void Ticker::on_timer() noexcept {
  waiting_ = queued_ >= kAhead;
  if (waiting_) return;
  for (std::uint64_t left = page_.n; left != 0;) {
    Slice piece = pattern_slice(at_, left);
    left -= piece.size();
    at_ += piece.size();
    queued_ += piece.size();
    stream_.send_body(std::move(piece), left == 0 && page_.chunks == 1 ? End::yes : End::no);
  }
  if (--page_.chunks != 0) site_.worker().arm(*this, ms(page_.interval_ms));
}
void Ticker::on_sent(Stream&, std::size_t n) noexcept {
  queued_ -= n;
  if (waiting_ && queued_ < kAhead) on_timer();
}
void Ticker::on_gone(Stream&, Fault) noexcept {
  cancel();
  site_.release(*this);
}

void Early::answer(Stream& s) noexcept {
  if (!answered_) site_.answer_json(s, head_);
  answered_ = true;
}
void Early::on_body(Stream& s, Slice body, End end) noexcept {
  seen_ += body.size();
  s.consume(body.size());
  if (seen_ >= kAfter || end == End::yes) answer(s);
}

void Reset::on_sent(Stream& s, std::size_t n) noexcept {
  sent_ += n;
  if (sent_ >= kSent) s.reset(Fault::internal);
}

void WsEcho::send(std::string_view octets, End end) noexcept {
  queued_ += octets.size();
  while (octets.size() > kBlockSize) {
    stream_.send_body(Slice::copy_of(octets.substr(0, kBlockSize)), End::no);
    octets.remove_prefix(kBlockSize);
  }
  stream_.send_body(Slice::copy_of(octets), end);
}

void WsEcho::send_header(const ws::FrameHeader& h) noexcept {
  ws::FrameHeader out = h;
  out.masked = false;
  std::array<std::byte, ws::kMaxHeader> octets{};
  send(as_text(std::span(octets).first(ws::encode_header(out, octets))));
}

void WsEcho::on_frame(const ws::FrameHeader& h) noexcept {
  frame_ = h;
  streaming_ = h.length > kHold;
  if (streaming_) send_header(h);
}

void WsEcho::on_payload(std::span<const std::byte> octets, bool end) noexcept {
  if (streaming_) {
    send(as_text(octets));
    if (end) streaming_ = false;
    return;
  }
  held_.append_copy(octets);
  if (!end) return;
  send_header(frame_);
  while (!held_.empty()) {
    Slice piece = held_.pop_front();
    queued_ += piece.size();
    stream_.send_body(std::move(piece), End::no);
  }
}

void WsEcho::on_control(ws::Opcode opcode, std::span<const std::byte> payload) noexcept {
  if (opcode == ws::Opcode::ping) send(ws::control_frame(ws::Opcode::pong, as_text(payload)));
  // The code comes back, the reason does not (RFC 6455 §5.5.1).
  if (opcode == ws::Opcode::close)
    finish(ws::control_frame(ws::Opcode::close, as_text(payload.first(std::min<std::size_t>(2, payload.size())))));
}

void WsEcho::finish(std::string_view close) noexcept {
  if (done_) return;
  done_ = true;
  // A close frame has no place inside a frame that is half sent.
  if (streaming_) {
    stream_.reset(Fault::protocol_error);
    return;
  }
  send(close, End::yes);
  site_.worker().arm(*this, std::chrono::seconds(5));  // for the peer to close its side
}

void WsEcho::credit() noexcept {
  const std::size_t n = owed_ - std::min(owed_, queued_);
  owed_ -= n;
  if (n != 0) stream_.consume(n);
}

void WsEcho::on_body(Stream&, Slice body, End end) noexcept {
  owed_ += body.size();
  if (!done_) {
    const ws::CloseCode failed = reader_.feed(body.bytes(), *this);
    if (failed != ws::CloseCode::none) finish(ws::close_frame(failed));
  }
  if (end == End::yes) {
    // Without a close frame there is none to answer; our side ends all the same.
    finish({});
    cancel();
  }
  credit();
}

void WsEcho::on_sent(Stream&, std::size_t n) noexcept {
  queued_ -= n;
  credit();
}

void WsEcho::on_gone(Stream&, Fault) noexcept {
  cancel();
  site_.release(*this);
}

}  // namespace twp::origin
