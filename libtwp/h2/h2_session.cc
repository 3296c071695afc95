// Reading, and how streams and sessions end.
#include "h2/h2_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "h2/h2_impl.h"
#include "net/linger.h"

namespace twp::h2 {
namespace {

constexpr std::size_t kMinRead = 4096;  // free octets in the inbox block that are worth a recv
constexpr int kReadsPerTurn = 8;        // then others get a turn
constexpr std::uint64_t kFramesPerTurn = 256;
constexpr std::uint64_t kStreamsPerTurn = 64;
constexpr std::uint64_t kGlitchesPerTurn = 16;
constexpr std::size_t kEndsPerTurn = 4;
constexpr Duration kPatience = std::chrono::seconds(1);  // who waits so long and cancels is no flood
constexpr Duration kDrainNotice =
    std::chrono::seconds(1);  // between the two GOAWAYs, when no PING comes back

/// Streams come and go with every request, on all sessions of a thread.
Slab<H2Stream>& streams() noexcept {
  static thread_local Slab<H2Stream> slab;
  return slab;
}

}  // namespace

H2Session::H2Session(Worker& worker, std::unique_ptr<Transport> transport, Acceptor* acceptor,
                     SessionOwner& owner, const HttpLimits& limits, Chain first)
    : worker_(worker), transport_(std::move(transport)), acceptor_(acceptor), owner_(owner), limits_(limits),
      tls_(transport_->peer().tls), guard_(limits, acceptor != nullptr), first_(std::move(first)),
      idle_since_(worker.now()) {
  transport_->set_handler(this);
  make_nghttp2();
  submit_settings();
  arm();
  read_soon();
  flush_soon();
}

H2Session::~H2Session() {
  nghttp2_session_del(ng_);
  while (!all_.empty()) streams().destroy(&all_.front());  // the worker ends with streams open
}

void H2Session::submit_settings() noexcept {
  std::vector<nghttp2_settings_entry> s{{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.stream_window},
                                        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  if (server()) {
    s.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.h2_max_streams});
    s.push_back({NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_.max_head});
    s.push_back({NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1});
  } else {
    s.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
    s.push_back({NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_.max_response_head});
  }
  nghttp2_submit_settings(ng_, NGHTTP2_FLAG_NONE, s.data(), s.size());
  nghttp2_session_set_local_window_size(
      ng_, NGHTTP2_FLAG_NONE, 0, static_cast<std::int32_t>(std::max(limits_.h2_connection_window, 65535u)));
  settings_sent_ = worker_.now();
}

// --- input ------------------------------------------------------------------------------------------

void H2Session::on_ready(Transport&, bool readable, bool writable) noexcept {
  if (dead_) return;
  if (readable) read_soon();
  if (writable && !out_.empty()) flush_soon();
}

/// Small frames cost much more than reading them, and 16 KiB hold a thousand: others are served in between.
bool H2Session::turn_is_over() const noexcept {
  return guard_.frames() - before_.frames >= kFramesPerTurn || guard_.streams() - before_.streams >= kStreamsPerTurn ||
         guard_.glitches.added() - before_.glitches >= kGlitchesPerTurn;
}

/// What the turn before was not to take any more.
void H2Session::take_rest() noexcept {
  if (rest_.empty()) return;
  const Slice rest = std::move(rest_);
  feed(rest.block(), rest.offset(), static_cast<std::uint32_t>(rest.size()));
}

/// What a sniffer read, through blocks of our own so that bodies can be slices of it.
void H2Session::take_first() noexcept {
  while (!first_.empty() && rest_.empty() && !dead_) {
    Block* b = BlockPool::local().inbox(kMinRead);
    const Slice s = first_.take_front(b->size - b->used);
    std::memcpy(b->data + b->used, s.bytes().data(), s.size());
    const std::uint32_t off = b->used;
    b->used += static_cast<std::uint32_t>(s.size());
    feed(b, off, static_cast<std::uint32_t>(s.size()));
  }
}

