// The rows A55 to A62 of the bug corpus, and the rest of what a leaf promises.
#include "certs/leaf.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <set>
#include <thread>

#include "certs/describe.h"
#include "certs/pem.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

std::string san(X509* x) {
  std::string out;
  for (const std::string& name : describe(x).names) out += (out.empty() ? "" : ",") + name;
  return out;
}

std::string subject(X509* x) { return describe(x).subject; }

std::string bytes(const ASN1_STRING* s) {
  BOOST_REQUIRE(s != nullptr);
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(s)),
                     static_cast<std::size_t>(ASN1_STRING_length(s)));
}

bool critical(X509* x, int nid) {
  return X509_EXTENSION_get_critical(X509_get_ext(x, X509_get_ext_by_NID(x, nid, -1))) == 1;
}

long life(X509* x) {
  int days = 0, seconds = 0;
  ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x));
  return days * 86400L + seconds;
}

/// Names of 75 characters: too long for a common name, fine as a DNS name.
const std::string kLong = std::string(50, 'a') + "." + std::string(17, 'b') + ".a.test";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(leaf, WithCa)

BOOST_AUTO_TEST_CASE(a55_san_is_present_and_complete) {
  const X509Ptr one = mint({"a.test"});
  BOOST_TEST(san(one.get()) == "DNS:a.test");
  const X509Ptr all = mint({"a.test", "b.test", "192.0.2.1", "2001:db8::1", "bücher.test"});
  BOOST_TEST(san(all.get()) == "DNS:a.test,DNS:b.test,IP:192.0.2.1,IP:2001:db8::1,DNS:xn--bcher-kva.test");
  for (const char* host : {"a.test", "b.test", "xn--bcher-kva.test"}) {
    BOOST_TEST(verify(all.get(), ca.certificate(), host) == X509_V_OK);
  }
}

BOOST_AUTO_TEST_CASE(a56_a_long_host_is_in_the_san_and_not_in_the_subject) {
  BOOST_REQUIRE_EQUAL(kLong.size(), 75u);
  const X509Ptr x = mint({kLong});
  BOOST_TEST(san(x.get()) == "DNS:" + kLong);
  BOOST_TEST(subject(x.get()) == "(empty)");
  BOOST_TEST(critical(x.get(), NID_subject_alt_name));  // RFC 5280 §4.2.1.6
  BOOST_TEST(verify(x.get(), ca.certificate(), kLong) == X509_V_OK);
  const std::string just = kLong.substr(11);
  BOOST_REQUIRE_EQUAL(just.size(), 64u);
  const X509Ptr fits = mint({just});
  BOOST_TEST(subject(fits.get()) == "CN=" + just);
  BOOST_TEST(!critical(fits.get(), NID_subject_alt_name));
  std::string longest;
  for (int i = 0; i < 62; ++i) longest += "abc.";
  const X509Ptr max = mint({longest + "abcde"});
  BOOST_TEST(verify(max.get(), ca.certificate(), longest + "abcde") == X509_V_OK);
}

BOOST_AUTO_TEST_CASE(a57_serials_are_random_positive_and_never_reused) {
  std::set<std::string> seen;
  for (int restart = 0; restart < 4; ++restart) {
    const Authority again = must(Authority::load(dir / "ca"));
    const Issuer fresh = must(Issuer::create(again));  // a new leaf key, as after a restart
    for (int i = 0; i < 50; ++i) {
      const X509Ptr x = must(fresh.issue(names({"a.test"})));
      const ASN1_INTEGER* serial = X509_get0_serialNumber(x.get());
      BOOST_TEST(ASN1_STRING_type(serial) == V_ASN1_INTEGER);  // not V_ASN1_NEG_INTEGER
      BOOST_TEST(ASN1_STRING_length(serial) == 16);
      BOOST_TEST((ASN1_STRING_get0_data(serial)[0] & 0x80) == 0);
      seen.insert(bytes(serial));
    }
  }
  BOOST_TEST(seen.size() == 200u);
}

BOOST_AUTO_TEST_CASE(a58_life_is_short_and_starts_a_day_ago) {
  const X509Ptr x = mint({"a.test"});
  BOOST_TEST(life(x.get()) == (kDefaultLeafDays + 1) * 86400L);
  int days = 0, seconds = 0;
  ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x.get()), nullptr);
  BOOST_TEST(days == 1);
  LeafOptions longest;
  longest.days = kMaxLeafDays;
  BOOST_TEST(life(mint({"a.test"}, longest).get()) == 198 * 86400L);
  for (const int refused : {0, -1, kMaxLeafDays + 1, 398}) {
    LeafOptions o;
    o.days = refused;
    BOOST_TEST(contains(error_of(issuer.issue(names({"a.test"}), o)), "1 to 197 days"));
  }
}

