// Sniffer: which protocol the client of a cleartext connection speaks, told from its first octets.
#pragma once

#include <memory>
#include <string_view>

#include "base/chain.h"
#include "event/worker.h"
#include "net/transport.h"

namespace twp {

/// What a client with prior knowledge of HTTP/2 sends first (RFC 9113 §3.4).
inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// So many octets of it decide. An HTTP/1 request cannot begin with them: PRI is no method and there is no HTTP/2.0 on that
/// wire. What follows is for the HTTP/2 session to judge.
inline constexpr std::size_t kHttp2PrefaceDecides = 18;

enum class Sniffed : std::uint8_t {
  undecided,  ///< all octets so far are the beginning of the preface
  http1,      ///< or something that is no HTTP at all: that session has the words to refuse it
  http2,
};

/// What `octets`, the first of a connection, begin. Decides at the first octet that differs from the preface.
Sniffed sniff(std::string_view octets) noexcept;

class Sniffer;

class SniffHandler {
 public:
  /// `first` holds every octet that was read. The sniffer is over: take its transport, then retire it.
  virtual void on_sniffed(Sniffer&, Sniffed which, Chain first) noexcept = 0;
  /// The client went, or sent too little in time, before there was a decision; the transport is closed. Retire the sniffer.
  virtual void on_sniff_ended(Sniffer&) noexcept = 0;

 protected:
  ~SniffHandler() = default;
};

/// How long a client may take.
struct SniffTimes {
  Duration idle;  ///< to its first octet
  Duration head;  ///< from there to a decision
};

/// Waits for the first octets of an open transport. Holds no octets of its own while it waits, whatever has come: an
/// undecided beginning is known by its length. Reads once for each edge, so an HTTP/1 request that comes in one piece costs
/// the one read that its session would have made.
class Sniffer final : TransportHandler, Timer {
 public:
  /// `worker` and `handler` outlive the sniffer. Never calls back from inside the constructor.
  Sniffer(Worker& worker, std::unique_ptr<Transport> transport, SniffHandler& handler,
          SniffTimes times) noexcept;

  /// Nothing has come so far, so nobody waits for anything: gives a request that crosses this call `grace`, then ends.
  void drain(Duration grace) noexcept;
  /// Ends now and tells nobody.
  void close(Fault why) noexcept;
  std::unique_ptr<Transport> take_transport() noexcept { return std::move(transport_); }

 private:
  void on_ready(Transport&, bool readable, bool writable) noexcept override;
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override {
    end();
  }  // open before we got it
  void on_timer() noexcept override { end(); }
  void decide(Sniffed which, Slice last) noexcept;
  void end() noexcept;

  Worker& worker_;
  std::unique_ptr<Transport> transport_;
  SniffHandler& handler_;
  const SniffTimes times_;
  std::size_t matched_ = 0;  // octets of the preface that have come
  bool over_ = false;
};

}  // namespace twp
