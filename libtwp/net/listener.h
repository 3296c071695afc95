// Listener: a listening TCP socket on one worker (SO_REUSEPORT: every worker has its own).
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "event/poll_fd.h"
#include "event/worker.h"
#include "net/tcp_transport.h"

namespace twp {

struct ListenOptions {
  int backlog = 4096;
  bool reuse_port = true;   ///< several workers on one address
  TcpOptions tcp;           ///< congestion control, inherited by accepted sockets
};

class ListenHandler {
 public:
  /// A new connection, already non-blocking, TCP_NODELAY inherited.
  virtual void on_accept(std::unique_ptr<TcpTransport> transport) noexcept = 0;

 protected:
  ~ListenHandler() = default;
};

/// Accepts up to 64 connections per wake-up; an IPv6 socket takes IPv6 only (RFC 3493 §5.3), so that
/// 0.0.0.0 and [::] are two listeners that do not collide. Short of descriptors: stops accepting, logs once, and tries
/// again after 100 ms; never spins. Short is EMFILE, ENFILE, or fewer left below RLIMIT_NOFILE than 5 % of it and 64, or
/// half of those that were free at open() where that is less: origins need some, or who was accepted would get nothing.
class Listener final : PollHandler, Timer {
 public:
  /// Binds and listens. Error text: "cannot listen on 127.0.0.1:80: Address already in use". Port 0 picks one.
  static Result<std::unique_ptr<Listener>> open(Worker& worker, const Address& at, const ListenOptions& options,
                                                ListenHandler& handler);
  /// Whether somebody listens on `at` already, in the words of open(). With SO_REUSEPORT the kernel lets a second process
  /// of the same user join a port without a word, and half of the connections go astray: ask before the first worker
  /// opens, and not about an address that this process holds. Keeps no socket. Port 0 is always free.
  static Result<void> probe(const Address& at);
  ~Listener() = default;

  const Address& address() const noexcept { return address_; }  ///< with the real port
  /// Takes what waits in the kernel's queue, then closes: those clients are connected already, and closing alone would
  /// reset them. Not from inside on_accept().
  void finish() noexcept;
  /// Takes no new connections any more; the socket closes, and with it what waits in its queue.
  void close() noexcept {
    cancel();
    poll_.close();
  }

 private:
  Listener(Worker& worker, ListenHandler& handler) noexcept : worker_(worker), handler_(handler) {}
  void on_poll(Ready) noexcept override;
  void on_timer() noexcept override;
  bool accept_one() noexcept;
  void back_off(const char* why) noexcept;

  Worker& worker_;
  ListenHandler& handler_;
  Address address_;
  PollFd poll_;
  int busy_fd_ = 0;             // descriptor number from which on we are "nearly out"
  bool wildcard_ = false;       // the local address differs per connection
  bool told_ = false;           // the shortage is in the log already
};

}  // namespace twp