BOOST_AUTO_TEST_CASE(a58_a_leaf_never_outlives_its_ca) {
  const Authority brief = must(Authority::create(dir / "brief", {"", 10, KeyType::ecdsa_p256}, Overwrite::no));
  const Issuer from_brief = must(Issuer::create(brief));
  const X509Ptr x = must(from_brief.issue(names({"a.test"})));
  BOOST_TEST(ASN1_TIME_compare(X509_get0_notAfter(x.get()), X509_get0_notAfter(brief.certificate())) == 0);
  LeafOptions later;
  later.now = std::time(nullptr) + 11 * 86400;
  BOOST_TEST(contains(error_of(from_brief.issue(names({"a.test"}), later)), "the CA has expired"));
}

BOOST_AUTO_TEST_CASE(a59_addresses_are_ip_names_and_nothing_else) {
  for (const std::string ip : {"192.0.2.1", "2001:db8::1", "::1", "127.0.0.1"}) {
    const X509Ptr x = mint({ip});
    BOOST_TEST(san(x.get()) == "IP:" + ip);
    BOOST_TEST(verify(x.get(), ca.certificate(), ip, true) == X509_V_OK);
    BOOST_TEST(verify(x.get(), ca.certificate(), "192.0.2.9", true) == X509_V_ERR_IP_ADDRESS_MISMATCH);
  }
  BOOST_TEST(san(mint({"[2001:db8::1]"}).get()) == "IP:2001:db8::1");
}

BOOST_AUTO_TEST_CASE(a60_a_labels_stay_and_u_labels_become_them) {
  BOOST_TEST(san(mint({"xn--bcher-kva.a.test"}).get()) == "DNS:xn--bcher-kva.a.test");
  BOOST_TEST(san(mint({"bücher.a.test"}).get()) == "DNS:xn--bcher-kva.a.test");
  BOOST_TEST(san(mint({"BÜCHER.a.test", "xn--bcher-kva.A.TEST"}).get()) == "DNS:xn--bcher-kva.a.test");
}

BOOST_AUTO_TEST_CASE(a61_a_wildcard_covers_one_label_and_exact_names_are_exact) {
  const X509Ptr wild = mint({"*.b.test"});
  BOOST_TEST(verify(wild.get(), ca.certificate(), "y.b.test") == X509_V_OK);
  BOOST_TEST(verify(wild.get(), ca.certificate(), "x.y.b.test") == X509_V_ERR_HOSTNAME_MISMATCH);
  BOOST_TEST(verify(wild.get(), ca.certificate(), "b.test") == X509_V_ERR_HOSTNAME_MISMATCH);
  const X509Ptr exact = mint({"x.y.b.test"});
  BOOST_TEST(san(exact.get()) == "DNS:x.y.b.test");
  BOOST_TEST(verify(exact.get(), ca.certificate(), "x.y.b.test") == X509_V_OK);
  BOOST_TEST(verify(exact.get(), ca.certificate(), "z.y.b.test") == X509_V_ERR_HOSTNAME_MISMATCH);
}

BOOST_AUTO_TEST_CASE(a62_aki_is_the_ski_of_the_ca_byte_for_byte) {
  const X509Ptr x = mint({"a.test"});
  BOOST_TEST(bytes(X509_get0_authority_key_id(x.get())) == bytes(X509_get0_subject_key_id(ca.certificate())));
  BOOST_TEST(bytes(X509_get0_subject_key_id(x.get())) != bytes(X509_get0_authority_key_id(x.get())));
  BOOST_TEST(X509_get0_authority_issuer(x.get()) == nullptr);
}

