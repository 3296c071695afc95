// The pages that need state for as long as a request lasts. One object per stream, from the Site's slabs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/chain.h"
#include "base/timer_wheel.h"
#include "http/stream.h"
#include "origin/site.h"
#include "origin/websocket.h"

namespace twp::origin {

/// What all handlers share: a request body is taken and thrown away, and the object ends with its stream.
template <class Self>
class Handler : public StreamEvents {
 public:
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  Site& site() noexcept { return site_; }

  void on_head(Stream&, Head&&, End) noexcept override {}
  void on_body(Stream& s, Slice body, End) noexcept override { s.consume(body.size()); }
  void on_trailers(Stream&, HeaderBlock&&) noexcept override {}
  void on_sent(Stream&, std::size_t) noexcept override {}
  void on_gone(Stream&, Fault) noexcept override { site_.release(self()); }

 protected:
  explicit Handler(Site& site) noexcept : site_(site) {}
  ~Handler() = default;
  Self& self() noexcept { return static_cast<Self&>(*this); }

  Site& site_;
};

/// Reads an upload to its end, then lets the Site answer.
class Discard final : public Handler<Discard> {
 public:
  Discard(Site& site, Ask&& ask) noexcept : Handler(site), ask_(std::move(ask)) {}
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream& s, HeaderBlock&&) noexcept override { finish(s); }

 private:
  void finish(Stream& s) noexcept;
  Ask ask_;
};

/// `/delay/MS`.
class Delay final : public Handler<Delay>, Timer {
 public:
  Delay(Site& site, Stream& s, const Ask& ask) noexcept;
  void on_gone(Stream& s, Fault why) noexcept override;

 private:
  void on_timer() noexcept override;
  Stream& stream_;
  bool head_;
};

/// `/bytes/N` and `/chunked/N`: slices of one static block, topped up as they leave.
class Download final : public Handler<Download> {
 public:
  Download(Site& site, std::uint64_t octets) noexcept : Handler(site), left_(octets) {}
  void on_sent(Stream& s, std::size_t n) noexcept override;
  void pump(Stream& s) noexcept;

 private:
  // Queued octets. Static memory, so this bounds nothing but the number of slices in a queue.
  static constexpr std::size_t kAhead = 1024 * 1024;
  std::uint64_t at_ = 0;
  std::uint64_t left_;
  std::size_t queued_ = 0;
};

/// `/stream`: a chunk every interval, but never more than kAhead octets before the client has taken them.
class Ticker final : public Handler<Ticker>, Timer {
 public:
  Ticker(Site& site, Stream& s, const Page& page) noexcept;
  void on_sent(Stream& s, std::size_t n) noexcept override;
  void on_gone(Stream& s, Fault why) noexcept override;
  void on_timer() noexcept override;

 private:
  static constexpr std::size_t kAhead = 256 * 1024;
  Stream& stream_;
  Page page_;
  std::uint64_t at_ = 0;
  std::size_t queued_ = 0;
  bool waiting_ = false;
};

/// `/echo`: credit returns as the octets leave again.
class Echo final : public Handler<Echo> {
 public:
  explicit Echo(Site& site) noexcept : Handler(site) {}
  void on_body(Stream& s, Slice body, End end) noexcept override { s.send_body(std::move(body), end); }
  void on_trailers(Stream& s, HeaderBlock&& t) noexcept override { s.send_trailers(t); }
  void on_sent(Stream& s, std::size_t n) noexcept override { s.consume(n); }
};

/// `/early`: the whole response after the first 8 KiB of the request, or at its end.
class Early final : public Handler<Early> {
 public:
  static constexpr std::size_t kAfter = 8 * 1024;
  Early(Site& site, bool head) noexcept : Handler(site), head_(head) {}
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_trailers(Stream& s, HeaderBlock&&) noexcept override { answer(s); }

 private:
  void answer(Stream& s) noexcept;
  std::uint64_t seen_ = 0;
  bool head_;
  bool answered_ = false;
};

/// `/reset`: part of a body, then the stream (on HTTP/1 the connection) is reset.
class Reset final : public Handler<Reset> {
 public:
  static constexpr std::uint64_t kPromised = 1024 * 1024;
  static constexpr std::uint64_t kSent = 1000;
  explicit Reset(Site& site) noexcept : Handler(site) {}
  void on_sent(Stream& s, std::size_t n) noexcept override;

 private:
  std::uint64_t sent_ = 0;
};

/// `/ws`: every data frame comes back as it came. Frames up to kHold are checked whole before they are sent back;
/// longer ones are passed on as they arrive.
class WsEcho final : public Handler<WsEcho>, Timer, ws::ReaderEvents {
 public:
  static constexpr std::uint64_t kHold = 128 * 1024;
  WsEcho(Site& site, Stream& s) noexcept : Handler(site), stream_(s) {}
  void on_body(Stream& s, Slice body, End end) noexcept override;
  void on_sent(Stream& s, std::size_t n) noexcept override;
  void on_gone(Stream& s, Fault why) noexcept override;

 private:
  void on_timer() noexcept override { stream_.reset(Fault::idle_timeout); }
  void on_frame(const ws::FrameHeader& h) noexcept override;
  void on_payload(std::span<const std::byte> octets, bool end) noexcept override;
  void on_control(ws::Opcode opcode, std::span<const std::byte> payload) noexcept override;
  void send(std::string_view octets, End end = End::no) noexcept;
  void send_header(const ws::FrameHeader& h) noexcept;
  void finish(std::string_view close) noexcept;
  void credit() noexcept;

  Stream& stream_;
  ws::Reader reader_{ws::Reader::Role::server};
  ws::FrameHeader frame_;
  Chain held_;
  bool streaming_ = false;  // the header of frame_ has gone out, its payload has not yet
  bool done_ = false;       // we have sent our close frame
  std::size_t owed_ = 0;    // received, credit not yet given back
  std::size_t queued_ = 0;  // sent, not yet left
};

}  // namespace twp::origin
