// What a server makes of a datagram before there is a connection: whose it is, and the answers that need no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "h3/quic_ids.h"

namespace twp {

enum class DatagramKind : std::uint8_t {
  junk,                 ///< no QUIC packet for a server, or too short for one: drop it
  short_header,         ///< for an established connection; nobody knows it: write_stateless_reset()
  long_header,          ///< of a version that we speak
  unsupported_version,  ///< large enough to be answered: write_version_negotiation()
};

/// The parts of a datagram's first packet that do not depend on its version (RFC 8999). Views into the datagram.
struct DatagramHead {
  DatagramKind kind = DatagramKind::junk;
  std::uint32_t version = 0;
  std::span<const std::uint8_t> dcid;
  std::span<const std::uint8_t> scid;
  /// Owner of `dcid` where it is one of our making. A client's first packets have an ID of the client's.
  std::optional<unsigned> worker;
};

/// Never fails and never reads past the datagram.
DatagramHead read_head(std::span<const std::byte> datagram, QuicIds& ids) noexcept;

/// Version 2, version 1 and a reserved one, so that clients keep ignoring what they do not know (RFC 9000 §6.3). At most 529
/// octets and never larger than what it answers. Octets written; 0: no room.
std::size_t write_version_negotiation(std::span<std::byte> out, const DatagramHead& head) noexcept;

/// RFC 9000 §10.3, for a short header to a connection ID of our making that nobody knows. Always smaller than its `trigger`
/// octets, so that two ends without state cannot keep each other going. 64 octets are enough. Octets written; 0: none is due.
std::size_t write_stateless_reset(std::span<std::byte> out, const DatagramHead& head, std::size_t trigger,
                                  const QuicIds& ids) noexcept;

/// Limits the answers that anybody can provoke without showing that he owns his address: `burst` at once, then `per_second`.
class AnswerBudget {
 public:
  AnswerBudget(unsigned burst, unsigned per_second) noexcept
      : burst_(burst), per_second_(per_second), left_(burst) {}
  /// Whether one more may go out.
  bool take(Instant now) noexcept;

 private:
  double burst_, per_second_, left_;
  Instant at_ = 0;
};

/// Source ports of services that answer strangers at length (RFC 9000 §21.5.3): a client never has one, and an answer to
/// one could be a forged request to a third party. All below 1024 but 443, and a few above.
bool is_reflecting_port(std::uint16_t port) noexcept;

}  // namespace twp
