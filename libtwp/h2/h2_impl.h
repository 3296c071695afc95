// H2Session, the class behind h2_session.h. What nghttp2 calls back: h2_callbacks.cc; what is submitted and how it
// leaves: h2_output.cc; heads and bodies that came: h2_input.cc; time: h2_timers.cc; reading and the end: h2_session.cc.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <vector>

#include "base/chain.h"
#include "base/slab.h"
#include "event/member_task.h"
#include "event/worker.h"
#include "h2/frame_guard.h"
#include "h2/h2_stream.h"
#include "http/limits.h"
#include "http/session.h"
#include "net/transport.h"

namespace twp::h2 {

inline constexpr Duration kCloseTimeout =
    std::chrono::seconds(5);  ///< to take last words that are on their way

inline constexpr unsigned kMostContinuations = 16;  ///< frames of one head behind its HEADERS

constexpr Instant ns(Duration d) noexcept { return static_cast<Instant>(d.count()); }

class H2Session final : public Session, public TransportHandler, public Timer, FrameGuard::Streams {
 public:
  /// `acceptor` is null in the client role.
  H2Session(Worker& worker, std::unique_ptr<Transport> transport, Acceptor* acceptor, SessionOwner& owner,
            const HttpLimits& limits, Chain first);
  ~H2Session() override;

  // Session
  Stream* open(StreamEvents& events) noexcept override;
  unsigned capacity() const noexcept override;
  bool settled() const noexcept override { return ready_; }
  unsigned active() const noexcept override { return active_; }
  void drain() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return transport_->peer(); }
  HttpVersion version() const noexcept override { return {2, 0}; }

  /// Client role, before the first stream: ids begin at `id` (odd).
  void begin_ids_at(std::int32_t id) noexcept { nghttp2_session_set_next_stream_id(ng_, id); }

  // From the streams.
  void dirty(H2Stream& s) noexcept;
  void note_sent(H2Stream& s) noexcept;
  void abandon(H2Stream& s, Fault why) noexcept;

 private:
  friend struct Callbacks;

  /// Stops asking nghttp2 for frames when so many octets wait for the transport.
  static constexpr std::size_t kMostOutput = 256 * 1024;
  /// A client that has got so far is sent to a new connection while it still has some ids left (RFC 9113 §5.1.1).
  static constexpr std::int32_t kLateId = 0x7fffffff - 2 * 1000;
  static const nghttp2_data_source_read_callback2 kRead;

  struct Reset {
    std::int32_t id;
    std::uint32_t code;
  };

  bool server() const noexcept { return acceptor_ != nullptr; }

  // TransportHandler, Timer
  void on_ready(Transport&, bool readable, bool writable) noexcept override;
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override {}  // open before we got it
  void on_timer() noexcept override;

  // FrameGuard::Streams
  bool is_open(std::int32_t id) noexcept override;
  bool is_fairly_cancelled(std::int32_t id) noexcept override;
  void catch_up() noexcept override;

  // Set-up
  void make_nghttp2() noexcept;
  void submit_settings() noexcept;

  // Input
  Phase phase() const noexcept { return server() ? Phase::client : Phase::origin; }
  void read_soon() noexcept { worker_.schedule(phase(), read_task_); }
  void read_rest() noexcept { worker_.schedule_rest(phase(), read_task_); }
  void take_rest() noexcept;
  void take_first() noexcept;
  void read_some() noexcept;
  bool turn_is_over() const noexcept;
  void feed(Block* block, std::uint32_t off, std::uint32_t n) noexcept;
  void give(std::size_t to) noexcept;
  void flooded() noexcept;
  void too_many_continuations() noexcept;
  void bombed() noexcept;
  Fault flood() const noexcept { return server() ? Fault::flood : Fault::origin_stream_reset; }
  void handle_eof() noexcept;
  void handle_read_error(Fault f) noexcept;
  Fault peer_gone(const H2Stream& s, Fault f) const noexcept;
  void probe() noexcept;

  // What nghttp2 makes of the input (h2_input.cc)
  H2Stream* stream(std::int32_t id) noexcept;
  void begin_section(const nghttp2_frame& frame) noexcept;
  void take_request(H2Stream& s, bool ended) noexcept;
  void take_response(H2Stream& s, bool ended) noexcept;
  void take_trailers(H2Stream& s) noexcept;
  void take_data(H2Stream& s, const std::uint8_t* data, std::size_t n) noexcept;
  void end_of_message(H2Stream& s) noexcept;
  void release_held(End end) noexcept;
  void take_settings() noexcept;
  void take_goaway() noexcept;
  /// Refuses what the peer sent on `s`: with a status where a client can be told, else with RST_STREAM.
  void reject(H2Stream& s, Fault f, const LimitHit& limit) noexcept;
  void write_error(H2Stream& s, Fault f) noexcept;
  void log_limit(const LimitHit& limit) noexcept;
  void stream_closed(H2Stream& s, std::uint32_t code) noexcept;
  Fault done_fault(const H2Stream& s) const noexcept;
  Fault fault_of_close(const H2Stream& s) const noexcept;

