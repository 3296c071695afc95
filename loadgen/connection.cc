// Connection (declared in driver.h): dials, and dials again.
#include <algorithm>
#include <utility>

#include "loadgen/driver.h"
#include "loadgen/endpoint.h"

namespace twp::load {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(10);
constexpr Duration kMaxBackoff = std::chrono::seconds(1);

}  // namespace

Connection::Connection(Driver& driver, unsigned lanes) : driver_(driver), usable_lanes_(lanes) {
  for (unsigned i = 0; i < lanes; ++i) {
    switch (driver.plan().workload) {
      case Workload::ws: lanes_.push_back(std::make_unique<WsLane>(driver, *this)); break;
      case Workload::grpc: lanes_.push_back(std::make_unique<GrpcLane>(driver, *this)); break;
      default: lanes_.push_back(std::make_unique<HttpLane>(driver, *this)); break;
    }
  }
}

Connection::~Connection() = default;

void Connection::dial() noexcept {
  if (driver_.stopping() || dial_ != nullptr || session_ != nullptr) return;
  dial_began_ = monotonic_now();
  answered_ = broken_ = false;
  dial_ = Dial::start(driver_.worker(), driver_.resolver(), driver_.target(), *this, *this);
}

void Connection::try_later() noexcept {
  if (driver_.stopping()) return;
  const Duration wait = std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(failures_, 8u)));
  ++failures_;
  driver_.worker().arm(*this, wait);
}

void Connection::on_dialed(Dial&, std::unique_ptr<Session> session) noexcept {
  driver_.worker().retire(std::move(dial_));
  session_ = std::move(session);
  open_lanes_ = 0;
  settled_ = false;
  usable_lanes_ = static_cast<unsigned>(lanes_.size());
  if (driver_.stopping()) return;
  if (!lanes_.front()->needs_handshake()) opened();
  for (auto& lane : lanes_) wait(*lane);
  go_on();
}

void Connection::lane_opened() noexcept {
  failures_ = 0;
  if (++open_lanes_ == usable_lanes_) opened();
}

void Connection::lane_refused(Lane& lane) noexcept {
  wait(lane);
  try_later();
}

void Connection::opened() noexcept {
  const bool first = !std::exchange(counted_, true);
  driver_.connection_opened(Duration(static_cast<std::int64_t>(monotonic_now() - dial_began_)), first);
}

void Connection::on_timer() noexcept {
  if (session_ == nullptr) dial();
  else go_on();
}

void Connection::go_on() noexcept {
  // Each lane once: what cannot go on now waits again.
  IList<Lane> all;
  all.splice_back(waiting_);
  while (!all.empty() && session_ != nullptr && session_->capacity() != 0) {
    Lane& lane = all.pop_front();
    lane.go_on();
  }
  all.splice_back(waiting_);
  waiting_.splice_back(all);
}

void Connection::on_dial_failed(Dial&, Fault why, const std::string& detail) noexcept {
  driver_.worker().retire(std::move(dial_));
  if (driver_.stopping()) return;
  driver_.dial_failed(dial_failure(why, detail));
  try_later();
}

/// HTTP/2: the server's SETTINGS say how many requests it takes at a time. The lanes above that wait for ever.
void Connection::look_at_limit(const Session& session) noexcept {
  if (!session.settled() || std::exchange(settled_, true)) return;
  const unsigned most = session.capacity() + session.active();
  if (most == 0 || most >= lanes_.size()) return;
  usable_lanes_ = most;
  driver_.note_allowed(most);
}

void Connection::on_capacity(Session& session) noexcept {
  look_at_limit(session);
  // A lane whose handshake was refused waits for the timer: asking again at once would only hammer.
  if (!armed()) go_on();
}

void Connection::on_session_gone(Session&, Fault why) noexcept {
  for (auto& lane : lanes_) lane->unlink();
  driver_.worker().retire(std::move(session_));
  if (driver_.stopping()) return;
  // Nothing was in flight, and what came all the same was no answer to anything.
  if (why == Fault::protocol_error && answered_ && !broken_) driver_.record_stray(*lanes_.front());
  if (answered_) {
    failures_ = 0;
    dial();
  } else {
    // A connection that never answered anything: dialing again at once would only hammer.
    try_later();
  }
}

void Connection::close() noexcept {
  cancel();
  for (auto& lane : lanes_) lane->unlink();
  if (dial_ != nullptr) driver_.worker().retire(std::move(dial_));
  if (session_ != nullptr) session_->close(Fault::none);
}

}  // namespace twp::load
