// Files and options that are wrong: one line that names the file and the cause.
#include "tls_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

struct Fixture {
  std::string load(const std::string& cert, const std::string& key) {
    const auto id = TlsIdentity::load(cert, key);
    return id ? "loaded" : id.error().what;
  }
  std::string client_with(const std::string& ca) {
    TlsClientOptions o;
    o.ca_file = ca;
    const auto c = TlsContext::client(o);
    return c ? "made" : c.error().what;
  }
  std::string server_with(const std::function<void(TlsServerOptions&)>& change) {
    TlsServerOptions o;
    o.identities = {*TlsIdentity::load(leaf.cert_file, leaf.key_file)};
    change(o);
    const auto c = TlsContext::server(o);
    return c ? "made" : c.error().what;
  }
  TestPki pki;
  TestCert leaf = pki.leaf("a", "DNS:A.test,DNS:*.a.test,IP:127.0.0.1,IP:::1,email:x@a.test");
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pem, Fixture)

BOOST_AUTO_TEST_CASE(names_and_expiry) {
  const auto id = TlsIdentity::load(leaf.cert_file, leaf.key_file);
  BOOST_REQUIRE(id.has_value());
  const std::vector<std::string> want{"a.test", "*.a.test", "127.0.0.1", "::1"};
  BOOST_TEST((*id)->names() == want, boost::test_tools::per_element());
  const std::int64_t days = ((*id)->expires() - static_cast<std::int64_t>(wall_now() / 1'000'000'000u)) / 86400;
  BOOST_TEST((days == 29 || days == 30));
}

BOOST_AUTO_TEST_CASE(certificate_and_key_in_one_file) {
  const std::string both = pki.dir / "both.pem";
  spit(both, slurp(leaf.key_file) + slurp(leaf.cert_file));
  BOOST_TEST(load(both, both) == "loaded");
}

BOOST_AUTO_TEST_CASE(texts_in_hand) {
  const std::string cert = slurp(leaf.cert_file), key = slurp(leaf.key_file);
  const auto id = TlsIdentity::from_pem(cert, key, "issued");
  BOOST_REQUIRE(id.has_value());
  BOOST_TEST((*id)->names() == (*TlsIdentity::load(leaf.cert_file, leaf.key_file))->names(), boost::test_tools::per_element());
  const auto what = [](const std::string& c, const std::string& k) {
    const auto r = TlsIdentity::from_pem(c, k, "issued");
    return r ? "made" : r.error().what;
  };
  BOOST_TEST(what(cert + slurp(pki.ca.cert_file), key) == "made");
  BOOST_TEST(what(key, key) == "no certificate in issued (expected PEM, -----BEGIN CERTIFICATE-----)");
  BOOST_TEST(what("", "") == "no certificate in issued (expected PEM, -----BEGIN CERTIFICATE-----)");
  BOOST_TEST(what(cert, cert).find("no private key in issued") == 0u);
  BOOST_TEST(what(cert, slurp(pki.ca.key_file)) == "key issued does not match certificate issued");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_files) {
  const std::string missing = pki.dir / "missing";
  BOOST_TEST(load(missing, leaf.key_file) == "cannot read certificate " + missing + ": No such file or directory");
  BOOST_TEST(load(leaf.cert_file, missing) == "cannot read key " + missing + ": No such file or directory");
  BOOST_TEST(load(leaf.key_file, leaf.key_file).find("no certificate in " + leaf.key_file) == 0u);
  BOOST_TEST(load(leaf.cert_file, leaf.cert_file).find("no private key in " + leaf.cert_file) == 0u);
  BOOST_TEST(load(leaf.cert_file, pki.ca.key_file) == "key " + pki.ca.key_file + " does not match certificate " + leaf.cert_file);

  std::string text = slurp(leaf.cert_file);
  text[100] = text[100] == 'A' ? 'B' : 'A';
  text.erase(200, 4);
  const std::string damaged = pki.dir / "damaged.pem";
  spit(damaged, text);
  BOOST_TEST(load(damaged, leaf.key_file).find(damaged + ": certificate 1 is damaged: ") == 0u, load(damaged, leaf.key_file));
  spit(damaged, slurp(leaf.cert_file) + text);
  BOOST_TEST(load(damaged, leaf.key_file).find(damaged + ": certificate 2 is damaged: ") == 0u, load(damaged, leaf.key_file));
  text = slurp(leaf.key_file);
  text.erase(60, 8);
  spit(damaged, text);
  BOOST_TEST(load(leaf.cert_file, damaged).find("key " + damaged + " is damaged: ") == 0u, load(leaf.cert_file, damaged));
}

// It must not ask on the terminal, which would hang a daemon.
BOOST_AUTO_TEST_CASE(encrypted_key) {
  const std::string file = pki.dir / "secret.key";
  std::FILE* f = std::fopen(file.c_str(), "we");
  unsigned char pass[] = "pass";
  PEM_write_PrivateKey(f, leaf.key, EVP_aes_128_cbc(), pass, 4, nullptr, nullptr);
  std::fclose(f);
  BOOST_TEST(load(leaf.cert_file, file).find("key " + file + " is encrypted") == 0u, load(leaf.cert_file, file));
}

BOOST_AUTO_TEST_CASE(trust_stores) {
  BOOST_TEST(client_with(pki.ca.cert_file) == "made");
  BOOST_TEST(client_with(pki.dir / "nothing") == "cannot read CA file " + (pki.dir / "nothing") + ": No such file or directory");
  BOOST_TEST(client_with(pki.ca.key_file).find("no certificate in " + pki.ca.key_file) == 0u);
  ::setenv("SSL_CERT_FILE", pki.ca.cert_file.c_str(), 1);
  BOOST_TEST(client_with("") == "made");
  ::setenv("SSL_CERT_FILE", (pki.dir / "nothing").c_str(), 1);
  BOOST_TEST(client_with("").find("cannot read CA file") == 0u);
  ::unsetenv("SSL_CERT_FILE");
}

BOOST_AUTO_TEST_CASE(options) {
  BOOST_TEST(server_with([](auto&) {}) == "made");
  BOOST_TEST(server_with([](auto& o) { o.min_version = "1.1"; }) == "min_version '1.1': expected \"1.2\" or \"1.3\"");
  BOOST_TEST(server_with([](auto& o) { o.ciphers = "nonsense"; }).find("ciphers 'nonsense': ") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.ciphersuites = "nonsense"; }).find("ciphersuites 'nonsense': ") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.groups = "nonsense"; }).find("groups 'nonsense': ") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.groups = "X25519MLKEM768:X25519"; }) == "made");
  BOOST_TEST(server_with([](auto& o) { o.identities.clear(); }).find("needs a certificate") != std::string::npos);
  BOOST_TEST(server_with([](auto& o) { o.alpn = {std::string(256, 'x')}; }).find("ALPN") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.ticket_keys.key = "short"; }).find("ticket keys") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.key_log_file = "/nonexistent/dir/keys"; }).find("cannot open key log /nonexistent/dir/keys: ") == 0u);
  BOOST_TEST(server_with([](auto& o) { o.client_ca_file = "/nonexistent/ca"; }).find("cannot read certificate /nonexistent/ca") == 0u);
}

