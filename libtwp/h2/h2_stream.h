// H2Stream: one request/response on an H2Session. Calls from outside only note what is to be done; the session
// does it when it flushes, so nghttp2 is never entered from inside one of its own callbacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/chain.h"
#include "base/ilist.h"
#include "h2/h2_encode.h"
#include "http/field_section.h"
#include "http/stream.h"

namespace twp::h2 {

class H2Session;

struct AllTag {};
struct DirtyTag {};
struct SentTag {};
struct EndingTag {};

class H2Stream final : public Stream,
                       public IListHook<AllTag>,    // every stream of the session
                       public IListHook<DirtyTag>,  // has something to submit
                       public IListHook<SentTag>,   // has octets on their way whose leaving is to be reported
                       public IListHook<EndingTag> {  // is over, or will be when its last octets have left
 public:
  H2Stream(H2Session& session, std::int32_t id) noexcept : session_(session), id_(id) {}

  Session& session() const noexcept override;
  std::uint64_t id() const noexcept override { return static_cast<std::uint64_t>(id_); }

 private:
  friend class H2Session;
  friend struct Callbacks;

  /// A section that waits to be submitted; lives in arena_ until the stream ends.
  struct Section {
    enum class Kind : std::uint8_t { interim, head, trailers };
    Section* next;
    EncodedFields lines;
    Kind kind;
  };
  /// Body octets whose last one stands at `end` of the session's output.
  struct Mark {
    std::uint64_t end = 0;
    std::uint64_t n = 0;
  };
  static constexpr std::size_t kMarks = 4;

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
  void mark(std::uint64_t end, std::uint64_t n) noexcept;
  /// Octets whose leaving can be reported when the output has got to `sent`.
  std::uint64_t take_sent(std::uint64_t sent) noexcept;
  bool has_marks() const noexcept { return mark_count_ != 0 || dropped_ != 0; }

  H2Session& session_;
  std::int32_t id_;
  Method method_ = Method::get;  // of the request
  std::uint16_t status_ = 0;     // of the final response that was sent or received
  bool extended_ = false;        // extended CONNECT
  bool attached_ = false;        // on_gone is still owed
  bool going_ = false;
  bool accepted_ = false;         // server role: the acceptor knows it
  bool refused_ = false;          // the request was answered or reset by the session itself
  bool answered_ = false;         // anything of a response was sent or received
  bool head_taken_ = false;       // the request or final response head is here
  bool recv_done_ = false;        // End::yes was delivered
  bool remote_end_ = false;       // END_STREAM came
  bool local_end_ = false;        // END_STREAM is in the output
  bool closed_ = false;           // nghttp2 has forgotten it
  bool submitted_ = false;        // nghttp2 knows our head
  bool data_ = false;             // nghttp2 asks read_body() for DATA
  bool waiting_ = false;          // nghttp2 was told that there is no DATA
  bool end_ = false;              // nothing follows what is in body_
  bool no_body_ = false;          // what is given as body goes nowhere
  bool tunnel_refused_ = false;   // non-2xx to CONNECT: the client owes no end
  bool reset_queued_ = false;     // RST_STREAM is with nghttp2
  bool reset_after_end_ = false;  // RST_STREAM follows the response
  bool trailers_due_ = false;     // the body is out, the trailers can go
  std::uint8_t mark_head_ = 0;
  std::uint8_t mark_count_ = 0;
  std::uint32_t close_code_ = 0;
  std::uint32_t reset_code_ = 0;  // to be sent
  bool reset_wanted_ = false;
  bool reset_by_us_ = false;  // RST_STREAM of ours is in the output
  Fault gone_ = Fault::none;
  Fault defect_ = Fault::none;  // why nghttp2 or we refuse what the peer sent
  std::uint32_t interims_ = 0;
  std::size_t credit_ = 0;  // to be given
  std::uint64_t body_octets_ = 0;
  std::uint64_t unconsumed_ = 0;  // delivered and not yet passed on
  std::uint64_t rate_from_ = 0;   // body_octets_ at rate_since_
  Instant rate_since_ = kNever;
  bool starved_ = false;           // our window may have held it up since rate_since_
  bool expects_continue_ = false;  // asked and not yet told to go on
  bool at_own_pace_ = false;       // a call whose messages come when there is something to say
  std::uint64_t max_body_ = 0;
  std::uint64_t send_left_ = 0;
  bool exact_ = false;         // send_left_ octets were announced
  std::uint64_t dropped_ = 0;  // body octets that went nowhere, to be reported
  std::uint64_t end_at_ = 0;   // where in the output its last octet stands
  Instant detached_at_ = kNever;
  std::uint64_t trickle_ = 0;  // octets that left since detached_at_
  Mark marks_[kMarks];
  Section* first_ = nullptr;
  Section* last_ = nullptr;
  Chain body_;
  FieldReader reader_{HttpVersion{2, 0}};
  Arena arena_;
};

}  // namespace twp::h2
