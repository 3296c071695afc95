// GrpcLane (declared in lane.h): unary calls.
#include <algorithm>

#include "loadgen/driver.h"

namespace twp::load {

void GrpcLane::start(Instant intended) noexcept {
  Stream* s = begin_on_new_stream(intended);
  if (s == nullptr) return;
  Session& session = s->session();
  reader_ = grpc::Reader();
  received_ = 0;
  wrong_ = false;
  s->send_head(driver_.request(), End::no);
  const Payload& payload = driver_.load().payload;
  s->send_body(Slice::copy_of(grpc::prefix(static_cast<std::uint32_t>(payload.size()))),
               payload.size() == 0 ? End::yes : End::no);
  for (std::uint64_t at = 0; at != payload.size();) {
    Slice piece = payload.slice(at, payload.size() - at);
    at += piece.size();
    s->send_body(std::move(piece), at == payload.size() ? End::yes : End::no);
  }
  if (driver_.plan().new_connection) session.drain();
}

void GrpcLane::refuse(Failure why, std::string_view detail) noexcept {
  if (busy_) fail(why, detail);
}

void GrpcLane::on_head(Stream&, Head&& head, End end) noexcept {
  if (head.is_interim()) return;
  connection_.note_answer();
  if (head.status != 200)
    refuse(Failure::status, "status " + std::to_string(head.status));
  else if (!grpc::is_content_type(head.fields.get(HeaderId::content_type)))
    refuse(Failure::grpc, "the content type is not application/grpc");
  // Without a body the status is in the head ("Trailers-Only").
  if (end == End::yes) finish(head.fields);
}

void GrpcLane::on_message(std::span<const std::byte> octets, bool) noexcept {
  wrong_ |= !driver_.load().payload.matches(received_, octets);
  received_ += octets.size();
}

void GrpcLane::on_body(Stream& s, Slice body, End end) noexcept {
  s.consume(body.size());
  if (reader_.feed(body.bytes(), *this) != grpc::Status::ok)
    refuse(Failure::grpc, "octets that are no gRPC message");
  if (end == End::yes) refuse(Failure::grpc, "a response without grpc-status");
}

void GrpcLane::on_trailers(Stream&, HeaderBlock&& trailers) noexcept { finish(trailers); }

void GrpcLane::finish(const HeaderBlock& fields) noexcept {
  if (!busy_) return;
  const std::string_view status = fields.get(HeaderId::grpc_status);
  if (status.empty()) {
    fail(Failure::grpc, "a response without grpc-status");
  } else if (status != "0") {
    const std::string_view message = fields.get(HeaderId::grpc_message);
    fail(Failure::grpc,
         "grpc-status " + std::string(status) + (message.empty() ? "" : ": " + std::string(message)));
  } else if (!reader_.between_messages() || reader_.messages() != 1) {
    fail(Failure::grpc, std::to_string(reader_.messages()) + " whole messages instead of 1");
  } else if (received_ != driver_.load().payload.size()) {
    fail(Failure::length, "a message of " + std::to_string(received_) + " octets");
  } else if (wrong_) {
    fail(Failure::body, "a message with other octets than were sent");
  } else {
    succeed(received_);
  }
}

void GrpcLane::on_gone(Stream&, Fault why) noexcept { stream_gone(why); }

}  // namespace twp::load
