// QuicEndpoint: a UDP socket and the QUIC connections that live on it.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "event/worker.h"
#include "h3/quic_connection.h"
#include "h3/quic_host.h"
#include "h3/quic_ids.h"
#include "h3/quic_secret.h"
#include "h3/quic_stateless.h"
#include "h3/quic_tokens.h"
#include "net/udp_socket.h"

namespace twp {

class QuicEndpoint;

/// Who makes sessions of the connections that clients open.
class QuicAcceptor {
 public:
  /// A client's first packet is here; it is given to the connection when this returns. The connection goes with a session
  /// that the acceptor keeps until it is over.
  virtual void on_quic_connection(QuicEndpoint&, std::unique_ptr<QuicConnection> connection) noexcept = 0;
  /// Datagrams for a connection of another worker (its client has moved, or its first packets went another way): to be given
  /// to that worker's endpoint by deliver(). Valid during the call.
  virtual void on_stray(QuicEndpoint&, unsigned worker, const Datagrams& datagrams) noexcept = 0;

 protected:
  ~QuicAcceptor() = default;
};

struct QuicEndpointOptions {
  QuicSettings settings;
  UdpOptions udp;
  unsigned retry_above =
      100;  ///< handshakes of clients that have not proven their address; more must (RFC 9000 §8.1)
  unsigned max_half_open = 5000;  ///< handshakes at a time; packets that would begin more are dropped
};

struct QuicEndpointCounters {
  std::uint64_t accepted = 0;    ///< connections begun by clients
  std::uint64_t retries = 0;     ///< Retry packets
  std::uint64_t bad_tokens = 0;  ///< connections refused with INVALID_TOKEN
  std::uint64_t version_negotiations = 0;
  std::uint64_t stateless_resets = 0;
  std::uint64_t strays = 0;   ///< datagrams given to other workers
  std::uint64_t dropped = 0;  ///< datagrams that were none of ours, or over a limit
};

/// Worker thread only.
class QuicEndpoint final : public QuicHost, UdpHandler, Task, Timer {
 public:
  /// Server role: bound to `at`. `tls` is for ALPN "h3"; it, `acceptor` and `worker` outlive the endpoint. Workers share
  /// `secrets`.
  static Result<std::unique_ptr<QuicEndpoint>> listen(Worker& worker, const Address& at, TlsContext& tls,
                                                      const QuicSecrets& secrets,
                                                      const QuicEndpointOptions& options,
                                                      QuicAcceptor& acceptor);
  /// Client role: a connection with a socket of its own, connected to `to`; the endpoint goes with the connection. `tls` and
  /// `worker` outlive it.
  static Result<std::unique_ptr<QuicConnection>> connect(Worker& worker, const Address& to, TlsContext& tls,
                                                         const QuicTarget& target, const QuicSecrets& secrets,
                                                         const QuicEndpointOptions& options);
  /// Server role: its connections must be gone before.
  ~QuicEndpoint() override;

  /// Datagrams that another worker got.
  void deliver(const Datagrams& datagrams) noexcept { take(datagrams, true); }
  /// Takes no new connections; those that there are go on.
  void drain() noexcept { draining_ = true; }

  const Address& address() const noexcept { return socket_->address(); }
  const UdpCounters& udp() const noexcept { return socket_->counters(); }
  const QuicEndpointCounters& counters() const noexcept { return counters_; }
  std::size_t half_open() const noexcept { return half_open_.size(); }
  std::size_t ids() const noexcept { return by_id_.size(); }  ///< connection IDs that lead somewhere

 private:
  /// A connection that is over and may still be written to.
  struct Closed {
    QuicFarewell farewell;
    Instant until = kNever;
    std::uint64_t seen = 0;  // datagrams since
  };
  struct Route {
    QuicConnection* connection = nullptr;
    Closed* closed = nullptr;
  };
  struct Hash {
    std::size_t operator()(const QuicId& id) const noexcept;
  };

  QuicEndpoint(Worker& worker, TlsContext* tls, const QuicSecrets& secrets,
               const QuicEndpointOptions& options, QuicAcceptor* acceptor);

  // QuicHost
  bool send(QuicConnection& c, const QuicPath& path, std::uint8_t ecn, std::span<const std::byte> octets,
            std::size_t segment) noexcept override;
  Instant now() const noexcept override { return worker_.now(); }
  void arm(Timer& timer, Instant at) noexcept override;
  QuicId new_id(QuicConnection& c, QuicResetToken& token) noexcept override;
  void drop_id(QuicConnection& c, const QuicId& id) noexcept override;
  std::vector<std::uint8_t> new_token(const Address& remote) noexcept override;
  void on_open(QuicConnection& c) noexcept override;
  void on_over(QuicConnection& c, QuicFarewell&& farewell) noexcept override;

  // UdpHandler, Task, Timer
  void on_datagrams(UdpSocket&, const Datagrams& in) noexcept override { take(in, false); }
  void on_writable(UdpSocket&) noexcept override;
  void on_unreachable(UdpSocket&, Fault why) noexcept override;
  void run() noexcept override;
  void on_timer() noexcept override;

  void take(Datagrams in, bool delivered) noexcept;
  void take_run(const Datagrams& run, bool delivered) noexcept;
  void answer_closed(Closed& closed, const Datagrams& in) noexcept;
  void take_unknown(const Datagrams& in, bool delivered) noexcept;
  void begin(const Datagrams& in) noexcept;
  void reply(const Datagrams& to, std::span<const std::byte> packet) noexcept;
  void send_retry(const Datagrams& in, const InitialHead& initial) noexcept;
  void bury(QuicFarewell&& farewell) noexcept;
  void forget_oldest() noexcept;

  Worker& worker_;
  TlsContext* const tls_;
  QuicAcceptor* const acceptor_;
  const QuicEndpointOptions options_;
  QuicIds ids_;
  std::unique_ptr<UdpSocket> socket_;
  std::unordered_map<QuicId, Route, Hash> by_id_;
  std::unordered_map<QuicConnection*, QuicId> first_ids_;  // chosen by the client for its first packets
  std::unordered_set<QuicConnection*> half_open_;
  std::vector<QuicConnection*> waiting_;  // for the socket
  QuicConnection* only_ = nullptr;        // client role
  Address remote_;                        // and where it leads
  IList<Timer, TimerTag> soon_;           // due before the next tick of the wheel
  std::deque<std::unique_ptr<Closed>> closed_;
  AnswerBudget resets_{50, 20};
  AnswerBudget negotiations_{50, 50};
  QuicEndpointCounters counters_;
  bool draining_ = false;
};

}  // namespace twp