  // Output (h2_output.cc)
  void flush_soon() noexcept { worker_.schedule(Phase::flush, flush_task_); }
  void flush() noexcept;
  void submit_all() noexcept;
  void submit(H2Stream& s) noexcept;
  void submit_head(H2Stream& s, const H2Stream::Section& section) noexcept;
  bool submit_due() noexcept;
  void reset_stream(H2Stream& s, std::uint32_t code) noexcept;
  void pull() noexcept;
  nghttp2_ssize read_body(H2Stream& s, std::size_t most, std::uint32_t& flags) noexcept;
  void stay_detached(H2Stream& s, std::size_t n) noexcept;
  void put_data(H2Stream& s, const std::uint8_t* head, std::size_t n) noexcept;
  bool write() noexcept;
  void report_sent() noexcept;
  void frame_sent(const nghttp2_frame& frame) noexcept;
  void goaway_sent(const nghttp2_goaway& frame) noexcept;
  std::uint64_t output_end() const noexcept { return out_sent_ + out_.size(); }

  // Life
  H2Stream& make_stream(std::int32_t id) noexcept;
  void destroy(H2Stream& s) noexcept;
  void settle() noexcept;
  void settle_stream(H2Stream& s) noexcept;
  void settle_streams() noexcept;   ///< on_gone for those that are over
  void note_refusal(const H2Stream& s) noexcept;
  bool body_too_slow(H2Stream& s, LimitHit& limit) noexcept;
  bool is_done(const H2Stream& s) const noexcept;
  static constexpr std::size_t kAll = ~std::size_t{0};
  bool end_streams(Fault why, std::size_t most) noexcept;
  void fail(std::uint32_t code, Fault why) noexcept;  ///< GOAWAY, then the end of the session
  void over(Fault why) noexcept;         ///< every stream has ended: closes when the output has left
  void end_session(Fault why) noexcept;  ///< closes the transport and tells the owner, once
  void say_goodbye(Fault why) noexcept;
  void continue_drain() noexcept;
  void arm() noexcept;
  Instant next_deadline() const noexcept;
  bool expired() noexcept;
  void look_after_streams() noexcept;

  Worker& worker_;
  std::unique_ptr<Transport> transport_;
  Acceptor* const acceptor_;
  SessionOwner& owner_;
  const HttpLimits& limits_;
  const bool tls_;
  nghttp2_session* ng_ = nullptr;
  void* frame_buffer_ = nullptr;  // the one that ng_ shares with others, see make_nghttp2()
  FrameGuard guard_;

  // Input in progress: nghttp2 is given [given_, ...) of it.
  Block* in_block_ = nullptr;
  std::uint32_t in_off_ = 0;
  std::size_t given_ = 0;
  std::size_t looked_at_ = 0;  // everything before it was checked
  std::size_t frame_at_ = 0;   // where the head of the last frame begins
  const std::byte* in_ = nullptr;
  Chain first_;
  Slice rest_;  // input for the next turn
  struct Seen {
    std::uint64_t frames = 0, streams = 0, glitches = 0;
  } before_;    // when this turn began
  Slice held_;  // the last piece of a body, until nghttp2 has checked its end
  H2Stream* held_by_ = nullptr;
  std::size_t connection_credit_ = 0;

  Chain out_;
  std::uint64_t out_sent_ = 0;
  Instant out_since_ = kNever;  // since when nothing has left

  IList<H2Stream, AllTag> all_;
  IList<H2Stream, DirtyTag> dirty_;
  IList<H2Stream, SentTag> sent_;
  IList<H2Stream, EndingTag> ending_;
  std::vector<Reset> resets_;   // of streams that we never made
  std::vector<H2Stream*> due_;  // trailers or a reset can go now
  unsigned active_ = 0;

  Instant idle_since_;
  Instant settings_sent_ = kNever;  // and not yet acknowledged
  Instant drain_at_ = kNever;       // when the final GOAWAY goes at the latest
  Instant failing_since_ = kNever;
  Fault ending_why_ = Fault::none;
  Fault closing_why_ = Fault::none;
  std::size_t closing_left_ = 0;
  bool ready_ = false;            // the peer's SETTINGS are here
  bool connect_allowed_ = false;  // by the peer's SETTINGS: extended CONNECT
  bool waits_for_settings_ = false;
  bool draining_ = false;
  bool drain_noticed_ = false;  // the first GOAWAY is with nghttp2
  bool goaway_queued_ = false;  // the final one is
  bool failing_ = false;
  bool capacity_changed_ = false;
  bool eof_ = false;
  bool eof_handled_ = false;
  bool send_broken_ = false;  // the peer takes nothing any more; what it sent is still read
  bool broken_ = false;       // nghttp2 cannot go on
  bool closing_ = false;
  bool dead_ = false;

  MemberTask<&H2Session::read_some> read_task_{*this};
  MemberTask<&H2Session::flush> flush_task_{*this};
};

}  // namespace twp::h2
