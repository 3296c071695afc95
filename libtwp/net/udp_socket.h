// UdpSocket: a non-blocking UDP socket with one edge-triggered registration, made for QUIC: many datagrams a system call
// both ways, ECN, and the local address of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/fault.h"
#include "base/result.h"
#include "event/poll_fd.h"
#include "event/worker.h"
#include "net/address.h"

namespace twp {

/// The two ECN bits of the IP header (RFC 3168 §5).
enum class Ecn : std::uint8_t { none = 0, ect1 = 1, ect0 = 2, ce = 3 };

/// Datagrams of one path that share an ECN codepoint, back to back: what one GRO or GSO call moves. Borrowed, never owned.
struct Datagrams {
  std::span<const std::byte> octets;
  std::size_t segment = 0;  ///< octets of each datagram; the last may be shorter. 0: one datagram
  Address local;            ///< to send: invalid or a wildcard leaves the choice to the kernel
  Address remote;           ///< to send on a connected socket: ignored
  Ecn ecn = Ecn::none;

  std::size_t count() const noexcept {
    return segment == 0 || octets.size() <= segment ? 1 : (octets.size() + segment - 1) / segment;
  }
  /// Takes the first datagram off; empty when there is no more.
  std::span<const std::byte> next() noexcept {
    const auto first = octets.first(segment == 0 || octets.size() < segment ? octets.size() : segment);
    octets = octets.subspan(first.size());
    return first;
  }
};

/// What a socket has done since it was opened. Sums over sockets by +=.
struct UdpCounters {
  /// Datagrams a batch: [0] counts batches of 1, [1] of 2-3, [2] of 4-7 ... [7] of 128 and more.
  using Sizes = std::array<std::uint64_t, 8>;

  std::uint64_t datagrams_in = 0, octets_in = 0,
                calls_in = 0;  ///< calls: system calls, those that gave nothing too
  std::uint64_t datagrams_out = 0, octets_out = 0,
                calls_out = 0;  ///< datagrams and octets: what the kernel has taken
  Sizes gro{}, gso{};
  std::uint64_t kernel_drops = 0;  ///< arrived while the receive buffer was full (SO_RXQ_OVFL)
  std::uint64_t cut = 0;           ///< did not fit into our buffer and were thrown away
  std::uint64_t queued = 0;        ///< datagrams that had to wait for room in the kernel
  std::uint64_t queue_drops = 0;   ///< datagrams that found our queue full
  std::uint64_t send_errors =
      0;  ///< datagrams that the kernel refused: too large for the path, no route, bad source

  UdpCounters& operator+=(const UdpCounters& o) noexcept;
};

struct UdpOptions {
  bool reuse_port = true;          ///< open(): several workers on one address
  Address source;                  ///< connect(): bind address; invalid: the kernel's choice
  int buffer = 4 * 1024 * 1024;    ///< SO_RCVBUF and SO_SNDBUF; less where the system allows less
  bool gro = true;                 ///< take several datagrams of a path in one piece
  bool gso = true;                 ///< hand the kernel several datagrams in one piece
  std::size_t queue = 256 * 1024;  ///< octets that may wait for room in the kernel
};

class UdpSocket;

/// Called from the loop and never from inside a call of the socket's. May call anything but the socket's destructor.
class UdpHandler {
 public:
  /// `in.octets` is valid during the call. Every length of datagram comes, 0 too: what is too short is the protocol's say.
  virtual void on_datagrams(UdpSocket&, const Datagrams& in) noexcept = 0;
  /// The queue that made writable() false is empty.
  virtual void on_writable(UdpSocket&) noexcept = 0;
  /// Connected sockets: an ICMP message says that nobody is there (connect_refused) or that the way is shut (connect_failed).
  /// A hint, since anybody can forge it; the socket goes on.
  virtual void on_unreachable(UdpSocket&, Fault) noexcept {}

 protected:
  ~UdpHandler() = default;
};

enum class UdpSent : std::uint8_t {
  sent,     ///< the kernel has it, or has refused some of it for good (counted): as good as lost on the way
  queued,   ///< a copy waits for room in the kernel; writable() is false until on_writable()
  dropped,  ///< the queue is full, or the socket closed
};

/// Worker thread only.
class UdpSocket final : PollHandler, Task {
 public:
  /// Bound to `at`, port 0 picks one. IPv6 takes IPv6 only, so that 0.0.0.0 and [::] are two sockets as with Listener. All
  /// sockets of an address should be open before traffic comes: each further one moves clients to other workers.
  /// Error text: "cannot open UDP 127.0.0.1:443: Address already in use".
  static Result<std::unique_ptr<UdpSocket>> open(Worker& worker, const Address& at, const UdpOptions& options,
                                                 UdpHandler& handler);
  /// Connected to `to`: other senders are not heard, ICMP errors are.
  static Result<std::unique_ptr<UdpSocket>> connect(Worker& worker, const Address& to,
                                                    const UdpOptions& options, UdpHandler& handler);
  /// Takes `fd`, bound or connected by somebody else, and sets what open() and connect() set; closes it on error.
  static Result<std::unique_ptr<UdpSocket>> adopt(Worker& worker, int fd, const UdpOptions& options,
                                                  UdpHandler& handler);
  ~UdpSocket() { close(); }

  /// Sends all datagrams of `out`, in as few system calls as the kernel allows. `out.segment` at least 1 where there are
  /// several. Never calls back.
  UdpSent send(const Datagrams& out) noexcept;
  /// False while datagrams wait for the kernel: make no new ones until on_writable().
  bool writable() const noexcept { return queue_.empty(); }
  /// Throws away what waits. No callback follows.
  void close() noexcept;

  const Address& address() const noexcept { return local_; }  ///< with the real port; connected: of this path
  const UdpCounters& counters() const noexcept { return counters_; }

 private:
  enum class Gave : std::uint8_t { done, again };  // done: off our hands, sent or refused
  struct Waiting {
    std::vector<std::byte> octets;
    std::size_t at = 0;  // sent up to here
    Datagrams how;       // all but the octets
  };

  UdpSocket(Worker& worker, UdpHandler& handler, const UdpOptions& options) noexcept
      : worker_(worker), handler_(handler), options_(options) {}
  static Result<std::unique_ptr<UdpSocket>> start(std::unique_ptr<UdpSocket> socket, int fd);

  void on_poll(Ready) noexcept override;
  void run() noexcept override;
  void read() noexcept;
  int read_once() noexcept;
  void deliver(struct mmsghdr& message) noexcept;
  void flush_queue() noexcept;
  Gave send_some(Datagrams& rest) noexcept;
  Gave send_one_by_one(Datagrams& rest, std::size_t most, bool& refused) noexcept;
  int send_call(const Datagrams& out) noexcept;
  void set_ecn(Ecn ecn) noexcept;
  void unreachable(int err) noexcept;

  Worker& worker_;
  UdpHandler& handler_;
  const UdpOptions options_;
  PollFd poll_;
  Address local_;
  Address remote_;  // valid: connected
  UdpCounters counters_;
  std::deque<Waiting> queue_;
  std::size_t queue_octets_ = 0;
  std::uint32_t drops_seen_ = 0;
  Fault unreachable_ = Fault::none;  // still to be told
  Ecn ecn_ = Ecn::none;              // connected: what the socket's option says
  bool wildcard_ = false;            // the local address differs per datagram
  bool gso_ = true;
  bool unread_ = false;  // stopped reading for the others' sake
};

/// Whether somebody holds UDP `at` already, as Listener::probe() for TCP and for the same reason.
Result<void> probe_udp(const Address& at);

}  // namespace twp
