// QUIC over a LossyLink: hosts with an address each, one worker, and a clock that only moves when nothing else does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "event/worker.h"
#include "h3/quic_connection.h"
#include "support/lossy_link.h"

namespace twp::test {

/// The link, the worker and the time of a scenario.
class QuicWorld {
 public:
  explicit QuicWorld(std::uint64_t seed = 1) : link(seed), wheel_(link.now()) {}

  /// Lets everything happen until `done`, or until `limit` of the link's time has passed. Whether it was done.
  bool until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(60));
  /// Lets so much of the link's time pass.
  void pass(Duration time) {
    until([] { return false; }, time);
  }
  void arm(Timer& t, Instant at) noexcept { wheel_.arm(t, at); }

  Worker worker;
  LossyLink link;

 private:
  void settle();

  TimerWheel wheel_;
};

/// One address: a client's, or a server's that accepts whoever comes.
class QuicEnd final : public QuicHost {
 public:
  QuicEnd(QuicWorld& world, const char* ip, std::uint16_t port, bool server);
  ~QuicEnd();

  /// Server: what is made of a client's first packet. Keeps nothing; the connection belongs to whoever is told.
  std::function<QuicConnection*(const QuicInitial&, const QuicPath&)> on_initial;
  std::vector<QuicFarewell> farewells;
  unsigned opened = 0;
  std::uint64_t sent = 0, received = 0;     ///< octets
  std::uint64_t trains = 0, datagrams = 0;  ///< sent
  std::size_t largest = 0;                  ///< octets of a datagram that was sent
  std::vector<std::uint8_t> token;          ///< what new_token() gives
  Address address;
  bool full = false;  ///< send() says so

  void move_to(const Address& to);

  // QuicHost
  bool send(QuicConnection& c, const QuicPath& path, std::uint8_t ecn, std::span<const std::byte> octets,
            std::size_t segment) noexcept override;
  Instant now() const noexcept override { return world_.link.now(); }
  void arm(Timer& timer, Instant at) noexcept override { world_.arm(timer, at); }
  QuicId new_id(QuicConnection& c, QuicResetToken& token) noexcept override;
  void drop_id(QuicConnection& c, const QuicId& id) noexcept override;
  std::vector<std::uint8_t> new_token(const Address&) noexcept override { return token; }
  void on_open(QuicConnection&) noexcept override { ++opened; }
  void on_over(QuicConnection& c, QuicFarewell&& farewell) noexcept override;

 private:
  void take(const LinkDatagram& d);

  QuicWorld& world_;
  const bool server_;
  std::map<std::string, QuicConnection*> ids_;
  std::uint64_t made_ = 0;
};

}  // namespace twp::test