/// A CA as another tool may make it: `ski` in hexadecimal, or none when empty.
Authority foreign_ca(const TempDir& dir, const std::string& ski) {
  const PkeyPtr key = must(generate_key(KeyType::ecdsa_p256));
  const X509Ptr x(X509_new());
  X509_set_version(x.get(), X509_VERSION_3);
  X509_set_pubkey(x.get(), key.get());
  X509_gmtime_adj(X509_getm_notBefore(x.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(x.get()), 86400);
  X509_NAME_add_entry_by_NID(X509_get_subject_name(x.get()), NID_commonName, MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("foreign"), -1, -1, 0);
  X509_set_issuer_name(x.get(), X509_get_subject_name(x.get()));
  const auto add = [&](int nid, const char* value) {
    const ExtensionPtr ext(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
    BOOST_REQUIRE(ext);
    X509_add_ext(x.get(), ext.get(), -1);
  };
  add(NID_basic_constraints, "critical,CA:TRUE");
  add(NID_key_usage, "critical,keyCertSign");
  if (!ski.empty()) add(NID_subject_key_identifier, ski.c_str());
  BOOST_REQUIRE(X509_sign(x.get(), key.get(), EVP_sha256()) > 0);
  must(write_pair(dir / "ca-key.pem", must(key_to_pem(key.get())), dir / "ca.pem", must(to_pem(x.get())),
                  Overwrite::yes));
  return must(Authority::load(dir.path()));
}

BOOST_AUTO_TEST_CASE(a62_an_unusual_ski_is_copied_and_a_missing_one_computed) {
  const TempDir other;
  const Authority odd = foreign_ca(other, "01:02:03");
  X509Ptr x = must(must(Issuer::create(odd)).issue(names({"a.test"})));
  BOOST_TEST(bytes(X509_get0_authority_key_id(x.get())) == "\x01\x02\x03");
  BOOST_TEST(verify(x.get(), odd.certificate(), "a.test") == X509_V_OK);
  const Authority none = foreign_ca(other, "");
  x = must(must(Issuer::create(none)).issue(names({"a.test"})));
  BOOST_TEST(bytes(X509_get0_authority_key_id(x.get())).size() == 20u);
}

BOOST_AUTO_TEST_CASE(usage_is_for_one_side_only) {
  const X509Ptr server = mint({"a.test"});
  LeafOptions o;
  o.purpose = Purpose::client;
  const X509Ptr client = mint({"a.test"}, o);
  BOOST_TEST(X509_get_extended_key_usage(server.get()) == static_cast<unsigned>(XKU_SSL_SERVER));
  BOOST_TEST(X509_get_extended_key_usage(client.get()) == static_cast<unsigned>(XKU_SSL_CLIENT));
  BOOST_TEST(X509_get_key_usage(server.get()) == static_cast<unsigned>(KU_DIGITAL_SIGNATURE));
  BOOST_TEST(X509_check_ca(server.get()) == 0);
  BOOST_TEST(verify(server.get(), ca.certificate(), "", false, X509_PURPOSE_SSL_CLIENT) == X509_V_ERR_INVALID_PURPOSE);
  BOOST_TEST(verify(client.get(), ca.certificate(), "", false, X509_PURPOSE_SSL_CLIENT) == X509_V_OK);
  BOOST_TEST(verify(client.get(), ca.certificate(), "a.test") == X509_V_ERR_INVALID_PURPOSE);
}

BOOST_AUTO_TEST_CASE(a_rsa_ca_and_an_rsa_leaf_verify_too) {
  const Authority rsa = must(Authority::create(dir / "rsa", {"", 30, KeyType::rsa_2048}, Overwrite::no));
  const X509Ptr x = must(must(Issuer::create(rsa, must(generate_key(KeyType::rsa_2048)))).issue(names({"a.test"})));
  BOOST_TEST(verify(x.get(), rsa.certificate(), "a.test") == X509_V_OK);
  BOOST_TEST(X509_get_key_usage(x.get()) == static_cast<unsigned>(KU_DIGITAL_SIGNATURE | KU_KEY_ENCIPHERMENT));
}

BOOST_AUTO_TEST_CASE(another_ca_does_not_verify_and_time_does_matter) {
  const Authority other = must(Authority::create(dir / "other", {}, Overwrite::no));
  const X509Ptr x = mint({"a.test"});
  BOOST_TEST(verify(x.get(), other.certificate(), "a.test") != X509_V_OK);
  const std::time_t now = std::time(nullptr);
  const auto at = [&](long days) {
    return verify(x.get(), ca.certificate(), "a.test", false, X509_PURPOSE_SSL_SERVER, now + days * 86400);
  };
  BOOST_TEST(at(89) == X509_V_OK);
  BOOST_TEST(at(91) == X509_V_ERR_CERT_HAS_EXPIRED);
  BOOST_TEST(at(-2) == X509_V_ERR_CERT_NOT_YET_VALID);
}

BOOST_AUTO_TEST_CASE(name_counts_are_bounded) {
  BOOST_TEST(contains(error_of(issuer.issue({})), "1 to 256 names"));
  std::vector<std::string> many;
  for (int i = 0; i < 256; ++i) many.push_back("h" + std::to_string(i) + ".a.test");
  const X509Ptr x = mint(many);
  BOOST_TEST(verify(x.get(), ca.certificate(), "h255.a.test") == X509_V_OK);
}

BOOST_AUTO_TEST_CASE(tls_takes_the_leaf_without_a_context_of_its_own) {
  const OpensslPtr<SSL_CTX, SSL_CTX_free> ctx(SSL_CTX_new(TLS_server_method()));
  const OpensslPtr<SSL, SSL_free> ssl(SSL_new(ctx.get()));
  const X509Ptr x = mint({"a.test"});
  BOOST_TEST(SSL_use_cert_and_key(ssl.get(), x.get(), issuer.leaf_key(), nullptr, 1) == 1);
  BOOST_TEST(SSL_check_private_key(ssl.get()) == 1);
  BOOST_TEST(ERR_peek_error() == 0ul);
}

BOOST_AUTO_TEST_CASE(threads_share_one_issuer) {
  std::vector<std::vector<X509Ptr>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&] {
      const auto all = parse_names(std::vector<std::string>{"a.test", "192.0.2.1"});
      for (int i = 0; i < 100; ++i) {
        mine.push_back(std::move(*issuer.issue(*all)));
        // As TLS does when it takes the certificate: touches what the leaves' public keys share.
        if (X509_check_private_key(mine.back().get(), issuer.leaf_key()) != 1) mine.pop_back();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::set<std::string> serials;
  for (const auto& mine : made) {
    for (const X509Ptr& x : mine) {
      serials.insert(describe(x.get()).serial);
      BOOST_TEST(X509_verify(x.get(), ca.key()) == 1);
    }
  }
  BOOST_TEST(serials.size() == 400u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
