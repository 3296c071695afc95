// Address validation (RFC 9000 §8.1): Retry packets, and the tokens of Retry and of NEW_TOKEN frames. No state: everything is
// in the token, and any worker with the secrets reads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "h3/quic_secret.h"
#include "net/address.h"

namespace twp {

inline constexpr Duration kRetryTokenLife = std::chrono::seconds(10);
inline constexpr Duration kNewTokenLife = std::chrono::hours(1);
/// Octets that make_new_token() needs at most.
inline constexpr std::size_t kMaxNewToken = 96;

/// An Initial packet that may begin a connection. Views into the datagram.
struct InitialHead {
  std::uint32_t version = 0;
  std::span<const std::uint8_t> dcid, scid;
  std::span<const std::uint8_t> token;
};

/// Nothing: it begins with another packet, or is too small for a client's first (RFC 9000 §14.1).
std::optional<InitialHead> read_initial(std::span<const std::byte> datagram) noexcept;

enum class TokenVerdict : std::uint8_t {
  none,  ///< no token, or one that says nothing (another server's, stale NEW_TOKEN): the address is not validated
  retry,  ///< the client has followed our Retry: validated, `odcid` is set
  known,  ///< from a NEW_TOKEN frame of ours: validated
  refuse,  ///< from our Retry, but not this address or too late: write_invalid_token_close(); no second Retry (§8.1.2)
};

struct TokenCheck {
  TokenVerdict verdict = TokenVerdict::none;
  std::array<std::uint8_t, 20> odcid_octets{};
  std::uint8_t odcid_size = 0;

  /// Destination connection ID of the client's very first packet.
  std::span<const std::uint8_t> odcid() const noexcept { return {odcid_octets.data(), odcid_size}; }
};

/// Judges the token of an Initial packet. `wall_ns`: since 1970, so that a token
/// survives a restart. Reads tokens of the current keys and of those before.
TokenCheck check_token(const QuicSecrets& secrets, const InitialHead& initial, const Address& remote,
                       std::uint64_t wall_ns) noexcept;

/// A token for a NEW_TOKEN frame; the next connection from the same IP, whatever its port, shows it. Octets written; 0: error.
std::size_t make_new_token(std::span<std::uint8_t> out, const QuicSecrets& secrets, const Address& remote,
                           std::uint64_t wall_ns) noexcept;

/// A Retry packet that answers `initial` and asks the client to come back with `our_cid`, not the one that it chose, as
/// destination. 200 octets are enough. Octets written; 0: error, or the client's ID is too short for a first packet.
std::size_t write_retry(std::span<std::byte> out, const QuicSecrets& secrets, const InitialHead& initial,
                        std::span<const std::uint8_t> our_cid, const Address& remote,
                        std::uint64_t wall_ns) noexcept;

/// An Initial packet with CONNECTION_CLOSE of INVALID_TOKEN (RFC 9000 §8.1.2). 200 octets are enough. Octets written; 0: error.
std::size_t write_invalid_token_close(std::span<std::byte> out, const InitialHead& initial) noexcept;

}  // namespace twp
