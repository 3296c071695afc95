#include "tls/client_hello.h"

#include <openssl/ssl.h>

#include <boost/test/unit_test.hpp>
#include <random>

using namespace twp;
using Status = ClientHello::Status;

namespace {

/// What OpenSSL sends first. `groups` with MLKEM768 makes it longer than one segment.
std::string make_hello(const char* sni, const std::string& alpn, const char* groups = "X25519") {
  SSL_CTX* ctx = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set1_groups_list(ctx, groups);
  SSL* ssl = SSL_new(ctx);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl);
  if (std::string name = sni != nullptr ? sni : ""; !name.empty())
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  if (!alpn.empty()) SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(alpn.data()), static_cast<unsigned>(alpn.size()));
  SSL_do_handshake(ssl);
  std::string out(65536, '\0');
  out.resize(static_cast<std::size_t>(BIO_read(SSL_get_wbio(ssl), out.data(), 65536)));
  SSL_free(ssl);
  SSL_CTX_free(ctx);
  return out;
}

ClientHello peek(std::string_view s) { return peek_client_hello(std::as_bytes(std::span(s))); }

/// The same message in records of at most `n` octets.
std::string refragment(const std::string& hello, std::size_t n) {
  std::string out;
  for (std::size_t i = 5; i < hello.size(); i += n) {
    const std::string part = hello.substr(i, n);
    out += {22, 3, 1, static_cast<char>(part.size() >> 8), static_cast<char>(part.size() & 255)};
    out += part;
  }
  return out;
}

const std::string kAlpn("\x02h2\x08http/1.1");

}  // namespace

BOOST_AUTO_TEST_SUITE(client_hello)

BOOST_AUTO_TEST_CASE(finds_name_protocols_and_versions) {
  const ClientHello h = peek(make_hello("WWW.A.test", kAlpn));
  BOOST_REQUIRE(h.status == Status::complete);
  BOOST_TEST(h.sni == "www.a.test");
  BOOST_TEST(h.alpn == (std::vector<std::string>{"h2", "http/1.1"}), boost::test_tools::per_element());
  BOOST_TEST(h.versions == (std::vector<std::uint16_t>{0x0304, 0x0303}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_name_and_protocols) {
  const ClientHello h = peek(make_hello(nullptr, ""));
  BOOST_REQUIRE(h.status == Status::complete);
  BOOST_TEST(h.sni == "");
  BOOST_TEST(h.alpn.empty());
}

// A66: a post-quantum hello does not fit one segment.
BOOST_AUTO_TEST_CASE(cut_at_every_octet) {
  const std::string hello = make_hello("long.a.test", kAlpn, "X25519MLKEM768:X25519");
  BOOST_TEST(hello.size() > 1400u);
  for (std::size_t n = 0; n < hello.size(); ++n) BOOST_REQUIRE(peek(hello.substr(0, n)).status == Status::incomplete);
  const ClientHello h = peek(hello);
  BOOST_REQUIRE(h.status == Status::complete);
  BOOST_TEST(h.sni == "long.a.test");
  BOOST_TEST(peek(hello + "and more").sni == "long.a.test");
}

BOOST_AUTO_TEST_CASE(spread_over_records) {
  const std::string hello = make_hello("a.test", kAlpn);
  for (std::size_t n : {1u, 2u, 3u, 4u, 5u, 40u, 200u}) {
    const std::string many = refragment(hello, n);
    for (std::size_t i = 0; i < many.size(); ++i) BOOST_REQUIRE(peek(many.substr(0, i)).status == Status::incomplete);
    BOOST_TEST(peek(many).sni == "a.test");
    BOOST_TEST(peek(many).alpn.size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(other_protocols) {
  for (const char* text : {"GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "SSH-2.0-x\r\n", "\x80\x2e\x01\x03\x01", "\x16\x04\x01\x02\x03"})
    BOOST_TEST((peek(text).status == Status::not_tls), text);
  BOOST_TEST((peek("").status == Status::incomplete));
  BOOST_TEST((peek("\x16").status == Status::incomplete));
}

BOOST_AUTO_TEST_CASE(damaged) {
  const auto record = [](std::string_view body) {
    return std::string{22, 3, 1, static_cast<char>(body.size() >> 8), static_cast<char>(body.size() & 255)} + std::string(body);
  };
  BOOST_TEST((peek(std::string("\x16\x03\x01\x00\x00", 5)).status == Status::malformed));  // empty record
  BOOST_TEST((peek("\x16\x03\x01\x40\x01").status == Status::malformed));                  // record above 2^14
  BOOST_TEST((peek(record(std::string("\x02\x00\x00\x01x", 5))).status == Status::malformed));  // a ServerHello
  BOOST_TEST((peek(record(std::string("\x01\x00\x00\x03\x03\x03x", 7))).status == Status::malformed));
  BOOST_TEST((peek(record(std::string("\x01\x00\x40\x00", 4))).status == Status::malformed));   // longer than we hold
  std::string hello = make_hello("a.test", kAlpn);
  BOOST_TEST((peek(hello.substr(0, 60) + "\x15\x03\x03" + hello.substr(63)).status != Status::not_tls));
}

// Whatever the octets are: an answer, no read outside (the sanitizers watch), and no name made of thin air.
BOOST_AUTO_TEST_CASE(flipped_octets) {
  const std::string hello = make_hello("a.test", kAlpn);
  std::mt19937 rng(1);
  for (int round = 0; round < 20000; ++round) {
    std::string s = hello;
    for (int k = 0; k < 3; ++k) s[rng() % s.size()] = static_cast<char>(rng());
    if (rng() % 4 == 0) s.resize(rng() % s.size());
    const ClientHello h = peek(s);
    if (h.status != Status::complete) BOOST_REQUIRE((h.sni.empty() && h.alpn.empty()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
