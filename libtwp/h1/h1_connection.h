// What both roles of an HTTP/1 session share: input, output, message bodies, credit, tunnels.
//
// An HTTP/1 connection carries one message in each direction at a time, so the session is its own and only
// Stream, used again for every request. H1Server and H1Client add how heads are read and written, and what
// happens between messages.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/chain.h"
#include "event/member_task.h"
#include "event/worker.h"
#include "h1/body_framing.h"
#include "h1/head_writer.h"
#include "h1/translate.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/transport.h"

namespace twp::h1 {

/// A body whose end is the end of the connection has so many octets left.
inline constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

class H1Connection : public Session, public Stream, public RawPort, public TransportHandler, public Timer {
 public:
  ~H1Connection() override;

  // Session
  unsigned active() const noexcept override { return active_ ? 1 : 0; }
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return transport_->peer(); }
  HttpVersion version() const noexcept override { return {1, 1}; }

  // Stream
  Session& session() const noexcept override { return const_cast<H1Connection&>(*this); }
  std::uint64_t id() const noexcept override { return messages_; }
  RawPort* raw_port() noexcept override { return this; }

  // RawPort
  End source() noexcept override;
  End sink() noexcept override;
  void attach_source(RawPump* pump) noexcept override;
  void attach_sink(RawPump* pump) noexcept override;
  void raw_received(std::uint64_t n, bool drained) noexcept override;
  void raw_paused() noexcept override { starved_ = pump_paused_ = true; }
  void raw_sent(std::uint64_t n, bool full) noexcept override;
  void raw_failed(int err) noexcept override;

  // TransportHandler
  void on_ready(Transport&, bool readable, bool writable) noexcept override;
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override {}  // open before we got it

 protected:
  /// How far the incoming message is.
  enum class Recv : std::uint8_t {
    idle,      ///< not one octet of a head yet
    head,      ///< part of a head is here
    body,      ///< recv_framing_ decides
    trailers,  ///< after the last chunk
    hold,      ///< CONNECT: octets wait until the answer is known
    done,      ///< the message is complete
    ended,     ///< nothing is read any more
  };

  H1Connection(Worker& worker, std::unique_ptr<Transport> transport, SessionOwner& owner, const HttpLimits& limits,
               Phase phase);

  // What the roles add.
  /// Input is there and recv_ is idle or head. False: it was not enough and is stashed.
  virtual bool take_head() noexcept = 0;
  virtual void on_eof(bool truncated) noexcept = 0;         ///< the peer's side has ended outside of a body
  virtual void bad_message(Fault f, const LimitHit& limit) noexcept = 0;  ///< what came cannot be understood
  virtual void after_stream(Fault why, bool complete) noexcept = 0;       ///< between messages
  virtual Fault peer_gone(Fault transport_fault) const noexcept = 0;      ///< as seen from this role
  virtual void on_input_in_done() noexcept {}               ///< octets after a complete message
  /// The stream has been reset, and nothing that its peer could see has happened.
  virtual bool untouched() const noexcept { return false; }
  /// Our message is complete and out: true when the rest of the peer's will not come or is not waited for.
  virtual bool gives_up_rest() const noexcept { return false; }

  // Stream, both roles
  void do_send_body(Slice body, twp::End end) override;
  void do_send_trailers(const HeaderBlock& trailers) override;
  void do_consume(std::size_t n) noexcept override;
  void do_reset(Fault why) override;

  // Input
  void read_soon() noexcept { worker_.schedule(phase_, read_task_); }
  void read_rest() noexcept { worker_.schedule_rest(phase_, read_task_); }
  bool has_input() noexcept;
  /// Octets to parse a head or trailer section from; false when more must come first.
  bool gather(std::string_view& text, std::size_t max) noexcept;
  void stash() noexcept;                       ///< the gathered text is incomplete: keep it
  void drop_parsed(std::size_t n) noexcept;    ///< the first n octets of it are dealt with
  void begin_body(const MessageInfo& info) noexcept;
  /// Passes what is buffered on; returns when input or credit is used up.
  void process() noexcept;
  bool wants_input() const noexcept;
  /// Looks for a reset that no edge tells of: it came together with octets, or while reading is paused.
  void probe() noexcept;
  static constexpr Duration kProbe = std::chrono::seconds(2);  ///< how often, while a stream waits

