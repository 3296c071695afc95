// Stream: one request/response on a Session. The client side and the origin side of an exchange are the same
// type; what differs is only who sends the request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fault.h"
#include "base/slice.h"
#include "http/head.h"

namespace twp {

class Session;
class Stream;

/// What the other end of the wire does. Implemented by Exchange, Tunnel, Responder, the load client and tests.
///
/// Order: on_head (interim heads any number of times, then one request or final response), on_body*,
/// on_trailers?, and on_gone exactly once as the last call whatever happened before. A message ends with the
/// call that carries End::yes, or with on_trailers. Bodies of CONNECT and of tunnels end independently in
/// either direction.
class StreamEvents {
 public:
  virtual void on_head(Stream&, Head&&, End) noexcept = 0;
  /// `End::yes` may come with an empty slice.
  virtual void on_body(Stream&, Slice, End) noexcept = 0;
  virtual void on_trailers(Stream&, HeaderBlock&&) noexcept = 0;
  /// `n` octets of body given to send_body() have left our queues.
  virtual void on_sent(Stream&, std::size_t n) noexcept = 0;
  /// The stream is over; the reference is dead after this call. Fault::none: both directions ended in order
  /// and all octets left. Called from a later callback, never from inside a call into the stream.
  virtual void on_gone(Stream&, Fault) noexcept = 0;

 protected:
  ~StreamEvents() = default;
};

/// Moves a body below the codec (splice) while its octets are nothing but octets on plain sockets. Handed out
/// by Stream::raw_port(); see proxy/splice_relay.
class RawPump {
 public:
  /// The stream's descriptor became readable (source) or writable (sink).
  virtual void on_raw_ready(Stream&) noexcept = 0;

 protected:
  ~RawPump() = default;
};

class RawPort {
 public:
  /// Descriptor and octets of body that are still on the socket, all of it plain body; fd -1: not now
  /// (octets are buffered, the body is chunked, the transport encodes).
  struct End {
    int fd = -1;
    std::uint64_t remaining = 0;
  };
  virtual End source() noexcept = 0;
  /// Where `remaining` more octets of the body being sent may be written directly; fd -1: not now (the
  /// session has something queued, the body is chunked, the transport encodes).
  virtual End sink() noexcept = 0;
  /// From now on readiness goes to `pump` and the session itself neither reads nor writes body octets;
  /// nullptr gives it back.
  virtual void attach_source(RawPump* pump) noexcept = 0;
  virtual void attach_sink(RawPump* pump) noexcept = 0;
  /// `n` octets were taken from / put onto the descriptor. When `drained`, it said EAGAIN and on_raw_ready
  /// follows. The session delivers on_body(empty, End::yes) / ends the message when its count reaches the end.
  virtual void raw_received(std::uint64_t n, bool drained) noexcept = 0;
  /// The pump takes nothing for now because its sink takes nothing: the peer is not to blame.
  virtual void raw_paused() noexcept {}
  virtual void raw_sent(std::uint64_t n, bool full) noexcept = 0;
  /// The descriptor said end of file (source) or failed: the session handles it as it would its own read.
  virtual void raw_failed(int err) noexcept = 0;

 protected:
  ~RawPort() = default;
};

enum class SendState : std::uint8_t { head, body, done, reset };

class Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sends an interim, request or final response head. After a final head with End::yes nothing more may be
  /// sent. The head is encoded before the call returns; views in it may die afterwards.
  void send_head(const Head& head, End end);
  /// Sends body octets. Never blocks and never drops: the sender is bounded by the credit it gives with
  /// consume() on the other stream.
  void send_body(Slice body, End end);
  /// Sends trailers and ends the message. On a wire or message that cannot carry them they are dropped and the
  /// message just ends.
  void send_trailers(const HeaderBlock& trailers);
  /// Gives `n` octets of receive credit back to the peer.
  void consume(std::size_t n) noexcept {
    if (send_ != SendState::reset) do_consume(n);
  }
  /// Abandons the stream in both directions; on_gone(why) follows later. Idempotent. A server-role stream
  /// whose response is complete is not damaged by it: what is queued still leaves, only the rest of the
  /// request is given up.
  void reset(Fault why);

  StreamEvents& events() const noexcept { return *events_; }
  void set_events(StreamEvents& events) noexcept { events_ = &events; }
  SendState send_state() const noexcept { return send_; }
  virtual Session& session() const noexcept = 0;
  /// Number on its session: HTTP/2 and HTTP/3 stream id; a request counter on HTTP/1.
  virtual std::uint64_t id() const noexcept = 0;
  /// Direct access to the sockets for bulk bodies; nullptr when this wire never can.
  virtual RawPort* raw_port() noexcept { return nullptr; }

 protected:
  Stream() noexcept = default;
  ~Stream() = default;

  /// Makes the object ready for a new message (HTTP/1 reuses one Stream for all of a connection's requests).
  void rearm(StreamEvents* events) noexcept {
    events_ = events;
    send_ = SendState::head;
  }
  bool has_events() const noexcept { return events_ != nullptr; }

  virtual void do_send_head(const Head& head, End end) = 0;
  virtual void do_send_body(Slice body, End end) = 0;
  virtual void do_send_trailers(const HeaderBlock& trailers) = 0;
  virtual void do_consume(std::size_t n) noexcept = 0;
  virtual void do_reset(Fault why) = 0;

 private:
  enum class Call : std::uint8_t { interim, head, head_end, body, body_end, trailers };
  bool legal(Call call);

  StreamEvents* events_ = nullptr;
  SendState send_ = SendState::head;
};

/// Server role: who handles a new stream. Called before the first on_head.
class Acceptor {
 public:
  virtual StreamEvents& accept(Stream&) noexcept = 0;
  /// A request that never became a Head was refused; the session has answered in its own way
  /// (info(why).http_status, RST_STREAM ...) and logged it. For access log and counters.
  virtual void rejected(Session&, Fault why) noexcept;

 protected:
  ~Acceptor() = default;
};

}  // namespace twp
