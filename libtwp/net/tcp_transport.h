// TcpTransport: a non-blocking TCP socket with one edge-triggered registration.
#pragma once

#include <memory>
#include <string>

#include "event/poll_fd.h"
#include "event/worker.h"
#include "net/transport.h"

namespace twp {

/// Options of a TCP socket, applied once when it is made.
struct TcpOptions {
  std::string congestion;         ///< TCP_CONGESTION ("reno", "cubic", "bbr"); empty: the system's
  Address source;                 ///< bind address of outgoing connections; invalid: any
};

class TcpTransport final : public Transport, PollHandler, Task {
 public:
  /// Takes an accepted, non-blocking socket. `remote` is what accept4(2) returned.
  static std::unique_ptr<TcpTransport> accepted(Worker& worker, int fd, const Address& local, const Address& remote);

  /// Starts a connection. The result (on_open / on_open_failed) comes in a later callback, never inside this
  /// call; set a handler before the turn ends.
  static std::unique_ptr<TcpTransport> connect(Worker& worker, const Address& to, const TcpOptions& options);

  ~TcpTransport() override;

  void set_handler(TransportHandler* handler) noexcept override { handler_ = handler; }
  IoResult read(std::span<std::byte> into) noexcept override;
  bool drained() const noexcept override { return !readable_; }
  IoResult write(Chain& from) noexcept override;
  void shutdown_write() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return peer_; }
  int raw_fd() const noexcept override { return poll_.fd(); }

  /// splice(2) and the like used the descriptor directly: record what they learnt.
  void note_read_again() noexcept { readable_ = false; }
  void note_write_again() noexcept { writable_ = false; }

 private:
  enum class State : std::uint8_t { connecting, failed, open, closed };

  TcpTransport(Worker& worker, State state) noexcept : worker_(worker), state_(state) {}
  void on_poll(Ready ready) noexcept override;
  void run() noexcept override;  // delivers a connect that failed inside connect()
  void finish_connect() noexcept;
  void report_failure() noexcept;
  IoResult failed(int err) noexcept;
  IoResult lost() noexcept;

  Worker& worker_;
  TransportHandler* handler_ = nullptr;
  PollFd poll_;
  PeerInfo peer_;
  int error_ = 0;
  State state_;
  bool readable_ = true;
  bool guessed_ = false;  // not readable by inference from a short read, not because the kernel said so
  bool writable_ = true;
  bool hangup_ = false;
  bool reset_ = false;    // a write has learnt it; the end that a read meets is no orderly one
};

}  // namespace twp
