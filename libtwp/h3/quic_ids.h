// QuicIds: connection IDs that say which worker owns the connection, to us and to nobody else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "h3/quic_secret.h"

struct evp_cipher_ctx_st;

namespace twp {

/// Length of every connection ID that we choose. Short headers do not tell it (RFC 9000 §17.3).
inline constexpr std::size_t kCidLength = 18;

/// A worker's maker and reader of connection IDs. Two octets in clear, the first two bits of which are the id of the keys,
/// then one AES block: worker, those two octets again, a constant, 80 random bits. Somebody without the key learns nothing
/// from it, cannot link two of them (RFC 9000 §9.5), and makes one that passes for ours once in 2^32 tries.
/// Not thread-safe: each worker has its own, from equal secrets.
class QuicIds {
 public:
  /// `worker` below 65536. Ends the process when OpenSSL has no AES or no randomness.
  QuicIds(unsigned worker, const QuicSecrets& secrets);
  QuicIds(const QuicIds&) = delete;
  QuicIds& operator=(const QuicIds&) = delete;
  ~QuicIds();

  /// New IDs from new keys; IDs of the generations that `secrets` keeps are still read.
  void rotate(const QuicSecrets& secrets);

  using Id = std::array<std::uint8_t, kCidLength>;
  Id make() noexcept;
  /// The worker in a connection ID; nothing: it is not one of ours, or its keys are gone.
  std::optional<unsigned> worker_of(std::span<const std::uint8_t> cid) noexcept;
  /// RFC 9000 §10.3.2: the same for an ID of at most 20 octets whoever asks and whenever. Nothing: the ID's keys are gone.
  std::optional<std::array<std::uint8_t, 16>> reset_token(std::span<const std::uint8_t> cid) const noexcept;

  unsigned worker() const noexcept { return worker_; }
  const QuicSecrets& secrets() const noexcept { return secrets_; }

 private:
  using Block = std::array<std::uint8_t, 16>;
  struct FreeCipher {
    void operator()(evp_cipher_ctx_st* c) const noexcept;
  };
  using Cipher = std::unique_ptr<evp_cipher_ctx_st, FreeCipher>;
  static Cipher cipher(const QuicKeys& keys, bool encrypt);

  const unsigned worker_;
  QuicSecrets secrets_;
  Cipher encrypt_;
  std::array<Cipher, QuicSecrets::kKept> decrypt_;  // by id of the keys
};

}  // namespace twp
