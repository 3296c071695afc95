#include "certs/export.h"

#include <openssl/pkcs12.h>

#include "certs/describe.h"
#include "certs/pem.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

struct Opened {
  PkeyPtr key;
  X509Ptr cert;
  int others = 0;
  bool good = false;
};

Opened open(const std::string& bytes, const char* password) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const Pkcs12Ptr p12(d2i_PKCS12(nullptr, &at, static_cast<long>(bytes.size())));
  BOOST_REQUIRE(p12);
  EVP_PKEY* key = nullptr;
  X509* cert = nullptr;
  STACK_OF(X509)* rest = nullptr;
  Opened out;
  out.good = PKCS12_parse(p12.get(), password, &key, &cert, &rest) == 1;
  out.key.reset(key);
  out.cert.reset(cert);
  out.others = rest != nullptr ? sk_X509_num(rest) : 0;
  OSSL_STACK_OF_X509_free(rest);
  openssl_reason("");
  return out;
}

X509Chain chain_of(const WithCa& w, X509Ptr leaf) {
  X509Chain chain;
  chain.push_back(std::move(leaf));
  chain.push_back(share(w.ca.certificate()));
  return chain;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(exporting, WithCa)

BOOST_AUTO_TEST_CASE(p12_holds_chain_and_key) {
  const X509Chain chain = chain_of(*this, mint({"a.test"}));
  for (const bool legacy : {false, true}) {
    const std::string bytes = must(to_p12(chain, issuer.leaf_key(), {"pässword", "a.test", legacy}));
    const Opened o = open(bytes, "pässword");
    BOOST_REQUIRE(o.good);
    BOOST_TEST(X509_cmp(o.cert.get(), chain[0].get()) == 0);
    BOOST_TEST(EVP_PKEY_eq(o.key.get(), issuer.leaf_key()) == 1);
    BOOST_TEST(o.others == 1);
    BOOST_TEST(!open(bytes, "wrong").good);
  }
}

BOOST_AUTO_TEST_CASE(p12_of_a_ca_holds_no_key) {
  X509Chain chain;
  chain.push_back(share(ca.certificate()));
  const Opened o = open(must(to_p12(chain, nullptr, {})), "");
  BOOST_TEST(o.good);
  BOOST_TEST(!o.key);
  BOOST_TEST(o.others == 1);
}

BOOST_AUTO_TEST_CASE(p12_refuses_a_foreign_key) {
  BOOST_TEST(!to_p12(chain_of(*this, mint({"a.test"})), ca.key(), {}));
  BOOST_TEST(contains(error_of(to_p12({}, nullptr, {})), "nothing to export"));
}

BOOST_AUTO_TEST_CASE(a_description_is_readable_and_safe) {
  const X509Ptr x = mint({"a.test", "::1"});
  const std::string text = to_text(describe(x.get()));
  for (const char* part : {"Subject:      CN=a.test\n", "Names (SAN):  DNS:a.test, IP:::1\n", "valid, 89 days left",
                           "Key:          ECDSA P-256\n", "CA:           no\n", "SHA-256:      "}) {
    // "90 days" within the first second.
    const bool day = std::string(part).starts_with("valid") && contains(text, "valid, 90 days left");
    const bool there = day || contains(text, part);
    BOOST_TEST(there, part << " in " << text);
  }
  BOOST_TEST(contains(to_text(describe(ca.certificate())), "(itself)"));
  BOOST_TEST(contains(to_text(describe(ca.certificate())), "CA:           yes"));
  LeafOptions past;
  past.now = std::time(nullptr) - 100 * 86400;
  BOOST_TEST(contains(describe(must(issuer.issue(names({"a.test"}), past)).get()).validity, "expired 10 days ago"));

  const X509Ptr hostile(X509_new());
  X509_NAME_add_entry_by_NID(X509_get_subject_name(hostile.get()), NID_commonName, MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("\x1b[31mred"), -1, -1, 0);
  Name name{Name::Kind::dns, "a\x1b[0m.test\n", {}};
  const X509Ptr hostile_san = must(issuer.issue({&name, 1}));
  BOOST_TEST(!contains(to_text(describe(hostile.get())), "\x1b"));
  BOOST_TEST(!contains(to_text(describe(hostile_san.get())), "\x1b"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