void H2Session::read_some() noexcept {
  if (dead_) return;
  before_ = {guard_.frames(), guard_.streams(), guard_.glitches.added()};
  take_rest();
  take_first();
  for (int i = 0; i < kReadsPerTurn && rest_.empty() && !dead_ && !eof_ && !closing_; ++i) {
    Block* b = BlockPool::local().inbox(kMinRead);
    const IoResult r = transport_->read({b->data + b->used, b->size - b->used});
    if (r.status == IoStatus::again) break;
    if (r.status == IoStatus::error) {
      handle_read_error(r.fault);
      return;
    }
    if (r.status == IoStatus::eof) {
      eof_ = true;
      break;
    }
    const std::uint32_t off = b->used;
    b->used += static_cast<std::uint32_t>(r.n);
    feed(b, off, static_cast<std::uint32_t>(r.n));
    if (transport_->drained()) break;
  }
  // Before anything is flushed: a request that was reset in the same input need not even reach an origin.
  if (!dead_) settle_streams();
  if (dead_) return;
  if (eof_)
    handle_eof();
  else if (!closing_ && (!rest_.empty() || !transport_->drained()))
    read_rest();
  // Window updates, answers to PING and SETTINGS, GOAWAY; the end of streams.
  if (!dead_) flush_soon();
}

void H2Session::feed(Block* block, std::uint32_t off, std::uint32_t n) noexcept {
  if (failing_ || closing_) return;
  // Our own reference: what a callback does may take other octets from the same pool.
  const Slice hold(BlockPool::retain(block), off, n);
  const std::span<const std::byte> in = hold.bytes();
  in_block_ = block;
  in_off_ = off;
  in_ = in.data();
  given_ = 0;
  frame_at_ = ~std::size_t{0};
  std::size_t at = 0;
  while (at < in.size() && !failing_ && !dead_ && !turn_is_over()) {
    looked_at_ = at;
    const FrameGuard::Verdict v = guard_.look(in, at, *this, worker_.now());
    if (guard_.payload_seen() == 0 && at >= FrameGuard::kHead) frame_at_ = at - FrameGuard::kHead;
    if (failing_ || dead_) break;
    if (guard_.glitches.over(limits_))
      flooded();
    else if (v == FrameGuard::Verdict::stream_closed)
      fail(NGHTTP2_STREAM_CLOSED, Fault::protocol_error);
    else if (v == FrameGuard::Verdict::protocol_error)
      fail(NGHTTP2_PROTOCOL_ERROR, Fault::protocol_error);
  }
  give(at);
  if (at < in.size() && !failing_ && !dead_)
    rest_ = Slice(BlockPool::retain(block), off + static_cast<std::uint32_t>(at), n - static_cast<std::uint32_t>(at));
  if (!dead_) release_held(End::no);
  if (!dead_ && guard_.in_header_block()) arm();
  in_ = nullptr;
  in_block_ = nullptr;
}

/// Hands nghttp2 the input up to `to`.
void H2Session::give(std::size_t to) noexcept {
  if (to <= given_ || failing_ || dead_) return;
  const auto* data = reinterpret_cast<const std::uint8_t*>(in_) + given_;
  const std::size_t size = to - given_;
  given_ = to;
  const nghttp2_ssize n = nghttp2_session_mem_recv2(ng_, data, size);
  if (n >= 0) return;
  switch (n) {
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC: fail(NGHTTP2_PROTOCOL_ERROR, Fault::protocol_error); return;
    case NGHTTP2_ERR_CALLBACK_FAILURE: bombed(); return;
    case NGHTTP2_ERR_FLOODED: fail(NGHTTP2_ENHANCE_YOUR_CALM, flood()); return;
    case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS: too_many_continuations(); return;
    default: fail(NGHTTP2_INTERNAL_ERROR, Fault::internal);
  }
}

/// Many frames for one head. An origin does that with a head that is far too large; a client that does it attacks.
void H2Session::too_many_continuations() noexcept {
  if (!server())
    all_.for_each([&](H2Stream& s) {
      if (s.id_ == guard_.header_block_of()) s.go(Fault::origin_head_too_large);
    });
  log_limited(LogLevel::warning, (server() ? "request from " : "response from ") + peer().remote.text() +
                                     " refused: a head in more than " + std::to_string(kMostContinuations) +
                                     " CONTINUATION frames; the connection closes");
  fail(NGHTTP2_ENHANCE_YOUR_CALM, flood());
}

