#include "h3/quic_ids.h"

#include <ngtcp2/ngtcp2_crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdlib>

namespace twp {
namespace {

constexpr std::size_t kClear = 2;
constexpr std::array<std::uint8_t, 2> kMark{'t', 'w'};

unsigned key_id(std::uint8_t first) noexcept { return first >> 6; }

bool run_block(evp_cipher_ctx_st* cipher, std::span<std::uint8_t, 16> to,
               std::span<const std::uint8_t, 16> from) noexcept {
  int n = 0;
  return EVP_CipherUpdate(cipher, to.data(), &n, from.data(), static_cast<int>(from.size())) == 1 && n == 16;
}

}  // namespace

void QuicIds::FreeCipher::operator()(evp_cipher_ctx_st* c) const noexcept { EVP_CIPHER_CTX_free(c); }

QuicIds::Cipher QuicIds::cipher(const QuicKeys& keys, bool encrypt) {
  Cipher c(EVP_CIPHER_CTX_new());
  if (c == nullptr ||
      EVP_CipherInit_ex(c.get(), EVP_aes_128_ecb(), nullptr, keys.cid.data(), nullptr, encrypt ? 1 : 0) !=
          1 ||
      EVP_CIPHER_CTX_set_padding(c.get(), 0) != 1)
    std::abort();
  return c;
}

QuicIds::QuicIds(unsigned worker, const QuicSecrets& secrets) : worker_(worker) { rotate(secrets); }

QuicIds::~QuicIds() = default;

void QuicIds::rotate(const QuicSecrets& secrets) {
  secrets_ = secrets;
  encrypt_ = cipher(secrets.current(), true);
  for (unsigned id = 0; id < QuicSecrets::kKept; ++id) {
    const QuicKeys* keys = secrets.by_id(id);
    decrypt_[id] = keys == nullptr ? nullptr : cipher(*keys, false);
  }
}

QuicIds::Id QuicIds::make() noexcept {
  Id octets;
  Block plain;
  if (RAND_bytes(octets.data(), kClear) != 1 || RAND_bytes(plain.data(), plain.size()) != 1) std::abort();
  octets[0] = static_cast<std::uint8_t>((octets[0] & 0x3f) | secrets_.current().id << 6);
  plain[0] = static_cast<std::uint8_t>(worker_ >> 8);
  plain[1] = static_cast<std::uint8_t>(worker_);
  std::copy_n(octets.begin(), kClear, plain.begin() + 2);
  std::copy(kMark.begin(), kMark.end(), plain.begin() + 4);
  if (!run_block(encrypt_.get(), std::span(octets).last<16>(), plain)) std::abort();
  return octets;
}

std::optional<unsigned> QuicIds::worker_of(std::span<const std::uint8_t> cid) noexcept {
  if (cid.size() != kCidLength) return std::nullopt;
  evp_cipher_ctx_st* cipher = decrypt_[key_id(cid[0])].get();
  Block plain;
  if (cipher == nullptr || !run_block(cipher, plain, cid.last<16>())) return std::nullopt;
  if (!std::equal(plain.begin() + 2, plain.begin() + 4, cid.begin()) ||
      !std::equal(kMark.begin(), kMark.end(), plain.begin() + 4))
    return std::nullopt;
  return static_cast<unsigned>(plain[0]) << 8 | plain[1];
}

std::optional<std::array<std::uint8_t, 16>> QuicIds::reset_token(
    std::span<const std::uint8_t> cid) const noexcept {
  const QuicKeys* keys =
      cid.empty() || cid.size() > NGTCP2_MAX_CIDLEN ? nullptr : secrets_.by_id(key_id(cid[0]));
  if (keys == nullptr) return std::nullopt;
  ngtcp2_cid id;
  ngtcp2_cid_init(&id, cid.data(), cid.size());
  std::array<std::uint8_t, 16> token;
  static_assert(token.size() == NGTCP2_STATELESS_RESET_TOKENLEN);
  if (ngtcp2_crypto_generate_stateless_reset_token(token.data(), keys->reset.data(), keys->reset.size(),
                                                   &id) != 0)
    return std::nullopt;
  return token;
}

}  // namespace twp
