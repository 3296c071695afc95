// Transport: moves bytes, knows no HTTP. TCP, TLS over a Transport, or (interception) a CONNECT stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/chain.h"
#include "base/fault.h"
#include "net/address.h"

namespace twp {

class Transport;
class Worker;

enum class IoStatus : std::uint8_t {
  ok,     ///< `n` octets moved
  again,  ///< nothing moved now; on_ready() follows
  eof,    ///< read only: the peer has shut its side in an orderly way
  error,  ///< `fault` says what; the transport is dead
};

struct IoResult {
  IoStatus status = IoStatus::again;
  std::size_t n = 0;
  Fault fault = Fault::none;
};

/// What is known of the other end. Filled in stages: addresses at once, the TLS part at on_open().
struct PeerInfo {
  Address local;
  Address remote;
  bool tls = false;
  bool tls_resumed = false;
  std::string alpn;         ///< negotiated protocol ("h2", "http/1.1"), empty: none
  std::string sni;          ///< name the client asked for, or the name we asked for
  std::string cipher;       ///< "TLS_AES_128_GCM_SHA256"
  std::string tls_version;  ///< "TLSv1.3"
  std::string subject;      ///< subject of a verified peer certificate, RFC 4514; empty: none
};

/// Receives a transport's edges. One handler at a time; changed with set_handler(). Inside a callback the
/// handler may call anything but the transport's destructor.
class TransportHandler {
 public:
  /// Ready for data: connected, and handshaken where there is TLS. Accepted plain TCP is open from the start
  /// and gets no on_open().
  virtual void on_open(Transport&) noexcept {}
  /// read() may have something, or write() may take more. Spurious calls are allowed.
  virtual void on_ready(Transport&, bool readable, bool writable) noexcept = 0;
  /// Failed before on_open(): refused, timed out, handshake or verification. `detail` is one line for the log.
  virtual void on_open_failed(Transport&, Fault, std::string_view detail) noexcept = 0;

 protected:
  ~TransportHandler() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual void set_handler(TransportHandler* handler) noexcept = 0;
  /// Reads into `into`. After a result other than `again` the caller must go on until `again`/`eof`/`error`
  /// or until drained() says that there is nothing more to ask for.
  /// With an empty `into` nothing is read: `error` when the connection is known to be lost (a reset can hide behind
  /// octets that nobody reads), else `again`.
  virtual IoResult read(std::span<std::byte> into) noexcept = 0;
  /// True when a further read() would only say `again` (a short read has emptied the socket).
  virtual bool drained() const noexcept = 0;
  /// Sends from the front of `from` and consumes what was taken. `ok` with octets left in `from` means the
  /// same as `again`: on_ready(writable) follows.
  virtual IoResult write(Chain& from) noexcept = 0;
  /// Orderly end of our side after all that write() has taken (FIN, close_notify). Reading goes on.
  virtual void shutdown_write() noexcept = 0;
  /// Ends both sides at once. Fault::none closes in order (FIN), anything else resets the connection (RST)
  /// so that the peer cannot take a cut message for a whole one. No callback follows.
  virtual void close(Fault why) noexcept = 0;
  virtual const PeerInfo& peer() const noexcept = 0;
  /// The kernel socket when its octets are the stream's octets (plain TCP, nothing buffered): for splice(2).
  /// -1 otherwise.
  virtual int raw_fd() const noexcept { return -1; }
};

}  // namespace twp
