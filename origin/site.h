// Site: the origin's pages on one worker. Every stream starts with the Site itself, which answers what needs no state
// (the benchmark's `/` above all) without allocating; a page that needs state hands the stream to a handler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "base/slab.h"
#include "event/worker.h"
#include "http/session.h"
#include "http/stream.h"
#include "origin/page.h"

namespace twp::origin {

class Discard;
class Delay;
class Download;
class Ticker;
class Echo;
class Early;
class Reset;
class WsEcho;
class GrpcCall;

/// A request as far as its answer depends on it.
struct Ask {
  Page page;
  bool head = false;  ///< HEAD: the same head, no body
  std::string text;   ///< body of /headers
};

class Site final : public Acceptor, StreamEvents {
 public:
  explicit Site(Worker& worker);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  ~Site();

  StreamEvents& accept(Stream&) noexcept override { return *this; }

  Worker& worker() noexcept { return worker_; }
  /// Answers a request that has been read to its end.
  void answer(Stream& s, const Ask& ask);
  /// The 200 with the benchmark's JSON.
  void answer_json(Stream& s, bool head);
  /// A head with Date and Content-Type, and Content-Length when `size` is exact.
  Head make_head(std::uint16_t status, std::string_view content_type, BodySize size);

  /// Gives the stream to a new T; it frees itself with release() after on_gone or when it hands the stream on.
  template <class T, class... Args>
  T& hand_to(Stream& s, Args&&... args);
  template <class T>
  void release(T& handler) noexcept;

 private:
  void on_head(Stream& s, Head&& head, End end) noexcept override;
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream&, HeaderBlock&&) noexcept override {}
  void on_sent(Stream&, std::size_t) noexcept override {}
  void on_gone(Stream&, Fault) noexcept override {}

  void refresh_date() noexcept;
  void answer_text(Stream& s, std::uint16_t status, std::string_view text, bool head);
  void answer_status(Stream& s, std::uint16_t status, bool head);
  void answer_trailers(Stream& s, bool head);
  void answer_interim(Stream& s, bool head);
  void answer_download(Stream& s, const Ask& ask);
  void start_echo(Stream& s, const Head& head, End end);
  void start_ws(Stream& s, const Head& head);
  void start_grpc(Stream& s, const Head& head, End end);

  Worker& worker_;
  Head root_;                       // prebuilt; its Date points at date_
  std::uint64_t date_second_ = 0;
  std::array<char, 29> date_{};
  struct Pools;
  std::unique_ptr<Pools> pools_;
};

/// The request head as one JSON object, each octet of names and values kept (RFC 8259 §7 escapes).
std::string head_as_json(const Head& head);

}  // namespace twp::origin
