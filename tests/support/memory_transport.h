// MemoryTransport: a connection without a kernel. Two ends on one worker, with everything that a socket may do
// to a session under the control of the test: how much a read gives, how much a write takes, half close, reset,
// failure of the nth call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "event/worker.h"
#include "net/transport.h"

namespace twp::test {

/// How many of `available` octets one read gives: 1 .. available.
using Chop = std::function<std::size_t(std::size_t available)>;
Chop whole();
Chop every_octet();
Chop pieces_of(std::size_t n);
Chop random_pieces(std::uint32_t seed);

/// Counts what moves in this thread's memory transports and recorders: nothing has moved for some turns means
/// that nothing will until time passes or the test acts.
std::uint64_t& activity() noexcept;

class MemoryTransport final : public Transport, Task {
 public:
  using Ptr = std::unique_ptr<MemoryTransport>;

  /// Two ends of one open connection.
  static std::pair<Ptr, Ptr> make_pair(Worker& worker);
  ~MemoryTransport() override;

  // Transport. Edges (on_ready) come from a task of the worker, never from inside a call.
  void set_handler(TransportHandler* handler) noexcept override;
  IoResult read(std::span<std::byte> into) noexcept override;
  bool drained() const noexcept override { return !readable_; }
  IoResult write(Chain& from) noexcept override;
  void shutdown_write() noexcept override;
  void close(Fault why) noexcept override;
  const PeerInfo& peer() const noexcept override { return peer_; }

  /// Reads here give pieces from now on; between two pieces the transport is drained and a new edge comes.
  void set_chop(Chop chop) { chop_ = std::move(chop); }
  /// Octets that may wait unread at the other end before write() takes no more. Default: no limit.
  void set_write_space(std::size_t octets) noexcept;
  /// The nth read / write from now (1 is the next) says `error`, and every later one too. 0: never.
  void fail_read_at(unsigned nth) noexcept { fail_read_ = nth; }
  void fail_write_at(unsigned nth) noexcept { fail_write_ = nth; }
  PeerInfo& mutable_peer() noexcept { return peer_; }

  bool closed() const noexcept { return closed_; }
  Fault closed_why() const noexcept { return why_; }
  unsigned reads() const noexcept { return reads_; }
  unsigned writes() const noexcept { return writes_; }
  /// Octets written by the other end and not yet read here.
  std::size_t unread() const noexcept;

 private:
  struct Pipe {
    std::string data;
    std::size_t at = 0;
    std::size_t space = ~std::size_t{0};
    bool eof = false;
    bool reset = false;
    MemoryTransport* reader = nullptr;
    MemoryTransport* writer = nullptr;
    std::size_t size() const noexcept { return data.size() - at; }
  };

  MemoryTransport(Worker& worker, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out);
  void run() noexcept override;
  void edge(bool readable, bool writable) noexcept;

  Worker& worker_;
  std::shared_ptr<Pipe> in_, out_;
  TransportHandler* handler_ = nullptr;
  PeerInfo peer_;
  Chop chop_;
  Fault why_ = Fault::none;
  unsigned reads_ = 0, writes_ = 0, fail_read_ = 0, fail_write_ = 0;
  bool readable_ = true, writable_ = true;
  bool edge_read_ = false, edge_write_ = false;
  bool closed_ = false;
  bool failed_ = false;
};

/// The other end of what is under test: sends octets as given and keeps what comes. Over any transport.
class RawPeer final : TransportHandler {
 public:
  explicit RawPeer(std::unique_ptr<Transport> transport);

  void send(std::string_view octets);
  void finish();                       ///< ends our side when everything is sent
  void reset() { transport_->close(Fault::peer_reset); }
  void pause() noexcept { paused_ = true; }
  void resume();

  const std::string& got() const noexcept { return got_; }
  std::string take() { return std::exchange(got_, {}); }
  bool eof() const noexcept { return eof_; }              ///< the session ended its side in order
  bool was_reset() const noexcept { return reset_; }      ///< the session reset the connection
  bool over() const noexcept { return eof_ || reset_; }
  Transport& transport() noexcept { return *transport_; }
  std::function<void(RawPeer&)> on_input;  ///< after something came, the end included

 private:
  void on_open(Transport&) noexcept override { write(); }
  void on_ready(Transport&, bool readable, bool writable) noexcept override;
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override { reset_ = true; }
  void read() noexcept;
  void write() noexcept;

  std::unique_ptr<Transport> transport_;
  Chain out_;
  std::string got_;
  bool paused_ = false, eof_ = false, reset_ = false, finish_ = false;
};

/// Turns `worker` until `done` or until `limit` has passed; returns whether `done`.
bool run_until(Worker& worker, const std::function<bool()>& done, Duration limit = std::chrono::seconds(5));
/// Turns `worker` until nothing moves any more without time passing.
void run_quiet(Worker& worker);

}  // namespace twp::test
