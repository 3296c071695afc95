// QuicConnection: one QUIC connection in either role, RFC 9000, RFC 9001, RFC 9002, on ngtcp2. No socket in here: datagrams
// come by receive() and leave through a QuicHost. It knows no HTTP: streams are octets for a QuicEvents and from a QuicOutput.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "event/worker.h"
#include "h3/quic_host.h"
#include "net/transport.h"
#include "tls/quic_tls.h"
#include "tls/tls_context.h"

struct ngtcp2_conn;
struct ngtcp2_crypto_ossl_ctx;

namespace twp {

/// What a connection grants its peer and how it behaves.
struct QuicSettings {
  std::uint64_t stream_window = 256 * 1024;       ///< octets of a stream that were not given back by credit()
  std::uint64_t connection_window = 1024 * 1024;  ///< octets of all streams together
  std::uint64_t max_streams = 100;                ///< server role: bidirectional streams at a time
  Duration idle_timeout = std::chrono::seconds(30);  ///< nothing heard for so long: the connection is gone
  Duration handshake_timeout = std::chrono::seconds(10);
  std::uint64_t glitch_burst = 1000;  ///< suspicious frames at once; RFC 9000 §21 lists them
  std::uint64_t glitch_rate = 33;     ///< and a second for ever
};

/// Server role: what the client's first packet says, and its Retry or NEW_TOKEN token when it has been verified.
struct QuicInitial {
  std::uint32_t version = 0;
  QuicId dcid;  ///< as in the packet
  QuicId scid;
  std::optional<QuicId> original_dcid;  ///< out of a Retry token: where the client first sent to
  std::span<const std::uint8_t> token;  ///< verified; empty: the address is not proven
  bool after_retry = false;
};

/// Client role.
struct QuicTarget {
  std::string host;                 ///< SNI, and the name that the certificate must be for
  std::string verify_name;          ///< instead of `host` for the certificate, when not empty
  std::string session_key;          ///< where tickets are kept
  std::vector<std::uint8_t> token;  ///< of an earlier connection's NEW_TOKEN
  std::uint32_t version = 1;        ///< 1, or 0x6b3343cf for version 2 (RFC 9369)
};

/// What the peer does. Called from inside receive() and from timers; may call anything but the connection's destructor.
class QuicEvents {
 public:
  /// Streams can be opened and written now, also when the handshake is not complete yet.
  virtual void on_keys() noexcept = 0;
  virtual void on_open() noexcept = 0;  ///< the handshake is complete; peer() is filled
  virtual void on_data(std::int64_t stream, std::span<const std::byte> octets, bool fin) noexcept = 0;
  /// RESET_STREAM: nothing more comes on it.
  virtual void on_reset(std::int64_t stream, std::uint64_t code) noexcept = 0;
  /// Both directions are over and acknowledged, or were reset with `code`.
  virtual void on_closed(std::int64_t stream, std::optional<std::uint64_t> code) noexcept = 0;
  virtual void on_more_streams() noexcept = 0;  ///< streams_left() has grown
  virtual void on_input_over() noexcept = 0;    ///< all datagrams of a batch were taken
  /// Last call. `detail` is one line for the log; empty: an end in order.
  virtual void on_over(Fault why, const std::string& detail) noexcept = 0;

 protected:
  ~QuicEvents() = default;
};

/// What is to be sent. Called from inside the flush; calls nothing of the connection but from on_flush() and on_flushed().
class QuicOutput {
 public:
  struct Piece {
    std::int64_t stream = -1;       ///< -1: there is nothing
    std::span<const iovec> octets;  ///< stay where they are until acked() or the stream's end
    bool fin = false;               ///< the stream ends behind them
  };
  virtual void on_flush() noexcept = 0;  ///< a flush begins
  virtual Piece next() noexcept = 0;
  /// The first `n` octets of the last piece are in a packet; with the fin when that is all of it.
  virtual void wrote(std::int64_t stream, std::size_t n) noexcept = 0;
  virtual void blocked(std::int64_t stream) noexcept = 0;    ///< the peer grants no more for now
  virtual void unblocked(std::int64_t stream) noexcept = 0;  ///< called from receive()
  virtual void stopped(std::int64_t stream) noexcept = 0;    ///< the peer wants no more of it, or it is gone
  virtual void acked(std::int64_t stream, std::uint64_t n) noexcept = 0;
  virtual void on_flushed() noexcept = 0;

 protected:
  ~QuicOutput() = default;
};

class QuicConnection final : Timer {
 public:
  /// Server role; `path` is where the first packet came from, which is to be given to receive() next. `context` is one for
  /// ALPN "h3". Null when there is no memory.
  static std::unique_ptr<QuicConnection> accept(Worker& worker, QuicHost& host, TlsContext& context,
                                                const QuicSettings& settings, const QuicInitial& initial,
                                                const QuicPath& path);
  /// Client role; the first packet leaves with the next flush.
  static std::unique_ptr<QuicConnection> connect(Worker& worker, QuicHost& host, TlsContext& context,
                                                 const QuicSettings& settings, const QuicTarget& target,
                                                 const QuicPath& path);
  QuicConnection(const QuicConnection&) = delete;
  QuicConnection& operator=(const QuicConnection&) = delete;
  /// A connection that is not over is forgotten without a word to anybody but the host.
  ~QuicConnection() override;

  /// Before the first receive() or flush. They outlive the connection.
  void attach(QuicEvents& events, QuicOutput& output) noexcept;

