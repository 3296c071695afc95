// Before there is a connection: reading heads, tokens, and the answers without state. The peer is ngtcp2 itself, as client.
#include "h3/quic_stateless.h"

#include <ngtcp2/ngtcp2.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "h3/quic_tokens.h"

using namespace twp;

namespace {

using Octets = std::vector<std::uint8_t>;
constexpr std::uint64_t kNow = 1'700'000'000'000'000'000u;
constexpr std::uint64_t kSecond = 1'000'000'000u;

std::span<const std::byte> bytes(const Octets& o) { return std::as_bytes(std::span(o)); }
std::string text(std::span<const std::uint8_t> s) {
  return {reinterpret_cast<const char*>(s.data()), s.size()};
}
std::span<const std::uint8_t> octets(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}
std::string text(const ngtcp2_cid& c) { return text({c.data, c.datalen}); }
using Packet = std::vector<std::byte>;
std::uint8_t octet(std::byte b) { return static_cast<std::uint8_t>(b); }
std::string text(std::span<const std::byte> s) { return {reinterpret_cast<const char*>(s.data()), s.size()}; }

/// An Initial packet's head with everything that is in clear; the rest is zeros up to `size`.
Octets long_packet(std::uint32_t version, std::string_view dcid, std::string_view scid,
                   const Octets& token = {}, std::size_t size = 1200) {
  Octets p{0xc3};
  if (version == NGTCP2_PROTO_VER_V2) p[0] = 0xd3;  // RFC 9369 §3.2
  for (int shift = 24; shift >= 0; shift -= 8) p.push_back(static_cast<std::uint8_t>(version >> shift));
  p.push_back(static_cast<std::uint8_t>(dcid.size()));
  p.insert(p.end(), dcid.begin(), dcid.end());
  p.push_back(static_cast<std::uint8_t>(scid.size()));
  p.insert(p.end(), scid.begin(), scid.end());
  p.push_back(static_cast<std::uint8_t>(0x40 | token.size() >> 8));
  p.push_back(static_cast<std::uint8_t>(token.size()));
  p.insert(p.end(), token.begin(), token.end());
  const std::size_t length = std::max(size, p.size() + 2) - p.size() - 2;
  p.push_back(static_cast<std::uint8_t>(0x40 | length >> 8));
  p.push_back(static_cast<std::uint8_t>(length));
  p.resize(std::max(size, p.size()));
  return p;
}

Octets short_packet(std::span<const std::uint8_t> dcid, std::size_t size) {
  Octets p{0x43};
  p.insert(p.end(), dcid.begin(), dcid.end());
  p.resize(size, 0x55);
  return p;
}

/// As a client reads it.
ngtcp2_pkt_hd decoded(const Packet& p) {
  ngtcp2_pkt_hd hd{};
  BOOST_REQUIRE(ngtcp2_pkt_decode_hd_long(&hd, reinterpret_cast<const std::uint8_t*>(p.data()), p.size()) >
                0);
  return hd;
}

struct Fixture {
  InitialHead accept(const Octets& p) {
    const auto initial = read_initial(bytes(p));
    BOOST_REQUIRE(initial.has_value());
    return *initial;
  }
  /// The token of a Retry that answers an Initial; `packet` gets the Retry.
  Octets retry_token(std::uint32_t version, const QuicIds::Id& ours, const Address& from,
                     Packet* packet = nullptr) {
    const Octets initial = long_packet(version, "original", "client's");
    Packet out(200);
    const std::size_t n = write_retry(out, secrets, accept(initial), ours, from, kNow);
    BOOST_REQUIRE(n != 0u);
    out.resize(n);
    if (packet != nullptr) *packet = out;
    const ngtcp2_pkt_hd hd = decoded(out);
    // Everything between the IDs and the integrity tag (RFC 9000 §17.2.5).
    const std::size_t begin = 1 + 4 + 1 + hd.dcid.datalen + 1 + hd.scid.datalen;
    const auto token = std::span(out).subspan(begin, n - begin - 16);
    Octets copy;
    for (const std::byte b : token) copy.push_back(octet(b));
    return copy;
  }
  TokenCheck check(const Octets& token, std::span<const std::uint8_t> dcid, const Address& from,
                   std::uint64_t now, std::uint32_t version = NGTCP2_PROTO_VER_V1) {
    const Octets p = long_packet(version, text(dcid), "client's", token);
    return check_token(secrets, accept(p), from, now);
  }
  QuicSecrets secrets = QuicSecrets::random();
  QuicIds ids{2, secrets};
  const Address home = *Address::parse("192.0.2.7", 4433);
  const Address same_ip = *Address::parse("192.0.2.7", 4434);
  const Address away = *Address::parse("192.0.2.8", 4433);
  const Address six = *Address::parse("2001:db8::7", 4433);
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quic_stateless, Fixture)

BOOST_AUTO_TEST_CASE(heads) {
  for (const std::uint32_t version : {NGTCP2_PROTO_VER_V1, NGTCP2_PROTO_VER_V2}) {
    const Octets p = long_packet(version, "original", "client's");
    const DatagramHead h = read_head(bytes(p), ids);
    BOOST_TEST((h.kind == DatagramKind::long_header));
    BOOST_TEST(h.version == version);
    BOOST_TEST(text(h.dcid) == "original");
    BOOST_TEST(text(h.scid) == "client's");
    BOOST_TEST(!h.worker.has_value());
  }
  const QuicIds::Id ours = ids.make();
  const Octets later = long_packet(NGTCP2_PROTO_VER_V1, text(ours), "client's");
  BOOST_TEST(read_head(bytes(later), ids).worker.value_or(99) == 2u);
  const Octets p = short_packet(ours, 60);
  const DatagramHead s = read_head(bytes(p), ids);
  BOOST_TEST((s.kind == DatagramKind::short_header));
  BOOST_TEST(s.worker.value_or(99) == 2u);
  BOOST_TEST(text(s.dcid) == text(ours));
}

BOOST_AUTO_TEST_CASE(junk) {
  const auto kind = [&](const Octets& p) { return read_head(bytes(p), ids).kind; };
  BOOST_TEST((kind({}) == DatagramKind::junk));
  BOOST_TEST((kind(Octets(20, 0x40)) == DatagramKind::junk));
  BOOST_TEST((kind(Octets(21, 0x40)) == DatagramKind::short_header));
  BOOST_TEST((kind(Octets(1200, 0xff)) == DatagramKind::unsupported_version));
  // Version Negotiation, and a version that we do not speak in a datagram too small for an answer (RFC 9000 §6.1).
  BOOST_TEST((kind(long_packet(0, "original", "client's")) == DatagramKind::junk));
  BOOST_TEST((kind(long_packet(0xbabababa, "original", "client's", {}, 1199)) == DatagramKind::junk));
  // Connection IDs longer than 20 octets are for other versions.
  BOOST_TEST((kind(long_packet(1, std::string(21, 'x'), "c")) == DatagramKind::junk));
  BOOST_TEST((kind(long_packet(0xbabababa, std::string(255, 'x'), std::string(255, 'y'))) ==
              DatagramKind::unsupported_version));
  Octets cut = long_packet(1, "original", "client's");
  cut.resize(21);  // in the middle of the second ID
  BOOST_TEST((kind(cut) == DatagramKind::junk));
}

// An Initial packet that may begin a connection, and nothing else.
BOOST_AUTO_TEST_CASE(initials) {
  const Octets p = long_packet(NGTCP2_PROTO_VER_V2, "original", "client's", Octets(30, 't'));
  const InitialHead i = accept(p);
  BOOST_TEST(i.version == NGTCP2_PROTO_VER_V2);
  BOOST_TEST(text(i.dcid) == "original");
  BOOST_TEST(text(i.scid) == "client's");
  BOOST_TEST(text(i.token) == std::string(30, 't'));
  BOOST_TEST(!read_initial({}).has_value());
  BOOST_TEST(!read_initial(bytes(long_packet(1, "original", "c", {}, 1199))).has_value());
  BOOST_TEST(!read_initial(bytes(long_packet(1, "too few", "c"))).has_value());  // RFC 9000 §7.2
  BOOST_TEST(!read_initial(bytes(short_packet(ids.make(), 1200))).has_value());
  Octets handshake = long_packet(1, "original", "c");
  handshake[0] = 0xe3;
  BOOST_TEST(!read_initial(bytes(handshake)).has_value());
}

BOOST_AUTO_TEST_CASE(version_negotiation) {
  std::set<std::uint32_t> reserved;
  for (int i = 0; i < 20; ++i) {
    const Octets p = long_packet(0xbabababa, std::string(30, 'x'), "client's");
    Packet out(1200);
    const std::size_t n = write_version_negotiation(out, read_head(bytes(p), ids));
    BOOST_REQUIRE(n == 1 + 4 + 1 + 8 + 1 + 30 + 3 * 4u);
    BOOST_TEST((octet(out[0]) & 0x80) != 0);
    BOOST_TEST(text(std::span(out).subspan(1, 4)) == std::string(4, '\0'));
    BOOST_TEST(text(std::span(out).subspan(6, 8)) == "client's");  // swapped (RFC 8999 §6)
    BOOST_TEST(text(std::span(out).subspan(15, 30)) == std::string(30, 'x'));
    std::vector<std::uint32_t> versions;
    for (std::size_t at = 45; at < n; at += 4)
      versions.push_back(static_cast<std::uint32_t>(octet(out[at])) << 24 |
                         static_cast<std::uint32_t>(octet(out[at + 1])) << 16 |
                         static_cast<std::uint32_t>(octet(out[at + 2])) << 8 | octet(out[at + 3]));
    BOOST_TEST(versions[0] == NGTCP2_PROTO_VER_V2);
    BOOST_TEST(versions[1] == NGTCP2_PROTO_VER_V1);
    BOOST_TEST(ngtcp2_is_reserved_version(versions[2]));
    reserved.insert(versions[2]);
  }
  BOOST_TEST(reserved.size() > 10u);
  const Octets p = long_packet(0xbabababa, std::string(255, 'x'), std::string(255, 'y'));
  const DatagramHead h = read_head(bytes(p), ids);
  Packet out(529);
  BOOST_TEST(write_version_negotiation(out, h) == 529u);
  out.resize(528);
  BOOST_TEST(write_version_negotiation(out, h) == 0u);
}

// The token at the end is what the owner of the ID was told, and the rest looks like a packet.
BOOST_AUTO_TEST_CASE(stateless_resets) {
  const QuicIds::Id ours = ids.make();
  const auto token = ids.reset_token(ours);
  BOOST_REQUIRE(token.has_value());
  std::set<std::size_t> sizes;
  std::set<std::string> noise;
  for (std::size_t trigger = 22; trigger < 1500; ++trigger) {
    const Octets p = short_packet(ours, trigger);
    Packet out(64);
    const std::size_t n = write_stateless_reset(out, read_head(bytes(p), ids), trigger, ids);
    BOOST_TEST(n >= 21u);
    BOOST_TEST(n < trigger);
    if (trigger <= 43) BOOST_TEST(n == trigger - 1);
    if (trigger > 100) sizes.insert(n);
    BOOST_TEST((octet(out[0]) & 0xc0) == 0x40);
    BOOST_TEST(std::memcmp(out.data() + n - 16, token->data(), 16) == 0);
    noise.insert(text(std::span(out).first(5)));
  }
  BOOST_TEST(sizes.size() > 8u);
  BOOST_TEST(noise.size() > 1400u);
}

BOOST_AUTO_TEST_CASE(no_stateless_reset) {
  Packet out(64);
  const QuicIds::Id ours = ids.make();
  const Octets p = short_packet(ours, 60);
  const DatagramHead h = read_head(bytes(p), ids);
  BOOST_TEST(write_stateless_reset(out, h, 21, ids) == 0u);  // would not be smaller
  BOOST_TEST(write_stateless_reset(std::span(out).first(20), h, 60, ids) == 0u);
  BOOST_TEST(write_stateless_reset(out, h, 60, ids) != 0u);
  // Not for what we never gave out, and not for long headers.
  QuicIds foreign(2, QuicSecrets::random());
  const Octets q = short_packet(foreign.make(), 60);
  BOOST_TEST(write_stateless_reset(out, read_head(bytes(q), ids), 60, ids) == 0u);
  const Octets l = long_packet(1, text(ours), "c");
  BOOST_TEST(write_stateless_reset(out, read_head(bytes(l), ids), 1200, ids) == 0u);
}

BOOST_AUTO_TEST_CASE(retry_and_back) {
  for (const std::uint32_t version : {NGTCP2_PROTO_VER_V1, NGTCP2_PROTO_VER_V2}) {
    const QuicIds::Id ours = ids.make();
    Packet packet;
    const Octets token = retry_token(version, ours, home, &packet);
    const ngtcp2_pkt_hd hd = decoded(packet);
    BOOST_TEST((hd.type == NGTCP2_PKT_RETRY));
    BOOST_TEST(text(hd.dcid) == "client's");
    BOOST_TEST(text(hd.scid) == text(ours));
    const TokenCheck c = check(token, ours, home, kNow + 9 * kSecond, version);
    BOOST_TEST((c.verdict == TokenVerdict::retry));
    BOOST_TEST(text(c.odcid()) == "original");
  }
}

BOOST_AUTO_TEST_CASE(retry_needs_another_id) {
  const QuicIds::Id ours = ids.make();
  const Octets initial = long_packet(NGTCP2_PROTO_VER_V1, text(ours), "client's");
  Packet out(200);
  BOOST_TEST(write_retry(out, secrets, accept(initial), ours, home, kNow) == 0u);
  // A client's own first ID has 8 octets at least (RFC 9000 §7.2); a shorter one with a token comes after a Retry.
  const Octets odd = long_packet(NGTCP2_PROTO_VER_V1, "seven..", "client's", Octets(5, 't'));
  BOOST_TEST(write_retry(out, secrets, accept(odd), ids.make(), home, kNow) == 0u);
  BOOST_TEST(write_retry(std::span(out).first(50), secrets, accept(initial), ids.make(), home, kNow) == 0u);
}

// Who shows a Retry token that is not for him, or too late, is refused: a second Retry is not allowed. What cannot be read
// counts as nothing.
BOOST_AUTO_TEST_CASE(retry_tokens_of_others) {
  const QuicIds::Id ours = ids.make();
  const Octets token = retry_token(NGTCP2_PROTO_VER_V1, ours, home);
  BOOST_TEST((check(token, ours, home, kNow).verdict == TokenVerdict::retry));
  BOOST_TEST((check(token, ours, away, kNow).verdict == TokenVerdict::refuse));
  BOOST_TEST((check(token, ours, same_ip, kNow).verdict == TokenVerdict::refuse));
  BOOST_TEST((check(token, ours, six, kNow).verdict == TokenVerdict::refuse));
  BOOST_TEST((check(token, ours, home, kNow + 11 * kSecond).verdict == TokenVerdict::refuse));
  BOOST_TEST((check(token, ids.make(), home, kNow).verdict == TokenVerdict::none));  // another connection
  BOOST_TEST((check(token, ours, home, kNow, NGTCP2_PROTO_VER_V2).verdict == TokenVerdict::none));
  for (std::size_t i = 0; i < token.size(); ++i) {
    Octets forged = token;
    forged[i] ^= 1;
    BOOST_TEST((check(forged, ours, home, kNow).verdict == TokenVerdict::none));
  }
  const Octets cut(token.begin(), token.end() - 1);
  BOOST_TEST((check(cut, ours, home, kNow).verdict == TokenVerdict::none));
}

BOOST_AUTO_TEST_CASE(new_tokens) {
  for (const Address& from : {home, six}) {
    Octets token(kMaxNewToken);
    const std::size_t n = make_new_token(token, secrets, from, kNow);
    BOOST_REQUIRE(n != 0u);
    token.resize(n);
    Address other_port = from;
    other_port.set_port(1);
    const auto dcid = octets("whatever");
    BOOST_TEST((check(token, dcid, from, kNow + 1800 * kSecond).verdict == TokenVerdict::known));
    BOOST_TEST((check(token, dcid, other_port, kNow).verdict == TokenVerdict::known));
    // Of no worth, but no crime either: the client cannot know that its address has changed.
    BOOST_TEST((check(token, dcid, away, kNow).verdict == TokenVerdict::none));
    BOOST_TEST((check(token, dcid, from, kNow + 3601 * kSecond).verdict == TokenVerdict::none));
    for (std::size_t i = 0; i < token.size(); ++i) {
      Octets forged = token;
      forged[i] ^= 1;
      BOOST_TEST((check(forged, dcid, from, kNow).verdict == TokenVerdict::none));
    }
  }
  Octets small(20);
  BOOST_TEST(make_new_token(small, secrets, home, kNow) == 0u);
}

BOOST_AUTO_TEST_CASE(no_token_and_strange_ones) {
  const auto dcid = octets("original");
  BOOST_TEST((check({}, dcid, home, kNow).verdict == TokenVerdict::none));
  for (unsigned first = 0; first < 256; ++first)
    for (const std::size_t size : {1u, 37u, 41u, 90u, 110u, 200u})
      BOOST_TEST((check(Octets(size, static_cast<std::uint8_t>(first)), dcid, home, kNow).verdict ==
                  TokenVerdict::none));
}

// A reload: tokens that are out there stay good for one generation of keys.
BOOST_AUTO_TEST_CASE(tokens_survive_one_rotation) {
  const QuicIds::Id ours = ids.make();
  const Octets retry = retry_token(NGTCP2_PROTO_VER_V1, ours, home);
  Octets known(kMaxNewToken);
  known.resize(make_new_token(known, secrets, home, kNow));
  secrets = secrets.rotated();
  BOOST_TEST((check(retry, ours, home, kNow).verdict == TokenVerdict::retry));
  BOOST_TEST((check(retry, ours, away, kNow).verdict == TokenVerdict::refuse));
  BOOST_TEST((check(known, ours, home, kNow).verdict == TokenVerdict::known));
  secrets = secrets.rotated();
  BOOST_TEST((check(retry, ours, home, kNow).verdict == TokenVerdict::none));
  BOOST_TEST((check(known, ours, home, kNow).verdict == TokenVerdict::none));
}

BOOST_AUTO_TEST_CASE(invalid_token_close) {
  const Octets initial = long_packet(NGTCP2_PROTO_VER_V1, "original", "client's");
  Packet out(200);
  const std::size_t n = write_invalid_token_close(out, accept(initial));
  BOOST_REQUIRE(n != 0u);
  out.resize(n);
  const ngtcp2_pkt_hd hd = decoded(out);
  BOOST_TEST((hd.type == NGTCP2_PKT_INITIAL));
  BOOST_TEST(text(hd.dcid) == "client's");
  BOOST_TEST(text(hd.scid) == "original");
  Packet small(20);
  BOOST_TEST(write_invalid_token_close(small, accept(initial)) == 0u);
}

BOOST_AUTO_TEST_CASE(budget) {
  AnswerBudget b(3, 10);
  Instant now = 5 * kSecond;
  for (int i = 0; i < 3; ++i) BOOST_TEST(b.take(now));
  BOOST_TEST(!b.take(now));
  now += kSecond / 10 - 1;
  BOOST_TEST(!b.take(now));
  now += 2;
  BOOST_TEST(b.take(now));
  BOOST_TEST(!b.take(now));
  now += 100 * kSecond;  // saves up no more than the burst
  for (int i = 0; i < 3; ++i) BOOST_TEST(b.take(now));
  BOOST_TEST(!b.take(now));
  BOOST_TEST(!b.take(now - kSecond));  // a clock that goes back gives nothing
}

BOOST_AUTO_TEST_CASE(reflecting_ports) {
  for (const std::uint16_t p : {0, 19, 53, 123, 389, 1023, 1900, 5353, 11211})
    BOOST_TEST(is_reflecting_port(p));
  for (const std::uint16_t p : {443, 1024, 4433, 50000, 65535}) BOOST_TEST(!is_reflecting_port(p));
}

BOOST_AUTO_TEST_SUITE_END()
