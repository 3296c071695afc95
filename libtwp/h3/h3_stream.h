// H3Stream: one request/response on an H3Session. Calls from outside only note what is to be done; the session does it when
// it flushes, so nghttp3 and ngtcp2 are never entered from inside one of their own callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/chain.h"
#include "base/ilist.h"
#include "h3/h3_encode.h"
#include "http/field_section.h"
#include "http/stream.h"

namespace twp::h3 {

class H3Session;

/// Body octets that the library was given: it points into them until the peer has acknowledged them.
class SentBody {
 public:
  /// Returns where the octets are.
  std::span<const std::byte> give(Slice s) {
    slices_.push_back(std::move(s));
    return slices_.back().bytes();
  }
  /// Where the first octet is that no packet has taken yet; null when there is none.
  const std::byte* next() const noexcept {
    return at_ == slices_.size() ? nullptr : slices_[at_].bytes().data() + into_;
  }
  bool all_written() const noexcept { return at_ == slices_.size(); }
  /// `n` octets, at most up to the end of that slice, were put into a packet.
  void wrote(std::size_t n) noexcept {
    into_ += n;
    if (into_ < slices_[at_].size()) return;
    into_ = 0;
    ++at_;
  }
  void acked(std::size_t n) noexcept;
  void clear() noexcept {
    slices_.clear();
    head_ = at_ = into_ = head_acked_ = 0;
  }

