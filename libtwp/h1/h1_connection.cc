#include "h1/h1_connection.h"

#include <algorithm>
#include <utility>

#include "net/linger.h"

namespace twp::h1 {
namespace {

constexpr std::size_t kMinRead = 4096;   // free octets in the inbox block that are worth a recv
constexpr int kReadsPerTurn = 8;         // then others get a turn
constexpr Duration kCloseTimeout = std::chrono::seconds(5);  // to take a last response that is on its way

}  // namespace

H1Connection::H1Connection(Worker& worker, std::unique_ptr<Transport> transport, SessionOwner& owner,
                           const HttpLimits& limits, Phase phase)
    : worker_(worker), transport_(std::move(transport)), owner_(owner), limits_(limits), phase_(phase) {
  transport_->set_handler(this);
}

H1Connection::~H1Connection() = default;

// --- input ------------------------------------------------------------------------------------------

void H1Connection::on_ready(Transport&, bool readable, bool writable) noexcept {
  if (dead_) return;
  if (readable) {
    if (source_pump_ != nullptr) source_pump_->on_raw_ready(*this);
    else read_soon();
  }
  if (writable) {
    if (sink_pump_ != nullptr) sink_pump_->on_raw_ready(*this);
    else if (!out_.empty()) flush_soon();
  }
}

bool H1Connection::wants_input() const noexcept {
  if (dead_ || eof_ || source_pump_ != nullptr) return false;
  switch (recv_) {
    case Recv::idle:
    case Recv::head:
    case Recv::trailers: return true;
    case Recv::body: return credit_ > 0;
    // Read on to notice a reset and to hold a little of what comes next, bounded.
    case Recv::hold:
    case Recv::done: return cur_.size() + in_.size() < limits_.max_head;
    case Recv::ended: return false;
  }
  return false;
}

/// More of the message must come: worth one more look, for a reset right behind the octets makes no edge of its own.
bool H1Connection::mid_message() const noexcept {
  return recv_ == Recv::head || recv_ == Recv::body || recv_ == Recv::trailers;
}

void H1Connection::read_some() noexcept {
  if (dead_) return;
  process();
  for (int i = 0; i < kReadsPerTurn && wants_input(); ++i) {
    // What a sniffer has read, or a pipelined request, was a whole one and nothing else waits: asking would say so.
    if (transport_->drained() && !mid_message()) break;
    Block* b = BlockPool::local().inbox(kMinRead);
    const IoResult r = transport_->read({b->data + b->used, b->size - b->used});
    if (r.status == IoStatus::again) break;
    if (r.status == IoStatus::error) {
      handle_read_error(r.fault);
      break;
    }
    if (r.status == IoStatus::eof) {
      eof_ = true;
      break;
    }
    Slice s(BlockPool::retain(b), b->used, static_cast<std::uint32_t>(r.n));
    b->used += static_cast<std::uint32_t>(r.n);
    if (cur_.empty() && in_.empty()) cur_ = std::move(s);
    else in_.append(std::move(s));
    process();
    if (dead_) return;
  }
  if (eof_) handle_eof();
  settle();
  if (dead_) return;
  if (!wants_input()) probe();
  else if (!transport_->drained()) read_rest();
}

void H1Connection::probe() noexcept {
  if (dead_ || !active_) return;
  // A relay whose pipe is full does not read its source, so a client that resets has to be looked for; an origin's reset
  // is met where its octets end, which is the relay's business.
  if (phase_ == Phase::origin && (source_pump_ != nullptr || sink_pump_ != nullptr)) return;
  // What an origin sent before it reset is still there to be read and passed on, once there is room for it.
  if (phase_ == Phase::origin && recv_ == Recv::body && credit_ <= 0) return;
  if (const IoResult r = transport_->read({}); r.status == IoStatus::error) handle_read_error(r.fault);
}

void H1Connection::handle_read_error(Fault f) noexcept {
  eof_ = true;
  if (f == Fault::tls_truncated) {
    truncated_ = true;  // read_some() goes on
    return;
  }
  const Fault why = peer_gone(f);
  if (active_) finish_stream(why);
  end_session(why);
}

void H1Connection::handle_eof() noexcept {
  // What came before the end is dealt with first, however long that takes.
  if (dead_ || gone_ != Fault::none || recv_ == Recv::ended || has_input()) return;
  if (recv_ == Recv::body && recv_framing_ == Framing::tunnel) {
    recv_ = Recv::ended;
    deliver({}, twp::End::yes);
    return;
  }
  if (recv_ == Recv::body && recv_framing_ == Framing::until_close && !truncated_) {
    recv_ = Recv::done;
    deliver({}, twp::End::yes);
    return;
  }
  on_eof(truncated_);
}

bool H1Connection::has_input() noexcept {
  if (cur_.empty() && !in_.empty()) cur_ = in_.pop_front();
  return !cur_.empty();
}

bool H1Connection::gather(std::string_view& text, std::size_t max) noexcept {
  if (partial_.empty() && in_.empty()) {
    text = cur_.text();
    return true;
  }
  const std::size_t from = partial_.size();
  stash();
  text = partial_;
  return partial_.size() > max || may_be_complete(partial_, from);
}

void H1Connection::stash() noexcept {
  partial_.append(cur_.text());
  cur_ = {};
  while (!in_.empty()) partial_.append(in_.pop_front().text());
}

void H1Connection::drop_parsed(std::size_t n) noexcept {
  if (partial_.empty()) {
    cur_.remove_prefix(n);
    if (cur_.empty()) cur_ = {};
    return;
  }
  in_.append_copy(std::string_view(partial_).substr(n));
  partial_ = std::string();  // gives the memory back: an idle connection holds none
}

void H1Connection::begin_body(const MessageInfo& info) noexcept {
  recv_framing_ = info.framing;
  if (!info.listed.empty()) listed_ = info.listed;
  recv_left_ = info.framing == Framing::length ? info.length : kNoEnd;
  credit_ = limits_.stream_window;
  body_octets_ = body_total_ = 0;
  starved_ = false;
  chunks_.reset();
  switch (info.framing) {
    case Framing::none: recv_ = Recv::done; break;
    case Framing::length: recv_ = info.length == 0 ? Recv::done : Recv::body; break;
    default: recv_ = Recv::body;
  }
}

void H1Connection::process() noexcept {
  while (!dead_ && has_input()) {
    switch (recv_) {
      case Recv::idle:
      case Recv::head:
        if (!take_head()) return;
        break;
      case Recv::body:
        if (gone_ != Fault::none || credit_ <= 0) return;
        process_body();
        break;
      case Recv::trailers:
        if (gone_ != Fault::none) return;
        process_trailers();
        if (recv_ == Recv::trailers) return;
        break;
      case Recv::done: on_input_in_done(); return;
      case Recv::hold:
      case Recv::ended: return;
    }
  }
}

void H1Connection::process_body() noexcept {
  if (recv_framing_ == Framing::chunked) {
    process_chunked();
    return;
  }
  Slice s = cur_.size() <= recv_left_ ? std::exchange(cur_, Slice()) : cur_.split(static_cast<std::size_t>(recv_left_));
  if (recv_left_ != kNoEnd) recv_left_ -= s.size();
  const bool last = recv_left_ == 0;
  if (last) recv_ = Recv::done;
  deliver(std::move(s), last ? twp::End::yes : twp::End::no);
}

void H1Connection::process_chunked() noexcept {
  switch (chunks_.next(cur_)) {
    case ChunkDecoder::Event::need_more: cur_ = {}; return;
    case ChunkDecoder::Event::bad: bad_message(Fault::bad_chunk, {}); return;
    case ChunkDecoder::Event::trailers:
      if (cur_.empty()) cur_ = {};
      recv_ = Recv::trailers;
      return;
    case ChunkDecoder::Event::data: break;
  }
  const std::size_t n = chunks_.data_size(cur_);
  chunks_.took(n);
  Slice s = n == cur_.size() ? std::exchange(cur_, Slice()) : cur_.split(n);
  deliver(std::move(s), twp::End::no);
}

void H1Connection::process_trailers() noexcept {
  std::string_view text;
  if (!gather(text, limits_.max_trailer)) return;
  HeaderBlock trailers;
  const ParseResult r = parse_trailers(text, limits_, trailers);
  if (r.status == ParseStatus::need_more) {
    stash();
    return;
  }
  if (r.status == ParseStatus::bad) {
    bad_message(r.fault, r.limit);
    return;
  }
  clean_trailers(trailers, std::exchange(listed_, {}));  // an idle connection holds none
  if (!trailers.empty()) trailers.adopt(text.substr(0, r.size));
  drop_parsed(r.size);
  recv_ = Recv::done;
  if (trailers.empty()) deliver({}, twp::End::yes);
  else if (active_ && gone_ == Fault::none) events().on_trailers(*this, std::move(trailers));
}

void H1Connection::deliver(Slice s, twp::End end) noexcept {
  credit_ -= static_cast<std::int64_t>(s.size());
  body_octets_ += s.size();
  body_total_ += s.size();
  if (credit_ <= 0) starved_ = true;
  if (max_body_ != 0 && body_total_ > max_body_) {
    bad_message(Fault::body_too_large, {"max_body", body_total_, max_body_});
    return;
  }
  if (active_ && gone_ == Fault::none) events().on_body(*this, std::move(s), end);
}

void H1Connection::do_consume(std::size_t n) noexcept {
  const bool was_out = credit_ <= 0;
  credit_ += static_cast<std::int64_t>(n);
  if (was_out && credit_ > 0 && recv_ == Recv::body && !dead_) read_soon();
}

// --- output -----------------------------------------------------------------------------------------

void H1Connection::do_send_body(Slice body, twp::End end) {
  const std::size_t n = body.size();
  if (send_broken_ || send_framing_ == Framing::none) {
    // Nobody will see these octets; their sender still gets its credit back.
    mark(n);
  } else if (send_framing_ == Framing::length && (n > send_left_ || (end == twp::End::yes && n != send_left_))) {
    // More or fewer octets than announced would desynchronise the connection.
    reset(Fault::internal);
    return;
  } else {
    if (send_framing_ == Framing::length) send_left_ -= n;
    if (send_framing_ == Framing::chunked) {
      put_chunk(std::move(body));
    } else {
      out_.append(std::move(body));
      mark(n);
    }
  }
  if (end == twp::End::yes) {
    close_chunk();
    if (send_framing_ == Framing::chunked && !send_broken_) write_last_chunk(out_, nullptr);
    end_send();
  }
  flush_soon();
}

void H1Connection::do_send_trailers(const HeaderBlock& trailers) {
  if (send_framing_ == Framing::length && send_left_ != 0) {
    reset(Fault::internal);
    return;
  }
  close_chunk();
  if (send_framing_ == Framing::chunked && !send_broken_) write_last_chunk(out_, &trailers);
  end_send();
  flush_soon();
}

void H1Connection::end_send() noexcept {
  send_done_ = true;
  if (send_framing_ == Framing::tunnel) shut_pending_ = true;
}

void H1Connection::mark(std::size_t n) noexcept {
  if (n == 0) return;
  const std::uint64_t end = out_sent_ + out_.size();
  if (mark_count_ == kMarks) {
    // Coarser, never early: the newest mark takes the new octets in.
    Mark& last = marks_[(mark_head_ + mark_count_ - 1u) % kMarks];
    last.end = end;
    last.n += n;
    return;
  }
  marks_[(mark_head_ + mark_count_) % kMarks] = {end, n};
  ++mark_count_;
}

void H1Connection::report_sent() noexcept {
  std::uint64_t n = 0;
  while (mark_count_ != 0 && marks_[mark_head_].end <= out_sent_) {
    n += marks_[mark_head_].n;
    mark_head_ = static_cast<std::uint8_t>((mark_head_ + 1) % kMarks);
    --mark_count_;
  }
  if (n != 0 && active_ && gone_ == Fault::none) events().on_sent(*this, static_cast<std::size_t>(n));
}

void H1Connection::flush() noexcept {
  if (dead_) return;
  if (gone_ != Fault::none && untouched()) {
    // As if it had never been: the connection is as good as before. A client that resets what it has just asked for costs
    // no origin connection (RFC 9113 §10.5).
    out_.clear();
    const Fault why = gone_;
    finish_stream(why, true);
    return;
  }
  if (!out_.empty() && sink_pump_ == nullptr) {
    const IoResult r = transport_->write(out_);
    if (r.status == IoStatus::error) {
      // The peer takes no more. It may have said why before it went: read that first.
      send_broken_ = true;
      keep_alive_ = false;
      out_sent_ += out_.size();
      out_.clear();
      close_chunk();
      if (recv_ == Recv::done || recv_ == Recv::hold || recv_ == Recv::ended) {
        handle_read_error(r.fault);
        return;
      }
      read_soon();
    } else {
      out_sent_ += r.n;
      if (!chunk_.empty() && out_.size() < kGatherFrom) {
        close_chunk();
        flush_soon();  // there may be room for it, and then no edge will tell
      }
    }
    report_sent();
  } else if (mark_count_ != 0) {
    report_sent();
  }
  if (out_.empty() && std::exchange(shut_pending_, false) && !dead_) transport_->shutdown_write();
  settle();
}

// --- life ---------------------------------------------------------------------------------------------

void H1Connection::begin_stream(StreamEvents& events) noexcept {
  rearm(&events);
  ++messages_;
  active_ = true;
  send_done_ = false;
  gone_ = Fault::none;
  begun_at_ = out_sent_;
}

void H1Connection::do_reset(Fault why) {
  gone_ = why;
  source_pump_ = sink_pump_ = nullptr;
  flush_soon();  // on_gone comes from there, not from inside this call
}

void H1Connection::close_after_flush(Fault why) noexcept {
  closing_ = true;
  closing_why_ = why;
  recv_ = Recv::ended;
  cur_ = {};
  in_.clear();
  if (!out_.empty()) {
    closing_left_ = out_.size();
    worker_.arm(*this, kCloseTimeout);
    flush_soon();
    return;
  }
  dead_ = true;
  cancel();
  owner_.on_session_gone(*this, why);
  linger_and_close(worker_, std::move(transport_));
}

void H1Connection::closing_timed_out() noexcept {
  if (out_.size() == closing_left_) {
    end_session(closing_why_);
    return;
  }
  closing_left_ = out_.size();
  worker_.arm(*this, kCloseTimeout);
}

void H1Connection::settle() noexcept {
  if (dead_) return;
  if (closing_ && !active_) {
    if (out_.empty()) close_after_flush(closing_why_);
    return;
  }
  if (!active_) return;
  if (gone_ != Fault::none) {
    const Fault why = gone_;
    finish_stream(why);
    return;
  }
  const bool received = recv_ == Recv::done || recv_ == Recv::ended;
  if (!send_done_ || !out_.empty() || shut_pending_) return;
  if (received) finish_stream(Fault::none);
  else if (gives_up_rest()) finish_stream(Fault::early_response);
}

void H1Connection::finish_stream(Fault why) noexcept { finish_stream(why, why == Fault::none); }

void H1Connection::finish_stream(Fault why, bool in_step) noexcept {
  active_ = false;
  gone_ = Fault::none;
  source_pump_ = sink_pump_ = nullptr;
  mark_count_ = 0;
  chunk_ = {};
  events().on_gone(*this, why);
  if (!dead_) after_stream(why, in_step);
}

void H1Connection::close(Fault why) noexcept {
  if (dead_) return;
  if (active_) finish_stream(why);
  end_session(why);
}

void H1Connection::end_session(Fault why) noexcept {
  if (std::exchange(dead_, true)) return;
  cancel();
  transport_->close(why);
  cur_ = {};
  in_.clear();
  out_.clear();
  owner_.on_session_gone(*this, why);
}

}  // namespace twp::h1
