// H3Session, the class behind h3_session.h. What nghttp3 calls back: h3_callbacks.cc; what is submitted and how it leaves:
// h3_output.cc; heads and bodies that came: h3_input.cc; time: h3_timers.cc; life and end: h3_session.cc.
#pragma once

#include <nghttp3/nghttp3.h>

#include <memory>
#include <string>
#include <vector>

#include "base/slab.h"
#include "event/worker.h"
#include "h3/h3_session.h"
#include "h3/h3_stream.h"
#include "http/glitch_counter.h"

namespace twp::h3 {

constexpr Instant ns(Duration d) noexcept { return static_cast<Instant>(d.count()); }

class H3Session final : public Session, public Timer, QuicEvents, QuicOutput {
 public:
  /// `acceptor` is null in the client role, `opening` in the server role.
  H3Session(Worker& worker, std::unique_ptr<QuicConnection> connection, Acceptor* acceptor,
            H3Opening* opening, SessionOwner& owner, const HttpLimits& limits);
  ~H3Session() override;

  // Session
  Stream* open(StreamEvents& events) noexcept override;
  unsigned capacity() const noexcept override;
  unsigned active() const noexcept override { return active_; }
  void drain() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return conn_->peer(); }
  HttpVersion version() const noexcept override { return {3, 0}; }

  // From the streams.
  void dirty(H3Stream& s) noexcept;
  void note_sent(H3Stream& s) noexcept;
  void abandon(H3Stream& s, Fault why) noexcept;
  Instant now() const noexcept { return conn_->now(); }

 private:
  friend struct Callbacks;

  static constexpr std::size_t kMostPieces = 16;  // of one stream in one call
  static const nghttp3_data_reader kReader;

  bool server() const noexcept { return acceptor_ != nullptr; }

  // QuicEvents
  void on_keys() noexcept override;
  void on_open() noexcept override;
  void on_data(std::int64_t id, std::span<const std::byte> octets, bool fin) noexcept override;
  void on_reset(std::int64_t id, std::uint64_t code) noexcept override;
  void on_closed(std::int64_t id, std::optional<std::uint64_t> code) noexcept override;
  void on_more_streams() noexcept override;
  void on_input_over() noexcept override;
  void on_over(Fault why, const std::string& detail) noexcept override;

  // QuicOutput
  void on_flush() noexcept override;
  Piece next() noexcept override;
  void wrote(std::int64_t id, std::size_t n) noexcept override;
  void blocked(std::int64_t id) noexcept override;
  void unblocked(std::int64_t id) noexcept override;
  void stopped(std::int64_t id) noexcept override;
  void acked(std::int64_t id, std::uint64_t n) noexcept override;
  void on_flushed() noexcept override;

  void on_timer() noexcept override;

  // Set-up
  bool make_nghttp3() noexcept;
  bool bind_streams() noexcept;

  // What nghttp3 makes of the input (h3_input.cc)
  void read_failed(H3Stream* s, int error, std::size_t uncredited) noexcept;
  void finish_close(H3Stream* s, std::int64_t id, std::optional<std::uint64_t> code) noexcept;
  void malformed(H3Stream& s, int error) noexcept;
  void incomplete(H3Stream& s) noexcept;
  void begin_section(H3Stream& s, bool trailers) noexcept;
  void end_section(H3Stream& s, bool ended) noexcept;
  void take_request(H3Stream& s, bool ended) noexcept;
  void take_response(H3Stream& s, bool ended) noexcept;
  void take_trailers(H3Stream& s) noexcept;
  void take_data(H3Stream& s, std::span<const std::byte> octets) noexcept;
  void hold(H3Stream& s, std::span<const std::byte> octets) noexcept;
  void release_held(End end) noexcept;
  void end_of_message(H3Stream& s) noexcept;
  void take_settings(const nghttp3_proto_settings& settings) noexcept;
  void take_goaway(std::int64_t id) noexcept;
  /// Refuses what the peer sent on `s`: with a status where a client can be told, else with RESET_STREAM.
  void reject(H3Stream& s, Fault f, const LimitHit& limit) noexcept;
  void write_error(H3Stream& s, Fault f) noexcept;
  void log_limit(const LimitHit& limit) noexcept;
  void count_cancel(const H3Stream& s) noexcept;
  bool flooded() noexcept;
  Fault flood() const noexcept { return server() ? Fault::flood : Fault::origin_stream_reset; }
  Fault reset_fault(const H3Stream& s, std::uint64_t code) const noexcept;
  Fault fault_of_close(const H3Stream& s) const noexcept;
  Fault done_fault(const H3Stream& s) const noexcept;

