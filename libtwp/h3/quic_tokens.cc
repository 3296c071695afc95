#include "h3/quic_tokens.h"

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include <algorithm>

namespace twp {
namespace {

// A token outlives the change of its keys by one generation: each further one costs every forged token a decryption.
constexpr unsigned kGenerations = 2;

ngtcp2_duration life(Duration d) noexcept { return static_cast<ngtcp2_duration>(d.count()); }

std::size_t written(ngtcp2_ssize n) noexcept { return n > 0 ? static_cast<std::size_t>(n) : 0; }

std::uint8_t* to_octets(std::span<std::byte> out) noexcept {
  return reinterpret_cast<std::uint8_t*>(out.data());
}

// At most NGTCP2_MAX_CIDLEN octets: read_initial() lets no longer ones through.
ngtcp2_cid as_cid(std::span<const std::uint8_t> octets) noexcept {
  ngtcp2_cid cid;
  ngtcp2_cid_init(&cid, octets.data(), octets.size());
  return cid;
}

TokenCheck check_retry(const QuicSecrets& secrets, const InitialHead& initial, const Address& remote,
                       std::uint64_t wall_ns) noexcept {
  TokenCheck check;
  const ngtcp2_cid dcid = as_cid(initial.dcid);
  ngtcp2_cid odcid{};
  static_assert(std::tuple_size_v<decltype(check.odcid_octets)> == sizeof odcid.data);
  for (unsigned i = 0; i < kGenerations; ++i) {
    const QuicKeys* keys = secrets.back(i);
    if (keys == nullptr) break;
    const int rv = ngtcp2_crypto_verify_retry_token2(
        &odcid, initial.token.data(), initial.token.size(), keys->token.data(), keys->token.size(),
        initial.version, remote.sa(), remote.length(), &dcid, life(kRetryTokenLife), wall_ns);
    if (rv == 0) {
      check.verdict = TokenVerdict::retry;
      std::copy_n(odcid.data, odcid.datalen, check.odcid_octets.begin());
      check.odcid_size = static_cast<std::uint8_t>(odcid.datalen);
    }
    if (rv == NGTCP2_CRYPTO_ERR_VERIFY_TOKEN) check.verdict = TokenVerdict::refuse;
    if (rv != NGTCP2_CRYPTO_ERR_UNREADABLE_TOKEN) break;
  }
  return check;
}

TokenCheck check_regular(const QuicSecrets& secrets, const InitialHead& initial, const Address& remote,
                         std::uint64_t wall_ns) noexcept {
  TokenCheck check;
  for (unsigned i = 0; i < kGenerations; ++i) {
    const QuicKeys* keys = secrets.back(i);
    if (keys == nullptr) break;
    std::uint8_t none = 0;
    const ngtcp2_ssize rv = ngtcp2_crypto_verify_regular_token2(
        &none, 0, initial.token.data(), initial.token.size(), keys->token.data(), keys->token.size(),
        remote.sa(), remote.length(), life(kNewTokenLife), wall_ns);
    if (rv >= 0) check.verdict = TokenVerdict::known;
    if (rv != NGTCP2_CRYPTO_ERR_UNREADABLE_TOKEN) break;
  }
  return check;
}

}  // namespace

std::optional<InitialHead> read_initial(std::span<const std::byte> datagram) noexcept {
  const auto* octets = reinterpret_cast<const std::uint8_t*>(datagram.data());
  ngtcp2_pkt_hd hd;
  if (ngtcp2_accept(&hd, octets, datagram.size()) != 0) return std::nullopt;
  // Views into the datagram instead of copies: both lengths have been checked (RFC 8999 §5.1).
  const std::size_t dcid_at = 1 + 4 + 1;
  const std::size_t scid_at = dcid_at + hd.dcid.datalen + 1;
  return InitialHead{hd.version,
                     {octets + dcid_at, hd.dcid.datalen},
                     {octets + scid_at, hd.scid.datalen},
                     {hd.token, hd.tokenlen}};
}

TokenCheck check_token(const QuicSecrets& secrets, const InitialHead& initial, const Address& remote,
                       std::uint64_t wall_ns) noexcept {
  if (initial.token.empty()) return {};
  switch (initial.token[0]) {
    case NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2: return check_retry(secrets, initial, remote, wall_ns);
    case NGTCP2_CRYPTO_TOKEN_MAGIC_REGULAR: return check_regular(secrets, initial, remote, wall_ns);
    default: return {};
  }
}

std::size_t make_new_token(std::span<std::uint8_t> out, const QuicSecrets& secrets, const Address& remote,
                           std::uint64_t wall_ns) noexcept {
  static_assert(kMaxNewToken >= NGTCP2_CRYPTO_MAX_REGULAR_TOKENLEN);
  if (out.size() < NGTCP2_CRYPTO_MAX_REGULAR_TOKENLEN) return 0;
  const auto& key = secrets.current().token;
  return written(ngtcp2_crypto_generate_regular_token2(out.data(), key.data(), key.size(), remote.sa(),
                                                       remote.length(), nullptr, 0, wall_ns));
}

std::size_t write_retry(std::span<std::byte> out, const QuicSecrets& secrets, const InitialHead& initial,
                        std::span<const std::uint8_t> our_cid, const Address& remote,
                        std::uint64_t wall_ns) noexcept {
  std::uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN2];
  const auto& key = secrets.current().token;
  const ngtcp2_cid ours = as_cid(our_cid);
  const ngtcp2_cid dcid = as_cid(initial.dcid);
  const ngtcp2_cid scid = as_cid(initial.scid);
  if (ngtcp2_cid_eq(&ours, &dcid)) return 0;  // RFC 9000 §17.2.5.1; the library would end the process
  const ngtcp2_ssize n = ngtcp2_crypto_generate_retry_token2(
      token, key.data(), key.size(), initial.version, remote.sa(), remote.length(), &ours, &dcid, wall_ns);
  if (n < 0) return 0;
  return written(ngtcp2_crypto_write_retry(to_octets(out), out.size(), initial.version, &scid, &ours, &dcid,
                                           token, static_cast<std::size_t>(n)));
}

std::size_t write_invalid_token_close(std::span<std::byte> out, const InitialHead& initial) noexcept {
  const ngtcp2_cid dcid = as_cid(initial.dcid);
  const ngtcp2_cid scid = as_cid(initial.scid);
  return written(ngtcp2_crypto_write_connection_close(to_octets(out), out.size(), initial.version, &scid,
                                                      &dcid, NGTCP2_INVALID_TOKEN, nullptr, 0));
}

}  // namespace twp
