// Lane: one request in flight at a time, or nothing. A connection has as many lanes as it may have streams.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ilist.h"
#include "base/timer_wheel.h"
#include "http/stream.h"
#include "loadgen/body_hash.h"
#include "loadgen/step.h"
#include "origin/grpc.h"
#include "origin/websocket.h"

namespace twp::load {

class Connection;
class Driver;

/// What every workload shares: when the request began, and how its end is recorded.
class Lane : public StreamEvents, public IListHook<> {
 public:
  Lane(Driver& driver, Connection& connection) noexcept : driver_(driver), connection_(connection) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  /// Sends the next request. `intended`: when it was due (open loop), else now or when the dial began.
  virtual void start(Instant intended) noexcept = 0;
  /// The session has room for a stream: takes the next request, or begins the handshake that comes before requests.
  virtual void go_on() noexcept;
  /// Its first stream is such a handshake (WebSocket).
  virtual bool needs_handshake() const noexcept { return false; }
  /// True when start() may be called now.
  virtual bool ready() const noexcept = 0;
  /// Gives up the request in flight.
  void expire() noexcept;

  bool busy() const noexcept { return busy_; }
  Instant intended() const noexcept { return intended_; }
  Instant started() const noexcept { return started_; }
  Connection& connection() noexcept { return connection_; }

 protected:
  /// start() of a workload with a stream for each request: the new stream, or null and the request has failed.
  Stream* begin_on_new_stream(Instant intended) noexcept;
  /// No stream is open and the session has room for one: ready() of such a workload.
  bool can_open() const noexcept;
  void begin(Instant intended) noexcept;
  /// The request is answered as it should be, with `octets` of body.
  void succeed(std::uint64_t octets) noexcept;
  void fail(Failure why, std::string_view detail) noexcept;
  /// The stream is gone; the request in flight, if any, failed with it.
  void stream_gone(Fault why) noexcept;

  Driver& driver_;
  Connection& connection_;
  Stream* stream_ = nullptr;
  Instant intended_ = 0;
  Instant started_ = 0;
  bool busy_ = false;
};

/// A request and its response. Also slow reading, early responses and duplex bodies: they differ only in how the
/// body is fed and what is counted.
class HttpLane final : public Lane, Timer {
 public:
  using Lane::Lane;
  void start(Instant intended) noexcept override;
  bool ready() const noexcept override { return can_open(); }

 private:
  static constexpr std::size_t kAhead = 256 * 1024;  // octets of upload queued before they must have left

  void on_head(Stream& s, Head&& head, End end) noexcept override;
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream&, HeaderBlock&&) noexcept override { finish(); }
  void on_sent(Stream& s, std::size_t n) noexcept override;
  void on_gone(Stream& s, Fault why) noexcept override;
  void on_timer() noexcept override;
  void pump(Stream& s) noexcept;
  void finish() noexcept;
  void check_body() noexcept;

  std::uint64_t to_send_ = 0;    // octets of request body not yet queued
  std::uint64_t queued_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t withheld_ = 0;   // received, credit held back (slow reader)
  Instant last_credit_ = 0;
  std::int64_t expected_ = -1;   // octets of response body that its head promised
  std::uint16_t status_ = 0;
  BodyHash hash_;
};

/// A WebSocket: each message is a request, its echo the response.
class WsLane final : public Lane, ws::ReaderEvents {
 public:
  using Lane::Lane;
  void start(Instant intended) noexcept override;
  void go_on() noexcept override;
  bool needs_handshake() const noexcept override { return true; }
  bool ready() const noexcept override { return open_ && !busy_; }

 private:
  void on_head(Stream& s, Head&& head, End end) noexcept override;
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream&, HeaderBlock&&) noexcept override {}
  void on_sent(Stream&, std::size_t) noexcept override {}
  void on_gone(Stream& s, Fault why) noexcept override;
  void on_frame(const ws::FrameHeader& h) noexcept override;
  void on_payload(std::span<const std::byte> octets, bool end) noexcept override;
  void on_control(ws::Opcode opcode, std::span<const std::byte> payload) noexcept override;
  ws::Mask new_mask() noexcept;
  void refused(const std::string& why) noexcept;

  bool open_ = false;
  bool shaking_ = false;  // the handshake is neither accepted nor refused
  bool last_frame_ = false;
  bool wrong_ = false;
  std::uint64_t received_ = 0;
  ws::Reader reader_{ws::Reader::Role::client};
};

/// A unary gRPC call: one message there, the same one back, then grpc-status 0 in the trailers.
class GrpcLane final : public Lane, grpc::ReaderEvents {
 public:
  using Lane::Lane;
  void start(Instant intended) noexcept override;
  bool ready() const noexcept override { return can_open(); }

 private:
  void on_head(Stream& s, Head&& head, End end) noexcept override;
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream& s, HeaderBlock&& trailers) noexcept override;
  void on_sent(Stream&, std::size_t) noexcept override {}
  void on_gone(Stream& s, Fault why) noexcept override;
  void on_message(std::span<const std::byte> octets, bool end) noexcept override;
  void finish(const HeaderBlock& fields) noexcept;
  void refuse(Failure why, std::string_view detail) noexcept;

  grpc::Reader reader_;
  std::uint64_t received_ = 0;
  bool wrong_ = false;
};

}  // namespace twp::load
