// The gRPC services: twp.Echo in all four kinds of call, and the standard health check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/chain.h"
#include "origin/grpc.h"
#include "origin/handlers.h"

namespace twp::origin {

/// `/twp.Echo/Unary`, `/BidiStream`: what comes goes back, message by message. `/ServerStream`: the one message kRepeats
/// times. `/ClientStream`: all messages joined into one, which for Protocol Buffers means merged. `/grpc.health.v1.Health/
/// Check`: SERVING for "" and "twp.Echo", else NOT_FOUND.
///
/// Messages are opaque octets up to grpc::kMaxMessage; compressed ones are UNIMPLEMENTED.
class GrpcCall final : public Handler<GrpcCall>, grpc::ReaderEvents {
 public:
  enum class Kind : std::uint8_t { unary, client_stream, server_stream, bidi, health, unknown };
  static constexpr unsigned kRepeats = 10;

  GrpcCall(Site& site, Kind kind) noexcept : Handler(site), kind_(kind) {}

  /// The call of this path; `unknown` when there is none.
  static Kind kind_of(std::string_view path) noexcept;

  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream& s, HeaderBlock&&) noexcept override { request_over(s); }
  void on_sent(Stream& s, std::size_t n) noexcept override;

 private:
  static constexpr std::size_t kAhead = 1024 * 1024;  // octets of repeats queued before they must have left

  bool passes_through() const noexcept { return kind_ == Kind::unary || kind_ == Kind::bidi; }
  void on_message(std::span<const std::byte> octets, bool end) noexcept override;
  void request_over(Stream& s) noexcept;
  void send_held(Stream& s) noexcept;
  void repeat(Stream& s) noexcept;
  void finish(Stream& s, grpc::Status status, std::string_view message = {}) noexcept;
  void health(Stream& s) noexcept;

  grpc::Reader reader_;
  std::string held_;  // messages without their prefixes
  std::size_t queued_ = 0;
  unsigned repeats_left_ = 0;
  Kind kind_;
  bool done_ = false;  // the status has been sent
};

}  // namespace twp::origin
