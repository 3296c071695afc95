#include "origin/grpc_call.h"

#include <array>
#include <utility>

namespace twp::origin {
namespace {

struct Method {
  std::string_view path;
  GrpcCall::Kind kind;
};
constexpr std::array kMethods{
    Method{"/twp.Echo/Unary", GrpcCall::Kind::unary},
    Method{"/twp.Echo/ClientStream", GrpcCall::Kind::client_stream},
    Method{"/twp.Echo/ServerStream", GrpcCall::Kind::server_stream},
    Method{"/twp.Echo/BidiStream", GrpcCall::Kind::bidi},
    Method{"/grpc.health.v1.Health/Check", GrpcCall::Kind::health},
};

std::string_view reason(grpc::Status status) noexcept {
  switch (status) {
    case grpc::Status::unimplemented: return "compressed messages are not taken";
    case grpc::Status::resource_exhausted: return "the message is longer than 4 MiB";
    default: return "this is not gRPC's framing";
  }
}

}  // namespace

GrpcCall::Kind GrpcCall::kind_of(std::string_view path) noexcept {
  for (const Method& m : kMethods)
    if (m.path == path) return m.kind;
  return Kind::unknown;
}

void GrpcCall::on_message(std::span<const std::byte> octets, bool) noexcept {
  if (!passes_through()) held_.append(reinterpret_cast<const char*>(octets.data()), octets.size());
}

void GrpcCall::finish(Stream& s, grpc::Status status, std::string_view message) noexcept {
  if (std::exchange(done_, true)) return;
  HeaderBlock trailers;
  trailers.add(HeaderId::grpc_status, std::to_string(static_cast<unsigned>(status)));
  if (!message.empty()) trailers.add(HeaderId::grpc_message, message);
  s.send_trailers(trailers);
}

void GrpcCall::on_body(Stream& s, Slice body, End end) noexcept {
  if (done_) {
    s.consume(body.size());
    return;
  }
  const grpc::Status status = reader_.feed(body.bytes(), *this);
  const bool too_much = held_.size() > grpc::kMaxMessage;
  if (status != grpc::Status::ok || too_much || (kind_ == Kind::unary && reader_.messages() > 1)) {
    s.consume(body.size());
    if (status != grpc::Status::ok)
      finish(s, status, reason(status));
    else if (too_much)
      finish(s, grpc::Status::resource_exhausted, "the messages together are longer than 4 MiB");
    else
      finish(s, grpc::Status::unimplemented, "one message is what this call takes");
    return;
  }
  if (passes_through() && !body.empty()) {
    queued_ += body.size();
    s.send_body(std::move(body), End::no);  // its credit returns when it has left
  } else {
    s.consume(body.size());
  }
  if (end == End::yes) request_over(s);
}

void GrpcCall::request_over(Stream& s) noexcept {
  if (done_) return;
  const bool one = kind_ != Kind::bidi && kind_ != Kind::client_stream;
  if (!reader_.between_messages())
    return finish(s, grpc::Status::internal, "the request ends inside a message");
  if (one && reader_.messages() != 1)
    return finish(s, grpc::Status::unimplemented, "one message is what this call takes");
  switch (kind_) {
    case Kind::client_stream:
      send_held(s);
      finish(s, grpc::Status::ok);
      break;
    case Kind::server_stream:
      repeats_left_ = kRepeats;
      repeat(s);
      break;
    case Kind::health: health(s); break;
    default: finish(s, grpc::Status::ok); break;
  }
}

void GrpcCall::send_held(Stream& s) noexcept {
  const auto head = grpc::prefix(static_cast<std::uint32_t>(held_.size()));
  queued_ += head.size() + held_.size();
  s.send_body(Slice::copy_of(head), End::no);
  for (std::string_view rest = held_; !rest.empty();) {
    const std::string_view piece = rest.substr(0, kBlockSize);
    s.send_body(Slice::copy_of(piece), End::no);
    rest.remove_prefix(piece.size());
  }
}

void GrpcCall::repeat(Stream& s) noexcept {
  for (; repeats_left_ != 0 && queued_ < kAhead; --repeats_left_) send_held(s);
  if (repeats_left_ == 0) finish(s, grpc::Status::ok);
}

void GrpcCall::on_sent(Stream& s, std::size_t n) noexcept {
  queued_ -= n;
  if (passes_through())
    s.consume(n);
  else if (repeats_left_ != 0)
    repeat(s);
}

// grpc.health.v1: HealthCheckRequest{string service = 1}, HealthCheckResponse{ServingStatus status = 1}, SERVING = 1.
void GrpcCall::health(Stream& s) noexcept {
  std::string_view service;
  if (!held_.empty()) {
    const auto length = held_.size() < 2 ? 0u : static_cast<unsigned>(static_cast<unsigned char>(held_[1]));
    if (held_[0] != '\x0a' || length >= 128 || held_.size() != 2 + length)
      return finish(s, grpc::Status::invalid_argument, "not a HealthCheckRequest");
    service = std::string_view(held_).substr(2);
  }
  if (!service.empty() && service != "twp.Echo") return finish(s, grpc::Status::not_found, "no such service");
  held_ = "\x08\x01";
  send_held(s);
  finish(s, grpc::Status::ok);
}

}  // namespace twp::origin
