// What a QUIC connection stands on: somebody who carries its datagrams, keeps its time and knows it by its ids. The endpoint
// with its sockets in the programs; a link in memory with a clock of its own in the tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/timer_wheel.h"
#include "net/address.h"

namespace twp {

class QuicConnection;

/// Both ends of the way that a datagram takes.
struct QuicPath {
  Address local;
  Address remote;
  friend bool operator==(const QuicPath&, const QuicPath&) noexcept = default;
};

/// A connection ID (RFC 9000 §5.1): 0 to 20 octets.
struct QuicId {
  static constexpr std::size_t kMax = 20;
  std::array<std::uint8_t, kMax> octets{};
  std::uint8_t size = 0;

  QuicId() noexcept = default;
  explicit QuicId(std::span<const std::uint8_t> from) noexcept
      : size(static_cast<std::uint8_t>(std::min(from.size(), kMax))) {
    std::copy_n(from.begin(), size, octets.begin());
  }
  std::span<const std::uint8_t> bytes() const noexcept { return {octets.data(), size}; }
  friend bool operator==(const QuicId& a, const QuicId& b) noexcept = default;  // unused octets are zero
};

using QuicResetToken = std::array<std::uint8_t, 16>;

/// What is left of a connection for as long as packets of it may still arrive (RFC 9000 §10.2).
struct QuicFarewell {
  std::vector<QuicId> ids;  ///< ours: how the peer addresses it
  std::vector<std::byte>
      packet;  ///< CONNECTION_CLOSE as the answer to whatever comes; empty: nothing is to be said
  QuicPath path;
  Duration keep = Duration::zero();  ///< three times the probe timeout; zero: forget it at once
};

/// Calls come from inside the connection's own; a host does not call back from inside them.
class QuicHost {
 public:
  virtual ~QuicHost() = default;

  /// Sends `octets` as datagrams of `segment` octets each, the last may be shorter. All of it is taken. False: do not make
  /// more until QuicConnection::sendable() is called.
  virtual bool send(QuicConnection& c, const QuicPath& path, std::uint8_t ecn,
                    std::span<const std::byte> octets, std::size_t segment) noexcept = 0;
  /// The time of this turn.
  virtual Instant now() const noexcept = 0;
  /// Fires `timer` at `at` or soon after, however near that is; never from inside this call.
  virtual void arm(Timer& timer, Instant at) noexcept = 0;
  /// A new id that leads to `c` until drop_id(), and the token that resets what has it.
  virtual QuicId new_id(QuicConnection& c, QuicResetToken& token) noexcept = 0;
  virtual void drop_id(QuicConnection& c, const QuicId& id) noexcept = 0;
  /// Server role: a token by which a client at `remote` is known again (NEW_TOKEN); empty: none.
  virtual std::vector<std::uint8_t> new_token(const Address& remote) noexcept = 0;
  /// The handshake is complete: the peer's address is proven.
  virtual void on_open(QuicConnection& c) noexcept = 0;
  /// The connection sends and takes nothing any more and may be destroyed at the end of this turn.
  virtual void on_over(QuicConnection& c, QuicFarewell&& farewell) noexcept = 0;
};

}  // namespace twp
