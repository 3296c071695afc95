// Recorder: StreamEvents that write down what happens, and abort when the promises of http/stream.h are broken.
// With the acceptor and the owner that sessions need. No test framework in here: fuzz targets use it too.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "event/worker.h"
#include "http/session.h"

namespace twp::test {

/// Every part of a head as text, one line each; two heads are canonically equal when their texts are. Names are in lower
/// case, fields in order. `spelling`: with reason phrase and spelling, for wires that keep them.
std::string describe(const Head& head, bool spelling = false);
std::string describe(const HeaderBlock& fields, bool spelling = false);

/// Aborts with a message when an order of calls is illegal: nothing before a head, nothing after the end of the
/// message but on_sent, on_gone exactly once and last, and never from inside a call into the stream.
class Recorder final : public StreamEvents {
 public:
  Recorder() = default;
  ~Recorder();

  // What happened.
  std::vector<Head> interims;
  std::optional<Head> head;
  std::string body;
  bool ended = false;
  std::optional<HeaderBlock> trailers;
  std::size_t sent = 0;
  bool gone = false;
  Fault fault = Fault::none;  ///< of on_gone
  Stream* stream = nullptr;   ///< null when there is none or it is gone
  std::size_t unconsumed = 0;
  std::size_t max_unconsumed = 0;
  /// All of it in order, independent of how the octets were cut into pieces.
  std::string transcript() const;

  // What to do. Hooks run after the event is recorded.
  bool consume = true;         ///< give credit back at once
  std::size_t keep_body = ~std::size_t{0};  ///< octets of body to remember
  std::function<void(Recorder&)> on_request;   ///< final or request head
  std::function<void(Recorder&)> on_interim;
  std::function<void(Recorder&)> on_data;      ///< each piece
  std::function<void(Recorder&)> on_end;       ///< the incoming message is complete
  std::function<void(Recorder&)> on_over;      ///< gone
  std::function<void(Recorder&, std::size_t)> on_octets_sent;

  // Sending; nothing happens when the stream is gone.
  void send_head(const Head& h, End end);
  void send_body(std::string_view octets, End end);
  void send_trailers(const HeaderBlock& fields);
  void reset(Fault why);
  void give_credit(std::size_t n);
  /// Head with these fields and the whole body at once.
  void respond(std::uint16_t status, std::string_view text);

  // StreamEvents
  void on_head(Stream& s, Head&& h, End end) noexcept override;
  void on_body(Stream& s, Slice b, End end) noexcept override;
  void on_trailers(Stream& s, HeaderBlock&& t) noexcept override;
  void on_sent(Stream& s, std::size_t n) noexcept override;
  void on_gone(Stream& s, Fault why) noexcept override;

 private:
  struct Call {
    explicit Call(Recorder& r) noexcept : owner(r) { ++owner.inside_; }
    ~Call() { --owner.inside_; }
    Recorder& owner;
  };
  void enter(Stream& s, const char* what) noexcept;
  void finish_body();
  [[noreturn]] void broken(const char* what) const noexcept;

  std::vector<std::string> log_;
  int inside_ = 0;  // calls of ours into the stream
};

/// Makes one Recorder for each stream.
class RecordingAcceptor final : public Acceptor {
 public:
  std::function<void(Recorder&)> setup;  ///< before the first event
  std::vector<std::unique_ptr<Recorder>> streams;
  std::vector<Fault> rejects;

  StreamEvents& accept(Stream& s) noexcept override;
  void rejected(Session&, Fault why) noexcept override { rejects.push_back(why); }
  /// Transcripts of all streams and rejections.
  std::string transcript() const;
};

/// Owns one session and aborts when it goes twice.
class RecordingOwner final : public SessionOwner {
 public:
  explicit RecordingOwner(Worker& worker) : worker_(worker) {}

  Session* hold(std::unique_ptr<Session> session);
  Session* session() const noexcept { return session_.get(); }
  bool gone = false;
  Fault fault = Fault::none;
  unsigned capacity_calls = 0;
  std::function<void()> on_capacity_hook;

  void on_capacity(Session&) noexcept override;
  void on_session_gone(Session&, Fault why) noexcept override;

 private:
  Worker& worker_;
  std::unique_ptr<Session> session_;
};

}  // namespace twp::test
