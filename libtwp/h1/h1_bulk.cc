// Bulk bodies below the codec: handing the sockets to a RawPump and taking them back.
#include "h1/h1_connection.h"

namespace twp::h1 {

RawPort::End H1Connection::source() noexcept {
  if (dead_ || eof_ || recv_ != Recv::body || !cur_.empty() || !in_.empty()) return {};
  if (recv_framing_ == Framing::chunked) return {};
  return {transport_->raw_fd(), recv_left_};
}

RawPort::End H1Connection::sink() noexcept {
  if (dead_ || send_broken_ || send_done_ || !out_.empty() || send_state() != SendState::body) return {};
  switch (send_framing_) {
    case Framing::length: return {transport_->raw_fd(), send_left_};
    case Framing::tunnel:
    case Framing::until_close: return {transport_->raw_fd(), kNoEnd};
    default: return {};
  }
}

void H1Connection::attach_source(RawPump* pump) noexcept {
  source_pump_ = pump;
  pump_paused_ = false;
  if (pump == nullptr && !dead_) read_soon();
}

void H1Connection::attach_sink(RawPump* pump) noexcept {
  sink_pump_ = pump;
  if (pump == nullptr && !dead_) flush_soon();
}

void H1Connection::raw_received(std::uint64_t n, bool) noexcept {
  pump_paused_ = false;
  body_octets_ += n;
  if (recv_left_ != kNoEnd) recv_left_ -= n;
  if (recv_left_ != 0) return;
  recv_ = Recv::done;
  source_pump_ = nullptr;
  deliver({}, twp::End::yes);
  read_soon();
}

void H1Connection::raw_sent(std::uint64_t n, bool) noexcept {
  if (send_framing_ == Framing::length) send_left_ -= n;
}

void H1Connection::raw_failed(int) noexcept {
  // The next read or write of our own meets the same condition and deals with it.
  source_pump_ = sink_pump_ = nullptr;
  if (!dead_) {
    read_soon();
    flush_soon();
  }
}

}  // namespace twp::h1