 private:
  std::vector<Slice> slices_;  // [0, head_) are empty
  std::size_t head_ = 0;
  std::size_t head_acked_ = 0;  // octets of slices_[head_]
  std::size_t at_ = 0;
  std::size_t into_ = 0;
};

struct AllTag {};
struct DirtyTag {};
struct SentTag {};
struct EndingTag {};

class H3Stream final : public Stream,
                       public IListHook<AllTag>,      // every stream of the session
                       public IListHook<DirtyTag>,    // has something to submit
                       public IListHook<SentTag>,     // has octets whose leaving is to be reported
                       public IListHook<EndingTag> {  // may be over
 public:
  H3Stream(H3Session& session, std::int64_t id) noexcept : session_(session), id_(id) {}

  Session& session() const noexcept override;
  std::uint64_t id() const noexcept override { return id_ < 0 ? 0 : static_cast<std::uint64_t>(id_); }

 private:
  friend class H3Session;
  friend class StreamTable;
  friend struct Callbacks;

  /// A section that waits to be submitted; lives in arena_ until the stream ends.
  struct Section {
    enum class Kind : std::uint8_t { interim, head, trailers };
    Section* next;
    EncodedFields lines;
    Kind kind;
  };
  using EndingHook = IListHook<EndingTag>;
  using DirtyHook = IListHook<DirtyTag>;
  using SentHook = IListHook<SentTag>;

  void do_send_head(const Head& head, End end) override;
  void do_send_body(Slice body, End end) override;
  void do_send_trailers(const HeaderBlock& trailers) override;
  void do_consume(std::size_t n) noexcept override;
  void do_reset(Fault why) override;

  void use(StreamEvents& events) noexcept {
    rearm(&events);
    attached_ = true;
  }
  /// Somebody hears events of this stream, and nothing has ended it yet.
  bool live() const noexcept { return attached_ && !going_; }
  /// The exchange hears on_gone(why) at the end of this turn and nothing more from now on.
  void go(Fault why) noexcept {
    if (going_) return;
    going_ = true;
    gone_ = why;
  }
  void queue(Section::Kind kind, EncodedFields lines) noexcept;
  bool length_fits(std::size_t n, End end) noexcept;
  bool has_unsent() const noexcept { return !body_.empty() || !sent_.all_written(); }

  H3Session& session_;
  std::int64_t id_;  // -1: not opened yet
  H3Stream* next_in_table_ = nullptr;
  Method method_ = Method::get;  // of the request
  std::uint16_t status_ = 0;     // of the final response that was sent or received
  bool extended_ = false;        // extended CONNECT
  bool attached_ = false;        // on_gone is still owed
  bool going_ = false;
  bool accepted_ = false;    // server role: the acceptor knows it
  bool refused_ = false;     // the request was answered or reset by the session itself
  bool answered_ = false;    // anything of a response was sent or received
  bool begun_ = false;       // a field section has begun to arrive
  bool head_taken_ = false;  // the request or final response head is here
  bool in_trailers_ = false;
  bool recv_done_ = false;     // End::yes was delivered
  bool fin_seen_ = false;      // all of the peer's octets are here
  bool remote_end_ = false;    // and nghttp3 has taken them: the peer's side has ended in order
  bool close_waits_ = false;   // QUIC has forgotten the stream before that
  bool remote_reset_ = false;  // RESET_STREAM came
  bool local_end_ = false;     // our end is in a packet
  bool closed_ = false;        // QUIC has forgotten it
  bool submitted_ = false;     // nghttp3 knows our head
  bool data_ = false;          // nghttp3 asks read_body() for DATA
  bool waiting_ = false;       // nghttp3 was told that there is no DATA
  bool end_ = false;           // nothing follows what is in body_
  bool no_body_ = false;       // what is given as body goes nowhere
  bool stopped_ = false;       // STOP_SENDING came, or we have reset: nothing more can be sent
  bool reset_wanted_ = false;
  bool reset_by_us_ = false;
  bool stop_after_end_ = false;    // STOP_SENDING follows the response
  bool asked_to_stop_ = false;     // and has been sent
  bool tunnel_refused_ = false;    // non-2xx to CONNECT: the client owes no end
  bool expects_continue_ = false;  // asked and not yet told to go on
  bool at_own_pace_ = false;       // a call whose messages come when there is something to say
  bool starved_ = false;           // our window may have held it up since rate_since_
  bool exact_ = false;             // send_left_ octets were announced
  bool bomb_ = false;              // its field section is so far over the limits that nobody looks at it
  std::uint64_t close_code_ = 0;
  std::uint64_t reset_code_ = 0;  // to be sent
  Fault gone_ = Fault::none;
  Fault defect_ = Fault::none;  // why nghttp3 or we refuse what the peer sent
  std::uint32_t interims_ = 0;
  std::size_t credit_ = 0;  // to be given
  std::uint64_t body_octets_ = 0;
  std::uint64_t unconsumed_ = 0;  // delivered and not yet passed on
  std::uint64_t rate_from_ = 0;   // body_octets_ at rate_since_
  Instant born_ = kNever;
  Instant rate_since_ = kNever;
  Instant moved_at_ = kNever;  // when its octets last left, or began to wait
  std::uint64_t max_body_ = 0;
  std::uint64_t send_left_ = 0;
  std::size_t left_ = 0;  // body octets that have left or gone nowhere, to be reported
  Section* first_ = nullptr;
  Section* last_ = nullptr;
  Chain body_;  // not given to the library yet
  SentBody sent_;
  FieldReader reader_{HttpVersion{3, 0}};
  Arena arena_;
};

/// The streams of a session by id.
class StreamTable {
 public:
  H3Stream* find(std::int64_t id) const noexcept {
    H3Stream* s = buckets_[index(id)];
    while (s != nullptr && s->id_ != id) s = s->next_in_table_;
    return s;
  }
  void insert(H3Stream& s) noexcept {
    H3Stream*& head = buckets_[index(s.id_)];
    s.next_in_table_ = head;
    head = &s;
  }
  void erase(H3Stream& s) noexcept {
    H3Stream** at = &buckets_[index(s.id_)];
    while (*at != nullptr && *at != &s) at = &(*at)->next_in_table_;
    if (*at != nullptr) *at = s.next_in_table_;
  }

 private:
  // Request streams have every fourth number, one after the other: neighbours never share a bucket.
  static constexpr std::size_t kBuckets = 32;
  static std::size_t index(std::int64_t id) noexcept { return static_cast<std::size_t>(id) / 4 % kBuckets; }
  H3Stream* buckets_[kBuckets] = {};
};

}  // namespace twp::h3