void H2Session::catch_up() noexcept { give(looked_at_); }

bool H2Session::is_open(std::int32_t id) noexcept {
  return nghttp2_session_get_stream_local_close(ng_, id) >= 0;
}

bool H2Session::is_fairly_cancelled(std::int32_t id) noexcept {
  const H2Stream* s = stream(id);
  return s != nullptr && (s->answered_ || (s->accepted_ && s->rate_since_ + ns(kPatience) <= worker_.now()));
}

void H2Session::flooded() noexcept {
  log_limited(LogLevel::warning,
              "HTTP/2 connection of " + peer().remote.text() +
                  " closed: limits.h2_glitch_burst = " + std::to_string(limits_.h2_glitch_burst) + ", seen " +
                  std::to_string(guard_.glitches.events()) +
                  " suspicious events (raise limits.h2_glitch_burst or limits.h2_glitch_rate)");
  fail(NGHTTP2_ENHANCE_YOUR_CALM, flood());
}

/// The one failure that our callbacks report: Callbacks::on_header.
void H2Session::bombed() noexcept {
  log_limited(LogLevel::warning, "HTTP/2 connection of " + peer().remote.text() +
                                     " closed: a head that is far larger than the octets it came in");
  fail(NGHTTP2_ENHANCE_YOUR_CALM, flood());
}

Fault H2Session::peer_gone(const H2Stream& s, Fault f) const noexcept {
  const bool reset = f == Fault::peer_reset;
  if (server()) {
    if (s.local_end_ && out_.empty()) return s.remote_end_ ? Fault::none : Fault::early_response;
    return reset ? Fault::client_reset : Fault::client_closed;
  }
  if (!s.submitted_) return Fault::origin_refused_stream;  // it was never sent
  if (s.remote_end_) return s.local_end_ && !send_broken_ ? Fault::none : Fault::early_response;
  if (s.answered_) return Fault::origin_truncated;
  return reset ? Fault::origin_reset : Fault::origin_closed;
}

void H2Session::handle_read_error(Fault f) noexcept {
  if (dead_) return;
  eof_ = true;
  send_broken_ = true;
  all_.for_each([&](H2Stream& s) { s.go(s.closed_ && !s.going_ ? done_fault(s) : peer_gone(s, f)); });
  out_.clear();
  over(f == Fault::tls_truncated || f == Fault::none ? Fault::peer_closed : f);
}

/// A peer that has ended its side can open no window any more: what is not out now will never be.
void H2Session::handle_eof() noexcept {
  if (closing_) return;
  if (!out_.empty() || nghttp2_session_want_write(ng_) != 0 || !dirty_.empty()) {
    flush_soon();  // what the peer may still read: a last response, GOAWAY
    if (!std::exchange(eof_handled_, true)) return;
  }
  handle_read_error(Fault::none);
}

void H2Session::probe() noexcept {
  if (dead_ || closing_) return;
  if (const IoResult r = transport_->read({}); r.status == IoStatus::error) handle_read_error(r.fault);
}

// --- streams ----------------------------------------------------------------------------------------

H2Stream& H2Session::make_stream(std::int32_t id) noexcept {
  H2Stream& s = *streams().make(*this, id);
  all_.push_back(s);
  if (active_++ == 0) arm();
  return s;
}

void H2Session::destroy(H2Stream& s) noexcept {
  if (!due_.empty()) std::erase(due_, &s);
  if (held_by_ == &s) {
    held_by_ = nullptr;
    held_ = {};
  }
  if (--active_ == 0) idle_since_ = worker_.now();
  capacity_changed_ = !server();
  streams().destroy(&s);
}

Stream* H2Session::open(StreamEvents& events) noexcept {
  if (capacity() == 0) return nullptr;
  H2Stream& s = make_stream(0);
  s.use(events);
  return &s;
}

