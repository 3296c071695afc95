#include "certs/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "certs/file.h"
#include "certs/key.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

std::string encrypted(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, EVP_aes_256_cbc(), "secret", 6, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

struct Files : WithCa {
  Files() {
    const X509Ptr leaf = mint({"a.test"});
    cert = must(to_pem(leaf.get()));
    key = must(key_to_pem(issuer.leaf_key()));
    ca_cert = must(to_pem(ca.certificate()));
    put("cert.pem", cert + ca_cert);
    put("key.pem", key);
  }
  void put(const std::string& name, const std::string& text) const {
    must(write_file(dir / name, text, 0600, Overwrite::yes));
  }
  std::string cert, key, ca_cert;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pem, Files)

BOOST_AUTO_TEST_CASE(chain_and_key_load) {
  const CertAndKey both = must(load_cert_and_key(dir / "cert.pem", dir / "key.pem"));
  BOOST_TEST(both.chain.size() == 2u);
  BOOST_TEST(X509_cmp(both.chain[1].get(), ca.certificate()) == 0);
  BOOST_TEST(must(to_pem(both.chain)) == cert + ca_cert);
}

BOOST_AUTO_TEST_CASE(text_and_other_blocks_are_skipped) {
  put("mixed.pem", "# my server\nsubject=x\n" + key + "\n\n" + cert + "junk\n" + ca_cert + "the end");
  BOOST_TEST(must(load_chain(dir / "mixed.pem")).size() == 2u);
  must(load_cert_and_key(dir / "mixed.pem", dir / "mixed.pem"));
}

BOOST_AUTO_TEST_CASE(errors_name_the_file_and_the_cause) {
  put("empty", "");
  put("text", "hello\n");
  put("der", must(to_der(ca.certificate())));
  put("csr", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
  put("locked", encrypted(issuer.leaf_key()));
  const auto chain = [&](const char* name) { return error_of(load_chain(dir / name)); };
  const auto key_error = [&](const char* name) { return error_of(load_key(dir / name)); };
  BOOST_TEST(chain("none") == dir / "none" + ": No such file or directory");
  BOOST_TEST(chain("empty") == dir / "empty" + ": no certificate found (the file is empty)");
  BOOST_TEST(chain("text") == dir / "text" + ": no certificate found");
  BOOST_TEST(chain("key.pem") == dir / "key.pem" + ": no certificate found (it holds a private key)");
  BOOST_TEST(contains(chain("der"), "convert it to PEM"));
  BOOST_TEST(contains(chain("csr"), "it holds a signing request"));
  BOOST_TEST(key_error("cert.pem") == dir / "cert.pem" + ": no private key found (it holds a certificate)");
  BOOST_TEST(contains(key_error("locked"), "has a passphrase"));
  BOOST_TEST(contains(key_error("empty"), "the file is empty"));
}

BOOST_AUTO_TEST_CASE(damage_is_found_and_counted) {
  std::string bad = cert;
  bad[60] = bad[60] == 'A' ? 'B' : 'A';
  bad[61] = '!';
  put("second.pem", cert + bad);
  BOOST_TEST(contains(error_of(load_chain(dir / "second.pem")), "second.pem: certificate 2 is damaged: "));
  put("cut.pem", cert.substr(0, cert.size() / 2));
  BOOST_TEST(contains(error_of(load_chain(dir / "cut.pem")), "certificate 1 is damaged: "));
  put("cutkey.pem", key.substr(0, key.size() / 2));
  BOOST_TEST(contains(error_of(load_key(dir / "cutkey.pem")), "the private key is damaged: "));
}

BOOST_AUTO_TEST_CASE(a_key_of_another_certificate_is_refused) {
  put("other.pem", must(key_to_pem(must(generate_key(KeyType::ecdsa_p256)).get())));
  put("rsa.pem", must(key_to_pem(must(generate_key(KeyType::rsa_2048)).get())));
  for (const char* name : {"other.pem", "rsa.pem"}) {
    BOOST_TEST(error_of(load_cert_and_key(dir / "cert.pem", dir / name)) ==
               dir / name + " does not belong to " + dir / "cert.pem");
  }
}

BOOST_AUTO_TEST_CASE(a_chain_in_the_wrong_order_is_refused) {
  put("reversed.pem", ca_cert + cert);
  BOOST_TEST(contains(error_of(load_cert_and_key(dir / "reversed.pem", dir / "ca/ca-key.pem")),
                      "certificate 2 did not issue certificate 1"));
}

BOOST_AUTO_TEST_CASE(failures_leave_the_error_queue_empty) {
  for (const char* name : {"none", "key.pem", "cert.pem"}) {
    (void)load_chain(dir / name);
    (void)load_key(dir / name);
  }
  (void)load_cert_and_key(dir / "cert.pem", dir / "ca/ca-key.pem");
  BOOST_TEST(ERR_peek_error() == 0ul);
}

BOOST_AUTO_TEST_CASE(der_is_taken_where_asked) {
  put("x.der", must(to_der(ca.certificate())));
  BOOST_TEST(X509_cmp(must(load_chain_any(dir / "x.der")).front().get(), ca.certificate()) == 0);
  put("bad.der", must(to_der(ca.certificate())).substr(0, 200));
  BOOST_TEST(contains(error_of(load_chain_any(dir / "bad.der")), "not a certificate"));
  BOOST_TEST(must(load_chain_any(dir / "cert.pem")).size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