  // Output
  void flush_soon() noexcept { worker_.schedule(Phase::flush, flush_task_); }
  void end_send() noexcept;                    ///< the outgoing message is complete
  bool output_flushed() const noexcept { return out_.empty(); }
  bool nothing_sent() const noexcept { return out_sent_ == begun_at_; }  ///< of this message, not even in part

  // Life
  void begin_stream(StreamEvents& events) noexcept;
  void finish_stream(Fault why) noexcept;
  /// `in_step`: both ends agree where the next message begins.
  void finish_stream(Fault why, bool in_step) noexcept;
  void settle() noexcept;                      ///< ends the stream when it is over
  void end_session(Fault why) noexcept;        ///< closes the transport and tells the owner, once
  /// Ends the session when the output is flushed, and lets the peer read it: a close with unread input would
  /// make the kernel send RST, which can overtake the last response.
  void close_after_flush(Fault why) noexcept;
  void closing_timed_out() noexcept;           ///< of the timer while closing: goes on while octets leave

  Worker& worker_;
  std::unique_ptr<Transport> transport_;
  SessionOwner& owner_;
  const HttpLimits& limits_;
  const Phase phase_;

  // Incoming message
  Slice cur_;            // being parsed
  Chain in_;             // behind it
  std::string partial_;  // head or trailers that came in pieces
  ChunkDecoder chunks_;
  std::uint64_t recv_left_ = 0;
  std::string listed_;  // see MessageInfo
  std::int64_t credit_ = 0;
  std::uint64_t body_octets_ = 0;  // since body_since_, for the minimum rate
  std::uint64_t body_total_ = 0;
  std::uint64_t max_body_ = 0;     // 0: no limit
  Instant body_since_ = kNever;
  Recv recv_ = Recv::idle;
  Framing recv_framing_ = Framing::none;

  // Outgoing message
  Chain out_;
  std::uint64_t send_left_ = 0;
  Framing send_framing_ = Framing::none;
  bool send_done_ = false;
  bool send_broken_ = false;  // the peer takes nothing any more; what it sent is still read

  // Stream and connection
  std::uint64_t messages_ = 0;
  Fault gone_ = Fault::none;  // reset() was called with this
  bool active_ = false;
  bool keep_alive_ = true;
  bool draining_ = false;
  bool eof_ = false;          // the peer's side has ended; octets before the end may still wait in cur_ and in_
  bool truncated_ = false;    // and not in order
  bool dead_ = false;
  bool closing_ = false;      // close_after_flush() was called
  Fault closing_why_ = Fault::none;
  std::size_t closing_left_ = 0;  // octets that were still to leave at the last look
  bool starved_ = false;      // credit ran out, or a pump paused, since body_since_
  bool pump_paused_ = false;  // and it has not taken anything since

 private:
  /// Body octets whose last one stands at `end` of the output; on_sent(n) when the output has got that far.
  struct Mark {
    std::uint64_t end;
    std::uint64_t n;
  };

  void read_some() noexcept;
  bool mid_message() const noexcept;
  void handle_eof() noexcept;
  void handle_read_error(Fault f) noexcept;
  void process_body() noexcept;
  void process_chunked() noexcept;
  void process_trailers() noexcept;
  void deliver(Slice s, twp::End end) noexcept;
  void flush() noexcept;
  void put_chunk(Slice body) noexcept;
  void write_chunk(Slice body) noexcept;
  void gather_chunk(const Slice& body) noexcept;
  void close_chunk() noexcept;
  void mark(std::size_t n) noexcept;
  void report_sent() noexcept;

  static constexpr std::size_t kMarks = 8;
  static constexpr std::size_t kGatherFrom = 16 * 1024;  ///< octets that wait to leave before small chunks wait for each other

  MemberTask<&H1Connection::read_some> read_task_{*this};
  MemberTask<&H1Connection::flush> flush_task_{*this};
  /// Small chunks that wait behind a full output and become one: with a frame for each, a chunk of one octet would cost six.
  Slice chunk_;
  std::array<Mark, kMarks> marks_;
  std::uint64_t out_sent_ = 0;
  std::uint64_t begun_at_ = 0;  // out_sent_ when the stream began
  std::uint8_t mark_head_ = 0;
  std::uint8_t mark_count_ = 0;
  bool shut_pending_ = false;  // a tunnel's sending side ends when the output is flushed
  RawPump* source_pump_ = nullptr;
  RawPump* sink_pump_ = nullptr;
};

}  // namespace twp::h1