unsigned H2Session::capacity() const noexcept {
  if (server() || dead_ || draining_ || closing_ || failing_ || eof_ || send_broken_) return 0;
  if (nghttp2_session_check_request_allowed(ng_) == 0) return 0;
  const std::uint32_t theirs =
      nghttp2_session_get_remote_settings(ng_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  // RFC 9113 §6.5.2 sets no limit before the peer's SETTINGS, but peers with a low one take what is above it for an error, or
  // refuse it. One stream is within any limit, so the first request waits for nothing.
  const std::uint32_t most = ready_ ? std::min(theirs, limits_.h2_max_streams) : 1;
  return active_ < most ? most - active_ : 0;
}

/// Nothing of `s` is still to come or to leave.
bool H2Session::is_done(const H2Stream& s) const noexcept {
  if (s.going_) return true;
  if (!s.closed_) return false;
  const bool in_order = s.local_end_ && s.remote_end_;
  return !in_order || s.end_at_ <= out_sent_;
}

Fault H2Session::done_fault(const H2Stream& s) const noexcept {
  return s.local_end_ && s.remote_end_ && !s.reset_by_us_ ? Fault::none : fault_of_close(s);
}

/// What nobody else would say of a stream that nghttp2 refused by itself.
void H2Session::note_refusal(const H2Stream& s) noexcept {
  if (server()) {
    if (!s.accepted_ && !s.refused_ && s.reset_by_us_)
      acceptor_->rejected(*this, s.defect_ != Fault::none ? s.defect_ : Fault::bad_header);
  } else if (s.gone_ == Fault::origin_bad_head || s.gone_ == Fault::origin_bad_framing) {
    log_limited(LogLevel::warning,
                "response from " + peer().remote.text() + " refused: " +
                    (s.gone_ == Fault::origin_bad_head ? "a head that RFC 9113 forbids"
                                                       : "a body that contradicts its head, after " +
                                                             std::to_string(s.body_octets_) + " octets"));
  }
}

void H2Session::settle_stream(H2Stream& s) noexcept {
  if (s.attached_ && is_done(s)) {
    s.go(done_fault(s));
    if (s.gone_ == Fault::none) guard_.glitches.forgive();
    s.attached_ = false;
    s.events().on_gone(s, s.gone_);
    if (s.detached_at_ == kNever) s.detached_at_ = worker_.now();
  }
  if (s.attached_ || !s.closed_) {
    ending_.push_back(s);
    return;
  }
  note_refusal(s);
  destroy(s);
}

void H2Session::settle_streams() noexcept {
  IList<H2Stream, EndingTag> some;
  some.splice_back(ending_);
  while (!some.empty() && !dead_) settle_stream(some.pop_front());
}

void H2Session::settle() noexcept {
  if (!dead_) settle_streams();
  if (dead_) return;
  if (closing_) {
    if (out_.empty() || !all_.empty()) over(closing_why_);
    return;
  }
  if (eof_ && eof_handled_) {
    handle_read_error(Fault::none);
    return;
  }
  if (nghttp2_session_want_read(ng_) == 0 && nghttp2_session_want_write(ng_) == 0) {
    over(ending_why_);
    return;
  }
  if (!server() && !draining_ && nghttp2_session_check_request_allowed(ng_) == 0) {
    draining_ = capacity_changed_ = true;  // GOAWAY, or every stream id is used
  }
  if (!server() && draining_ && active_ == 0) {
    close(Fault::none);
    return;
  }
  if (std::exchange(capacity_changed_, false)) owner_.on_capacity(*this);
  if (!dead_ && !armed()) arm();
}

/// At most `most`; true when there are none any more.
bool H2Session::end_streams(Fault why, std::size_t most) noexcept {
  for (; !all_.empty(); --most) {
    if (most == 0) return false;
    H2Stream& s = all_.front();
    if (s.attached_) {
      const bool unsent = !server() && !s.submitted_ && (failing_ || closing_);
      s.go(s.closed_ ? done_fault(s) : unsent && why != Fault::shutdown ? Fault::origin_refused_stream : why);
      s.attached_ = false;
      s.events().on_gone(s, s.gone_);
    }
    destroy(s);
  }
  return true;
}

// --- the end ----------------------------------------------------------------------------------------

void H2Session::drain() noexcept {
  if (dead_ || draining_) return;
  draining_ = true;
  capacity_changed_ = !server();
  flush_soon();
}

/// RFC 9113 §6.8: a GOAWAY that says "no more", then, when the peer has heard it, one that says which were the last.
void H2Session::continue_drain() noexcept {
  if (!draining_ || goaway_queued_ || failing_ || !server()) return;
  if (!std::exchange(drain_noticed_, true)) {
    static constexpr std::uint8_t kPing[8] = {'d', 'r', 'a', 'i', 'n'};
    nghttp2_submit_shutdown_notice(ng_);
    nghttp2_submit_ping(ng_, NGHTTP2_FLAG_NONE, kPing);
    drain_at_ = worker_.now() + ns(kDrainNotice);
    arm();
    return;
  }
  if (worker_.now() < drain_at_) return;
  goaway_queued_ = true;
  nghttp2_submit_goaway(ng_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(ng_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void H2Session::fail(std::uint32_t code, Fault why) noexcept {
  if (std::exchange(failing_, true)) return;
  failing_since_ = worker_.now();
  ending_why_ =
      why == Fault::protocol_error ? (server() ? Fault::bad_request : Fault::origin_bad_framing) : why;
  nghttp2_session_terminate_session(ng_, code);
  flush_soon();
}

/// GOAWAY, as far as the transport takes it at once.
void H2Session::say_goodbye(Fault why) noexcept {
  if (eof_ || send_broken_ || closing_) return;
  nghttp2_session_terminate_session(ng_, info(why).h2_code);
  failing_ = true;
  const std::uint8_t* data = nullptr;
  for (nghttp2_ssize n; (n = nghttp2_session_mem_send2(ng_, &data)) > 0;)
    out_.append_copy(std::span(reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(n)));
  if (!out_.empty() && transport_->write(out_).status == IoStatus::error) send_broken_ = true;
}

void H2Session::close(Fault why) noexcept {
  if (dead_) return;
  say_goodbye(why);
  end_streams(why, kAll);
  end_session(why);
}

/// Ends the streams, then the session. Each may end a request to an origin and its connection: a turn does not take many.
void H2Session::over(Fault why) noexcept {
  closing_ = true;
  closing_why_ = why;
  const Fault of_streams = why != Fault::none ? why : server() ? Fault::shutdown : Fault::origin_refused_stream;
  const bool all = end_streams(of_streams, kEndsPerTurn);
  if (dead_) return;
  if (!all) {
    flush_soon();
    return;
  }
  if (!out_.empty() && !send_broken_) {
    closing_left_ = out_.size();
    worker_.arm(*this, kCloseTimeout);
    return;
  }
  end_session(why);
}

void H2Session::end_session(Fault why) noexcept {
  if (std::exchange(dead_, true)) return;
  cancel();
  read_task_.unlink();
  flush_task_.unlink();
  first_.clear();
  rest_ = {};
  owner_.on_session_gone(*this, why);
  if (send_broken_ || eof_ || !out_.empty()) {
    transport_->close(why);
    out_.clear();
    return;
  }
  // Whole messages end with END_STREAM, so an orderly end misleads nobody, and lets a client read our GOAWAY.
  if (!server())
    transport_->close(Fault::none);
  else
    linger_and_close(worker_, std::move(transport_));
}

}  // namespace twp::h2

namespace twp {

std::unique_ptr<Session> make_h2_server(Worker& worker, std::unique_ptr<Transport> transport,
                                        Acceptor& acceptor, SessionOwner& owner, const HttpLimits& limits,
                                        Chain first) {
  return std::make_unique<h2::H2Session>(worker, std::move(transport), &acceptor, owner, limits,
                                         std::move(first));
}

std::unique_ptr<Session> make_h2_client(Worker& worker, std::unique_ptr<Transport> transport,
                                        SessionOwner& owner, const HttpLimits& limits) {
  return std::make_unique<h2::H2Session>(worker, std::move(transport), nullptr, owner, limits, Chain());
}

}  // namespace twp
