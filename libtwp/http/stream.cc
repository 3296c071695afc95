#include "http/stream.h"

#include <array>
#include <utility>

#include "base/log.h"

namespace twp {
namespace {

constexpr SendState kIllegal = static_cast<SendState>(255);

// The one table of legal order: row = state, column = Stream::Call.
constexpr std::array<std::array<SendState, 6>, 4> kNext{{
    // interim          head             head_end         body             body_end         trailers
    {SendState::head, SendState::body, SendState::done, kIllegal, kIllegal, kIllegal},          // head
    {kIllegal, kIllegal, kIllegal, SendState::body, SendState::done, SendState::done},          // body
    {kIllegal, kIllegal, kIllegal, kIllegal, kIllegal, kIllegal},                               // done
    {SendState::reset, SendState::reset, SendState::reset, SendState::reset, SendState::reset, SendState::reset},
}};

}  // namespace

bool Stream::legal(Call call) {
  if (send_ == SendState::reset) return false;  // a caller that has not heard yet; quietly nothing
  const SendState next = kNext[static_cast<std::size_t>(send_)][static_cast<std::size_t>(call)];
  if (next == kIllegal) {
    // A defect of the caller. The peer must not see a malformed message because of it.
    log_limited(LogLevel::error, "stream call out of order, resetting the stream");
    reset(Fault::internal);
    return false;
  }
  send_ = next;
  return true;
}

void Acceptor::rejected(Session&, Fault) noexcept {}

void Stream::send_head(const Head& head, End end) {
  const Call call = head.is_interim() ? Call::interim : end == End::yes ? Call::head_end : Call::head;
  if (legal(call)) do_send_head(head, end);
}

void Stream::send_body(Slice body, End end) {
  if (body.empty() && end == End::no) return;
  if (legal(end == End::yes ? Call::body_end : Call::body)) do_send_body(std::move(body), end);
}

void Stream::send_trailers(const HeaderBlock& trailers) {
  if (legal(Call::trailers)) do_send_trailers(trailers);
}

void Stream::reset(Fault why) {
  if (std::exchange(send_, SendState::reset) != SendState::reset) do_reset(why);
}

}  // namespace twp