  // Output (h3_output.cc)
  void flush_soon() noexcept { conn_->flush_soon(); }
  void submit(H3Stream& s) noexcept;
  bool submit_head(H3Stream& s, const H3Stream::Section& section) noexcept;
  bool open_request(H3Stream& s, const H3Stream::Section& section, const nghttp3_data_reader* body) noexcept;
  void refuse_unsent(H3Stream& s, Fault why) noexcept;
  void reset_stream(H3Stream& s, std::uint64_t code) noexcept;
  nghttp3_ssize read_body(H3Stream& s, nghttp3_vec* into, std::size_t most, std::uint32_t& flags) noexcept;
  void drop_unsent(H3Stream& s) noexcept;
  void handle_stopped() noexcept;
  void report_sent() noexcept;

  // Life
  H3Stream& make_stream(std::int64_t id) noexcept;
  void destroy(H3Stream& s) noexcept;
  void may_be_over(H3Stream& s) noexcept;
  bool is_done(const H3Stream& s) const noexcept;
  void settle() noexcept;
  void settle_streams() noexcept;
  void settle_stream(H3Stream& s) noexcept;
  void note_refusal(const H3Stream& s) noexcept;
  Fault peer_gone(const H3Stream& s, Fault f) const noexcept;
  void end_streams(Fault why) noexcept;
  void fail(std::uint64_t code, Fault why) noexcept;  ///< CONNECTION_CLOSE with `code`
  void continue_drain() noexcept;
  void arm() noexcept;
  Instant next_deadline() const noexcept;
  void look_after_streams() noexcept;
  bool body_too_slow(H3Stream& s, LimitHit& limit) noexcept;

  Worker& worker_;
  std::unique_ptr<QuicConnection> conn_;
  Acceptor* const acceptor_;
  H3Opening* opening_;
  SessionOwner& owner_;
  const HttpLimits& limits_;
  nghttp3_conn* ng_ = nullptr;
  GlitchCounter glitches_;
  StreamTable table_;

  Slice held_;  // the last octets of a body: more of them may come with the next datagram
  H3Stream* held_by_ = nullptr;
  std::size_t credited_ = 0;  // of the octets that nghttp3 is looking at
  iovec piece_[kMostPieces];  // what next() gave last
  std::size_t pieces_ = 0;
  bool piece_fin_ = false;
  int write_error_ = 0;              // nghttp3 cannot go on
  std::vector<H3Stream*> to_close_;  // waited for the table
  std::vector<H3Stream*> due_;       // something is to be done when the flush is over

  IList<H3Stream, AllTag> all_;
  IList<H3Stream, DirtyTag> dirty_;
  IList<H3Stream, SentTag> sent_;
  IList<H3Stream, EndingTag> ending_;
  unsigned active_ = 0;
  unsigned unopened_ = 0;  // client role: streams without an id
  std::uint64_t max_client_streams_ = 0;

  Instant idle_since_;
  Instant drain_at_ = kNever;  // when the final GOAWAY goes
  Fault failing_why_ = Fault::none;
  bool settings_here_ = false;
  bool connect_allowed_ = false;  // by the peer's SETTINGS: extended CONNECT
  bool draining_ = false;
  bool drain_noticed_ = false;  // the first GOAWAY is with nghttp3
  bool goaway_queued_ = false;  // the final one is
  bool capacity_changed_ = false;
  bool opened_ = false;
  bool tell_opening_ = false;
  bool failing_ = false;
  bool dead_ = false;
};

}  // namespace twp::h3