BOOST_AUTO_TEST_CASE(options_are_checked_name_by_name) {
  const auto problems = [](const std::function<void(TlsServerOptions&)>& change) {
    TlsServerOptions o;
    change(o);
    std::string out;
    for (const TlsOptionProblem& p : check_tls_options(o)) out += std::string(p.option) + ": " + p.what + "\n";
    return out;
  };
  BOOST_TEST(problems([](auto&) {}) == "");
  BOOST_TEST(problems([](auto& o) { o.ciphers = "HIGH:!aNULL, -AES256:@STRENGTH"; }) == "");
  BOOST_TEST(problems([](auto& o) { o.ciphers = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA265"; }) ==
             "ciphers: 'ECDHE-RSA-AES128-GCM-SHA265': there is no such TLS 1.2 cipher\n");
  BOOST_TEST(problems([](auto& o) { o.ciphers = "TLS_AES_128_GCM_SHA256"; }) ==
             "ciphers: 'TLS_AES_128_GCM_SHA256': there is no such TLS 1.2 cipher\n");
  BOOST_TEST(problems([](auto& o) { o.ciphersuites = "a:TLS_AES_128_GCM_SHA256:b"; }) ==
             "ciphersuites: 'a': there is no such TLS 1.3 cipher suite\nciphersuites: 'b': there is no such TLS 1.3 cipher suite\n");
  BOOST_TEST(problems([](auto& o) { o.ciphersuites = ":"; }) != "");
  BOOST_TEST(problems([](auto& o) { o.groups = "P-256:X25519MLKEM768"; }) == "");
  BOOST_TEST(problems([](auto& o) { o.groups = "P-256:"; o.min_version = "1.1"; }).find("min_version: '1.1'") == 0u);
  BOOST_TEST(problems([](auto& o) { o.groups = "nonsense"; }).find("groups: 'nonsense': there is no such group") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
