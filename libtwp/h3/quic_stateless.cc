#include "h3/quic_stateless.h"

#include <ngtcp2/ngtcp2.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace twp {
namespace {

// The shortest short-header packet that an endpoint may take for one (RFC 9000 §10.3).
constexpr std::size_t kLeastPacket = 21;
constexpr std::size_t kLeastReset = NGTCP2_MIN_STATELESS_RESET_RANDLEN + NGTCP2_STATELESS_RESET_TOKENLEN;
// Up to here an answer is one octet shorter than what it answers; a longer one has no need to be longer than this, give or
// take some octets, since every packet of ours can be so long.
constexpr std::size_t kUsualReset = 43;
constexpr std::size_t kResetSpread = 16;

bool random_octets(std::span<std::uint8_t> to) noexcept {
  return RAND_bytes(to.data(), static_cast<int>(to.size())) == 1;
}

}  // namespace

DatagramHead read_head(std::span<const std::byte> datagram, QuicIds& ids) noexcept {
  DatagramHead head;
  if (datagram.size() < kLeastPacket) return head;
  ngtcp2_version_cid v;
  const int rv = ngtcp2_pkt_decode_version_cid(&v, reinterpret_cast<const std::uint8_t*>(datagram.data()),
                                               datagram.size(), kCidLength);
  if (rv != 0 && rv != NGTCP2_ERR_VERSION_NEGOTIATION) return head;
  const bool is_long = (datagram[0] & std::byte{0x80}) != std::byte{};
  if (is_long && v.version == 0) return head;  // Version Negotiation is for clients
  head.version = v.version;
  head.dcid = {v.dcid, v.dcidlen};
  head.scid = {v.scid, v.scidlen};
  if (rv == NGTCP2_ERR_VERSION_NEGOTIATION) {
    head.kind = DatagramKind::unsupported_version;
    return head;
  }
  head.kind = is_long ? DatagramKind::long_header : DatagramKind::short_header;
  head.worker = ids.worker_of(head.dcid);
  return head;
}

std::size_t write_version_negotiation(std::span<std::byte> out, const DatagramHead& head) noexcept {
  std::array<std::uint8_t, 5> random;
  if (!random_octets(random)) return 0;
  std::uint32_t reserved = 0;
  for (unsigned i = 0; i < 4; ++i) reserved = reserved << 8 | random[i];
  reserved = (reserved & 0xf0f0f0f0u) | NGTCP2_RESERVED_VERSION_MASK;
  const std::array<std::uint32_t, 3> versions{NGTCP2_PROTO_VER_V2, NGTCP2_PROTO_VER_V1, reserved};
  const ngtcp2_ssize n = ngtcp2_pkt_write_version_negotiation(
      reinterpret_cast<std::uint8_t*>(out.data()), out.size(), random[4] & 0x3f, head.scid.data(),
      head.scid.size(), head.dcid.data(), head.dcid.size(), versions.data(), versions.size());
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t write_stateless_reset(std::span<std::byte> out, const DatagramHead& head, std::size_t trigger,
                                  const QuicIds& ids) noexcept {
  if (head.kind != DatagramKind::short_header || !head.worker || trigger <= kLeastReset) return 0;
  const auto known = ids.reset_token(head.dcid);
  std::array<std::uint8_t, kUsualReset + kResetSpread> random;
  if (!known || !random_octets(random)) return 0;
  ngtcp2_stateless_reset_token token;
  std::copy(known->begin(), known->end(), token.data);
  const std::size_t size = std::min(trigger - 1, kUsualReset + random.back() % kResetSpread);
  const ngtcp2_ssize n =
      ngtcp2_pkt_write_stateless_reset2(reinterpret_cast<std::uint8_t*>(out.data()), out.size(), &token,
                                        random.data(), size - NGTCP2_STATELESS_RESET_TOKENLEN);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool AnswerBudget::take(Instant now) noexcept {
  if (now > at_) {
    if (at_ != 0) left_ = std::min(burst_, left_ + static_cast<double>(now - at_) * per_second_ / 1e9);
    at_ = now;
  }
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

bool is_reflecting_port(std::uint16_t port) noexcept {
  static constexpr std::array<std::uint16_t, 8> kAbove{1194, 1900, 3702, 5353, 5683, 11211, 20800, 27015};
  return (port < 1024 && port != 443) || std::find(kAbove.begin(), kAbove.end(), port) != kAbove.end();
}

}  // namespace twp
