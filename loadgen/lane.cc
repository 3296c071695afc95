#include "loadgen/lane.h"

#include <algorithm>
#include <utility>

#include "loadgen/driver.h"

namespace twp::load {
namespace {

constexpr Duration kReadTick = std::chrono::milliseconds(20);  // a slow reader takes its share this often

}  // namespace

void Lane::begin(Instant intended) noexcept {
  busy_ = true;
  intended_ = intended;
  started_ = driver_.clock();
}

bool Lane::can_open() const noexcept {
  Session* s = connection_.session();
  return stream_ == nullptr && s != nullptr && s->capacity() != 0;
}

Stream* Lane::begin_on_new_stream(Instant intended) noexcept {
  begin(intended);
  stream_ = connection_.session()->open(*this);
  if (stream_ == nullptr) fail(Failure::transport, "the connection takes no request");
  return stream_;
}

void Lane::succeed(std::uint64_t octets) noexcept {
  busy_ = false;
  driver_.record_success(*this, octets);
}

void Lane::fail(Failure why, std::string_view detail) noexcept {
  busy_ = false;
  driver_.record_failure(*this, why, detail);
}

void Lane::go_on() noexcept { driver_.offer(*this); }

void Lane::stream_gone(Fault why) noexcept {
  stream_ = nullptr;
  // After the run the streams are closed by us.
  if (busy_ && driver_.running()) {
    switch (why) {
      case Fault::origin_refused_stream:
        fail(Failure::refused, "request refused before it was processed (REFUSED_STREAM or GOAWAY)");
        break;
      case Fault::origin_truncated:
        connection_.note_broken();
        fail(Failure::transport, "response cut short: its stream or connection was reset or closed");
        break;
      case Fault::origin_stream_reset: fail(Failure::reset, "stream reset by the server"); break;
      default:
        connection_.note_broken();
        fail(Failure::transport, "connection failed: " + std::string(log_word(why)));
        break;
    }
  }
  busy_ = false;
  connection_.wait(*this);
}

void Lane::expire() noexcept {
  fail(Failure::timeout, "no complete response within --timeout");
  if (stream_ != nullptr) stream_->reset(Fault::cancelled);
}

// --- requests -----------------------------------------------------------------------------------------

void HttpLane::start(Instant intended) noexcept {
  Stream* s = begin_on_new_stream(intended);
  if (s == nullptr) return;
  Session& session = s->session();
  to_send_ = driver_.load().payload.size();
  queued_ = received_ = withheld_ = 0;
  expected_ = -1;
  status_ = 0;
  s->send_head(driver_.request(), to_send_ == 0 ? End::yes : End::no);
  if (to_send_ != 0) pump(*s);
  if (driver_.plan().new_connection) session.drain();
}

void HttpLane::pump(Stream& s) noexcept {
  const Payload& payload = driver_.load().payload;
  while (to_send_ != 0 && queued_ < kAhead) {
    Slice piece = payload.slice(payload.size() - to_send_, std::min<std::uint64_t>(to_send_, kAhead - queued_));
    to_send_ -= piece.size();
    queued_ += piece.size();
    s.send_body(std::move(piece), to_send_ == 0 ? End::yes : End::no);
  }
}

void HttpLane::on_sent(Stream& s, std::size_t n) noexcept {
  queued_ -= std::min<std::uint64_t>(n, queued_);
  if (queued_ <= kAhead / 2) pump(s);
}

void HttpLane::on_head(Stream& s, Head&& head, End end) noexcept {
  if (head.is_interim()) return;
  status_ = head.status;
  connection_.note_answer();
  if (head.body.is_exact()) expected_ = static_cast<std::int64_t>(head.body.n);
  if (to_send_ != 0 || queued_ != 0) driver_.note_early();
  if (driver_.load().check_hash) hash_ = BodyHash();
  if (driver_.plan().read_rate != 0) {
    last_credit_ = driver_.worker().now();
    driver_.worker().arm(*this, kReadTick);
  }
  if (end == End::yes) {
    if (driver_.plan().method == "HEAD") expected_ = -1;
    finish();
  }
  static_cast<void>(s);
}

void HttpLane::on_body(Stream& s, Slice body, End end) noexcept {
  received_ += body.size();
  if (driver_.load().check_hash) hash_.feed(body.bytes());
  if (driver_.plan().read_rate == 0) s.consume(body.size());
  else withheld_ += body.size();
  if (end == End::yes) finish();
}

void HttpLane::on_timer() noexcept {
  if (stream_ == nullptr) return;
  const Instant now = driver_.worker().now();
  const auto earned = static_cast<std::uint64_t>(static_cast<double>(now - last_credit_) / 1e9 *
                                                 static_cast<double>(driver_.plan().read_rate));
  const std::uint64_t n = std::min(earned, withheld_);
  if (earned != 0) last_credit_ = now;
  withheld_ -= n;
  driver_.worker().arm(*this, kReadTick);
  if (n != 0) stream_->consume(static_cast<std::size_t>(n));
}

void HttpLane::finish() noexcept {
  if (!busy_) return;
  const Plan& plan = driver_.plan();
  connection_.note_answer();
  if (!plan.expect_status.holds(status_)) {
    fail(Failure::status, "status " + std::to_string(status_));
  } else if ((plan.expect_length >= 0 && received_ != static_cast<std::uint64_t>(plan.expect_length)) ||
             (expected_ >= 0 && received_ != static_cast<std::uint64_t>(expected_))) {
    fail(Failure::length, "a body of " + std::to_string(received_) + " octets");
  } else if (driver_.load().check_hash && !driver_.right_body(hash_.value())) {
    fail(Failure::body, "a body with other octets than expected");
  } else {
    succeed(received_);
  }
}

void HttpLane::on_gone(Stream&, Fault why) noexcept {
  cancel();
  stream_gone(why);
}

// --- WebSocket ----------------------------------------------------------------------------------------

void WsLane::go_on() noexcept {
  if (open_) {
    driver_.offer(*this);
    return;
  }
  if (stream_ != nullptr) return;
  Stream* s = connection_.session()->open(*this);
  if (s == nullptr) {
    connection_.wait(*this);
    return;
  }
  stream_ = s;
  shaking_ = true;
  reader_ = ws::Reader(ws::Reader::Role::client);
  s->send_head(driver_.request(), End::no);
}

void WsLane::refused(const std::string& why) noexcept {
  if (!std::exchange(shaking_, false)) return;
  driver_.dial_failed("the WebSocket handshake " + why);
}

void WsLane::on_head(Stream& s, Head&& head, End end) noexcept {
  if (head.is_interim()) return;
  if (head.status == 200 && head.is_connect() && end == End::no) {
    shaking_ = false;
    open_ = true;
    connection_.lane_opened();
    driver_.offer(*this);
    return;
  }
  refused(head.status == 200 ? "was answered with a page (status 200) instead of the WebSocket protocol"
                             : "was answered with status " + std::to_string(head.status));
  s.reset(Fault::cancelled);
}

ws::Mask WsLane::new_mask() noexcept {
  const std::uint32_t r = driver_.random();
  return {static_cast<std::uint8_t>(r), static_cast<std::uint8_t>(r >> 8), static_cast<std::uint8_t>(r >> 16),
          static_cast<std::uint8_t>(r >> 24)};
}

void WsLane::start(Instant intended) noexcept {
  begin(intended);
  received_ = 0;
  wrong_ = false;
  const Payload& payload = driver_.load().payload;
  const ws::FrameHeader h{ws::Opcode::binary, true, true, new_mask(), payload.size()};
  std::array<std::byte, kBlockSize> out;
  std::size_t n = ws::encode_header(h, std::span(out).first<ws::kMaxHeader>());
  for (std::uint64_t at = 0;;) {
    if (at != payload.size()) {
      const Slice piece = payload.slice(at, out.size() - n);
      std::ranges::copy(piece.bytes(), out.begin() + static_cast<std::ptrdiff_t>(n));
      ws::apply_mask(std::span(out).subspan(n, piece.size()), h.mask, at);
      n += piece.size();
      at += piece.size();
    }
    stream_->send_body(Slice::copy_of(std::span(out).first(n)), End::no);
    n = 0;
    if (at == payload.size()) return;
  }
}

void WsLane::on_frame(const ws::FrameHeader& h) noexcept { last_frame_ = h.fin; }

void WsLane::on_payload(std::span<const std::byte> octets, bool end) noexcept {
  wrong_ |= !driver_.load().payload.matches(received_, octets);
  received_ += octets.size();
  if (!end || !last_frame_ || !busy_) return;
  connection_.note_answer();
  if (received_ != driver_.load().payload.size()) fail(Failure::length, "a message of " + std::to_string(received_) + " octets");
  else if (wrong_) fail(Failure::body, "a message with other octets than were sent");
  else succeed(received_);
  driver_.offer(*this);
}

void WsLane::on_control(ws::Opcode opcode, std::span<const std::byte> payload) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  const ws::Mask mask = new_mask();
  if (opcode == ws::Opcode::ping)
    stream_->send_body(Slice::copy_of(ws::control_frame(ws::Opcode::pong, text, &mask)), End::no);
  if (opcode == ws::Opcode::close) {
    open_ = false;
    stream_->send_body(Slice::copy_of(ws::control_frame(ws::Opcode::close, text.substr(0, 2), &mask)), End::yes);
  }
}

void WsLane::on_body(Stream& s, Slice body, End end) noexcept {
  s.consume(body.size());
  if (reader_.feed(body.bytes(), *this) != ws::CloseCode::none || (end == End::yes && open_)) {
    open_ = false;
    s.reset(Fault::protocol_error);
  }
}

void WsLane::on_gone(Stream&, Fault why) noexcept {
  const bool was_open = std::exchange(open_, false);
  if (shaking_) {
    switch (why) {
      case Fault::origin_bad_accept:
        refused("was answered with a Sec-WebSocket-Accept that does not belong to our key");
        break;
      case Fault::origin_no_tunnel: refused("is not possible: the server does not allow extended CONNECT (RFC 8441)"); break;
      default: refused("failed: " + std::string(log_word(why))); break;
    }
  }
  stream_gone(why);
  if (!was_open) connection_.lane_refused(*this);
}

}  // namespace twp::load
