// QuicSecrets: what all workers must share so that each understands the connection IDs, tokens and stateless resets of the
// others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace twp {

/// The keys of one generation. Each use has a key of its own, derived from one secret (RFC 5869).
struct QuicKeys {
  unsigned id = 0;                     ///< 0..3, travels in clear in each connection ID
  std::array<std::uint8_t, 16> cid{};  ///< AES-128
  std::array<std::uint8_t, 32> reset{};
  std::array<std::uint8_t, 32> token{};
};

/// The keys in use and up to three generations before them. A value: copy it to each worker, replace it on reload.
class QuicSecrets {
 public:
  static constexpr std::size_t kKept = 4;

  /// From the system's randomness; ends the process when there is none.
  static QuicSecrets random();
  /// From a secret of at least 32 octets: the same secret makes the same keys, so that stateless resets work after a
  /// restart.
  static QuicSecrets from(std::span<const std::byte> secret);
  /// New keys for what is made from now on; all but the oldest stay good for what is out there.
  QuicSecrets rotated() const;

  const QuicKeys& current() const noexcept { return *kept_[current_]; }
  /// How many generations back, 0 is current(); null: not kept.
  const QuicKeys* back(unsigned generations) const noexcept {
    return generations < kKept ? by_id((current_ + kKept - generations) % kKept) : nullptr;
  }
  const QuicKeys* by_id(unsigned id) const noexcept {
    return id < kKept && kept_[id] ? &*kept_[id] : nullptr;
  }

 private:
  std::array<std::optional<QuicKeys>, kKept> kept_;
  unsigned current_ = 0;
};

}  // namespace twp
