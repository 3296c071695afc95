// A datagram that no connection knows. Oracle: views stay inside it, whatever is answered is no larger than it, only IDs and
// tokens of our making pass, and of those not one octet may differ.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "h3/quic_stateless.h"
#include "h3/quic_tokens.h"

namespace {

using namespace twp;
using Octets = std::vector<std::uint8_t>;

constexpr std::uint64_t kNow = 1'700'000'000'000'000'000u;

struct World {
  QuicSecrets secrets = QuicSecrets::from(std::as_bytes(std::span("thirty-two octets of no secrecy!")));
  QuicIds ids{7, secrets};
  QuicIds::Id ours = ids.make();
  Address home = *Address::parse("192.0.2.7", 4433);
  Octets retry, known;  // tokens for `home`; the first goes with `ours`

  World() {
    const QuicIds::Id first = ids.make();
    const InitialHead initial{1, first, first, {}};
    std::array<std::byte, 200> packet;
    const std::size_t n = write_retry(packet, secrets, initial, ours, home, kNow);
    for (std::size_t i = 7 + 2 * kCidLength; i < n - 16; ++i)
      retry.push_back(static_cast<std::uint8_t>(packet[i]));
    known.resize(kMaxNewToken);
    known.resize(make_new_token(known, secrets, home, kNow));
  }
};

void inside(std::span<const std::uint8_t> view, std::span<const std::uint8_t> all) {
  if (view.empty()) return;
  if (view.data() < all.data() || view.data() + view.size() > all.data() + all.size()) std::abort();
}

TokenVerdict token_of(World& w, const Octets& datagram) {
  const auto initial = read_initial(std::as_bytes(std::span(datagram)));
  if (!initial) return TokenVerdict::none;
  for (const auto view : {initial->dcid, initial->scid, initial->token}) inside(view, datagram);
  std::array<std::byte, 200> out;
  const bool first = initial->dcid.size() >= 8;  // RFC 9000 §7.2; shorter ones come after a Retry only
  if ((write_retry(out, w.secrets, *initial, w.ids.make(), w.home, kNow) != 0) != first) std::abort();
  if (write_invalid_token_close(out, *initial) == 0) std::abort();
  return check_token(w.secrets, *initial, w.home, kNow).verdict;
}

/// What a server does with it, up to a connection.
DatagramKind receive(World& w, const Octets& datagram) {
  const DatagramHead head = read_head(std::as_bytes(std::span(datagram)), w.ids);
  inside(head.dcid, datagram);
  inside(head.scid, datagram);
  if (head.worker && (*head.worker != 7 || head.dcid.size() != kCidLength)) std::abort();
  std::array<std::byte, 600> out;
  if (head.kind == DatagramKind::unsupported_version) {
    const std::size_t n = write_version_negotiation(out, head);
    if (n == 0 || n > datagram.size()) std::abort();
  }
  const std::size_t n = write_stateless_reset(out, head, datagram.size(), w.ids);
  if (n != 0 && (!head.worker || n >= datagram.size())) std::abort();
  return head.kind;
}

/// An Initial with a token of ours, in which the input may have changed an octet.
void with_token(World& w, std::span<const std::uint8_t> input) {
  const Octets& genuine = (input[0] & 2) != 0 ? w.retry : w.known;
  Octets token = genuine;
  const std::uint8_t change = input[2];
  token[input[1] % token.size()] ^= change;
  Octets p{0xc0, 0, 0, 0, 1, kCidLength};
  p.insert(p.end(), w.ours.begin(), w.ours.end());
  p.push_back(0);
  p.push_back(0x40);
  p.push_back(static_cast<std::uint8_t>(token.size()));
  p.insert(p.end(), token.begin(), token.end());
  p.push_back(0x44);
  p.push_back(0x00);
  p.insert(p.end(), input.begin(), input.end());
  p.resize(1200);
  if (receive(w, p) != DatagramKind::long_header) std::abort();
  const TokenVerdict expected = &genuine == &w.retry ? TokenVerdict::retry : TokenVerdict::known;
  if (token_of(w, p) != (change == 0 ? expected : TokenVerdict::none)) std::abort();
}

/// A short header with an ID of ours, in which the input may have changed an octet.
void with_id(World& w, std::span<const std::uint8_t> input) {
  Octets p{0x40};
  p.insert(p.end(), w.ours.begin(), w.ours.end());
  const std::uint8_t change = input[2];
  p[1 + input[1] % kCidLength] ^= change;
  p.insert(p.end(), input.begin(), input.end());
  receive(w, p);
  const DatagramHead head = read_head(std::as_bytes(std::span(p)), w.ids);
  if (head.kind == DatagramKind::short_header && head.worker.has_value() != (change == 0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  const std::span<const std::uint8_t> input(data, size);
  if (size < 3) return 0;
  if ((input[0] & 1) != 0) {
    (input[0] & 4) != 0 ? with_id(world, input) : with_token(world, input);
    return 0;
  }
  Octets datagram(input.begin() + 1, input.end());
  if ((input[0] & 2) != 0 && datagram.size() < 1200)
    datagram.resize(1200);  // so that short inputs get further
  receive(world, datagram);
  const TokenVerdict verdict = token_of(world, datagram);
  if (verdict != TokenVerdict::none) std::abort();  // nobody forges one
  return 0;
}
