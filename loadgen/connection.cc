// Connection (declared in driver.h): dials, and dials again.
#include <algorithm>
#include <utility>

#include "loadgen/driver.h"

namespace twp::load {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(10);
constexpr Duration kMaxBackoff = std::chrono::seconds(1);

}  // namespace

Connection::Connection(Driver& driver) : driver_(driver) {
  if (driver.plan().workload == Workload::ws) lane_ = std::make_unique<WsLane>(driver, *this);
  else lane_ = std::make_unique<HttpLane>(driver, *this);
}

Connection::~Connection() = default;

void Connection::dial() noexcept {
  if (driver_.stopping() || dial_ != nullptr || session_ != nullptr) return;
  dial_began_ = monotonic_now();
  answered_ = false;
  dial_ = Dial::start(driver_.worker(), driver_.resolver(), driver_.target(), *this, *this);
}

void Connection::dial_later() noexcept {
  if (driver_.stopping()) return;
  const Duration wait = std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(failures_, 8u)));
  ++failures_;
  driver_.worker().arm(*this, wait);
}

void Connection::on_dialed(Dial&, std::unique_ptr<Session> session) noexcept {
  driver_.worker().retire(std::move(dial_));
  session_ = std::move(session);
  if (driver_.stopping()) return;
  if (driver_.plan().workload == Workload::ws) {
    lane_->attach();
    return;
  }
  opened();
  driver_.offer(*lane_);
}

void Connection::opened() noexcept {
  const bool first = !std::exchange(counted_, true);
  driver_.connection_opened(Duration(static_cast<std::int64_t>(monotonic_now() - dial_began_)), first);
}

void Connection::on_dial_failed(Dial&, Fault why, const std::string& detail) noexcept {
  driver_.worker().retire(std::move(dial_));
  if (driver_.stopping()) return;
  if (why == Fault::tls_verify) driver_.dial_failed(detail + "; trust its CA with --ca FILE, or use --insecure");
  else driver_.dial_failed("cannot connect to " + detail);
  dial_later();
}

void Connection::on_capacity(Session& session) noexcept {
  if (session.capacity() != 0 && !lane_->busy()) driver_.offer(*lane_);
}

void Connection::on_session_gone(Session&, Fault) noexcept {
  lane_->unlink();
  driver_.worker().retire(std::move(session_));
  if (driver_.stopping()) return;
  if (answered_) {
    failures_ = 0;
    dial();
  } else {
    // A connection that never answered anything: dialing again at once would only hammer.
    dial_later();
  }
}

void Connection::close() noexcept {
  cancel();
  lane_->unlink();
  if (dial_ != nullptr) driver_.worker().retire(std::move(dial_));
  if (session_ != nullptr) session_->close(Fault::none);
}

}  // namespace twp::load
