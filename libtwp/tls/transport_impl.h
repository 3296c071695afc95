// The TLS transport's state machine. Private to tls/.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/chain.h"
#include "event/worker.h"
#include "net/transport.h"
#include "tls/context_impl.h"

namespace twp::tls_detail {

/// Both roles. Ciphertext comes through one receive buffer per thread (a connection keeps octets of its own only
/// while its reader has stopped in the middle of them) and leaves through `out_`, one lower write for all records
/// of a call.
class Transport final : public twp::Transport, TransportHandler, Timer, Task {
 public:
  Transport(Worker& worker, std::unique_ptr<twp::Transport> lower, Context& context) noexcept;
  ~Transport() override;

  void start_server(Duration handshake_timeout) noexcept;
  void start_client(const std::string& host, const std::string& verify_name, const std::string& session_key) noexcept;

  void set_handler(TransportHandler* handler) noexcept override;
  IoResult read(std::span<std::byte> into) noexcept override;
  bool drained() const noexcept override;
  IoResult write(Chain& from) noexcept override;
  void shutdown_write() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return peer_; }

 private:
  enum class State : std::uint8_t { waiting, handshaking, open, failed, closed };
  struct Receive;
  friend struct BioGlue;

  void on_open(twp::Transport&) noexcept override;
  void on_ready(twp::Transport&, bool readable, bool writable) noexcept override;
  void on_open_failed(twp::Transport&, Fault fault, std::string_view detail) noexcept override;
  void on_timer() noexcept override;
  void run() noexcept override;

  void begin() noexcept;
  void handshake() noexcept;
  void established() noexcept;
  void handshake_failed() noexcept;
  void fail_open(Fault fault, const std::string& reason) noexcept;
  IoResult broken() noexcept;

  IoResult fill() noexcept;
  void stash_feed() noexcept;
  std::size_t take(std::span<std::byte> into) noexcept;
  bool starved() const noexcept { return feed_.empty() && stash_.empty() && SSL_pending(ssl_.get()) == 0; }
  void encrypt(Chain& from, std::size_t& total) noexcept;
  bool flush() noexcept;

  Worker& worker_;
  Context& context_;
  std::unique_ptr<twp::Transport> lower_;
  TransportHandler* handler_ = nullptr;
  SslPtr ssl_;
  Connection connection_;
  PeerInfo peer_;
  std::string expected_;                // name or IP the certificate must be for
  std::span<const std::byte> feed_;     // ciphertext of ours in the thread's buffer
  Chain stash_;                         // ciphertext moved out of it; before feed_ in order
  Chain out_;                           // ciphertext the lower transport has not taken
  Fault fault_ = Fault::none;           // why reading is over
  Fault write_fault_ = Fault::none;
  State state_ = State::waiting;
  bool server_ = false;
  bool eof_ = false;                    // close_notify came
  bool fin_pending_ = false;            // end the lower side once out_ is empty
  bool fin_sent_ = false;
};

}  // namespace twp::tls_detail