  /// For a host that exists for this connection alone: it goes with it.
  void own_host(std::unique_ptr<QuicHost> host) noexcept { own_host_ = std::move(host); }

  enum class Received : std::uint8_t { ok, over, retry };
  /// Takes the datagrams of one path that came together. `retry`: the client must prove its address first (RFC 9000 §8.1.2),
  /// and the connection is over.
  Received receive(const QuicPath& path, std::uint8_t ecn, std::span<const std::byte> train,
                   std::size_t segment) noexcept;
  void sendable() noexcept;
  void flush_soon() noexcept;

  bool is_server() const noexcept { return server_; }
  bool is_open() const noexcept { return open_; }
  const PeerInfo& peer() const noexcept { return peer_; }
  std::uint32_t version() const noexcept;
  std::span<const std::uint8_t> token() const noexcept {
    return token_;
  }  ///< client role: the last NEW_TOKEN

  // Streams. Not from inside QuicOutput's calls but on_flush() and on_flushed().
  std::int64_t open_stream(bool bidirectional) noexcept;  ///< -1: the peer allows no more
  std::uint64_t streams_left() const noexcept;  ///< bidirectional ones that open_stream() would give
  void grant_streams(std::size_t n) noexcept;   ///< the peer may open so many more
  void credit(std::int64_t stream, std::size_t n) noexcept;  ///< the peer may send so much more on it
  void credit_connection(std::size_t n) noexcept;
  void reset_stream(std::int64_t stream, std::uint64_t code) noexcept;  ///< RESET_STREAM: our octets end here
  void stop_sending(std::int64_t stream, std::uint64_t code) noexcept;  ///< the peer's are not wanted

  /// Time and timers are the host's.
  Instant now() const noexcept { return host_.now(); }
  void arm_timer(Timer& timer, Instant at) noexcept { host_.arm(timer, at); }

  /// PING so often that the connection lives while something is waited for.
  void keep_alive(bool on) noexcept;
  Duration probe_timeout() const noexcept;
  /// Client role: goes on from another local address (RFC 9000 §9.2). False: not now.
  bool migrate(const QuicPath& path) noexcept;
  bool update_keys() noexcept;  ///< false: not now (RFC 9001 §6.1)

  /// CONNECTION_CLOSE with that application error code (transport error APPLICATION_ERROR before the handshake is complete),
  /// now, or when the call it comes from inside of returns. QuicEvents::on_over(why) follows, also from inside this call.
  void close(std::uint64_t code, Fault why, std::string_view reason = {}) noexcept;

  /// As close(), without a word to the peer, who cannot be reached.
  void give_up(Fault why, std::string_view reason) noexcept;

 private:
  friend struct QuicCallbacks;

  struct FlushTask final : Task {
    explicit FlushTask(QuicConnection& o) noexcept : owner(o) {}
    void run() noexcept override { owner.flush(); }
    QuicConnection& owner;
  };
  /// Calls of ngtcp2's that we are inside of; what ends the connection waits until the last has returned.
  struct Entered {
    explicit Entered(QuicConnection& o) noexcept : owner(o) { ++owner.inside_; }
    ~Entered() { owner.leave(); }
    QuicConnection& owner;
  };
  struct Ending {
    enum class How : std::uint8_t { application, transport, tls, library, silent } how = How::silent;
    std::uint64_t code = 0;  // for library: its error
    Fault why = Fault::none;
    std::string detail;
    bool drain = false;  // packets of the peer may still come
  };
  struct Ref;
  struct Writer;

  QuicConnection(Worker& worker, QuicHost& host, const QuicSettings& settings, const QuicPath& path,
                 bool server);

  bool make_conn(const QuicInitial* initial, const QuicTarget* target);
  bool bind_tls() noexcept;
  void on_timer() noexcept override;

  void read(const QuicPath& path, std::uint8_t ecn, std::span<const std::byte> datagram) noexcept;
  void read_failed(int error) noexcept;
  void draining() noexcept;
  void expired(int error) noexcept;
  void flush() noexcept;
  void write_all() noexcept;
  void arm() noexcept;
  void note_path() noexcept;
  void opened() noexcept;

  void end(Ending ending) noexcept;
  void leave() noexcept;
  void finish() noexcept;
  void last_words(QuicFarewell& farewell) noexcept;

  std::unique_ptr<QuicHost> own_host_;  // dies last
  Worker& worker_;
  QuicHost& host_;
  QuicEvents* events_ = nullptr;
  QuicOutput* output_ = nullptr;
  const QuicSettings settings_;
  std::unique_ptr<QuicTls> tls_;
  std::unique_ptr<Ref> ref_;
  ngtcp2_crypto_ossl_ctx* crypto_ = nullptr;
  ngtcp2_conn* conn_ = nullptr;
  PeerInfo peer_;
  QuicPath path_;
  QuicResetToken reset_token_{};
  std::vector<QuicId> ids_;
  std::vector<std::uint8_t> token_;
  std::optional<Ending> ending_;
  unsigned inside_ = 0;
  const bool server_;
  bool paced_ = true;
  bool keys_ = false;  // on_keys() was called
  bool open_ = false;
  bool full_ = false;  // the host takes no more for now
  bool over_ = false;
  bool retry_ = false;  // ended because the client must prove its address
  bool stateless_reset_ = false;

  FlushTask flush_task_{*this};
};

}  // namespace twp
