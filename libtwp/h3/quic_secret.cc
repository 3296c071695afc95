#include "h3/quic_secret.h"

#include <ngtcp2/ngtcp2_crypto.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <string_view>

namespace twp {
namespace {

void expand(std::span<std::uint8_t> key, std::span<const std::byte> secret, std::string_view purpose) {
  static constexpr std::string_view kSalt = "twp quic";
  const auto octets = [](std::string_view s) { return reinterpret_cast<const std::uint8_t*>(s.data()); };
  ngtcp2_crypto_md md;
  ngtcp2_crypto_md_init(&md, const_cast<EVP_MD*>(EVP_sha256()));
  if (ngtcp2_crypto_hkdf(key.data(), key.size(), &md, reinterpret_cast<const std::uint8_t*>(secret.data()),
                         secret.size(), octets(kSalt), kSalt.size(), octets(purpose), purpose.size()) != 0)
    std::abort();  // out of memory, or no SHA-256 in this OpenSSL
}

QuicKeys derive(unsigned id, std::span<const std::byte> secret) {
  QuicKeys k;
  k.id = id;
  expand(k.cid, secret, "connection id");
  expand(k.reset, secret, "stateless reset");
  expand(k.token, secret, "token");
  return k;
}

QuicKeys random_keys(unsigned id) {
  std::array<std::byte, 32> secret;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(secret.size())) != 1)
    std::abort();
  const QuicKeys k = derive(id, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return k;
}

}  // namespace

QuicSecrets QuicSecrets::random() {
  QuicSecrets s;
  s.kept_[0] = random_keys(0);
  return s;
}

QuicSecrets QuicSecrets::from(std::span<const std::byte> secret) {
  QuicSecrets s;
  s.kept_[0] = derive(0, secret);
  return s;
}

QuicSecrets QuicSecrets::rotated() const {
  QuicSecrets s = *this;
  s.current_ = (current_ + 1) % kKept;
  s.kept_[s.current_] = random_keys(s.current_);
  return s;
}

}  // namespace twp
