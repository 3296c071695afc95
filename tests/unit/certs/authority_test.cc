#include "certs/authority.h"

#include <unistd.h>

#include <set>
#include <thread>

#include "certs/describe.h"
#include "certs/pem.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

struct Env {
  Env(const char* n, const char* value) : name(n) {
    if (const char* v = ::getenv(n)) old = v;
    if (value != nullptr) {
      ::setenv(n, value, 1);
    } else {
      ::unsetenv(n);
    }
  }
  ~Env() { old.empty() ? ::unsetenv(name) : ::setenv(name, old.c_str(), 1); }
  const char* name;
  std::string old;
};

int days_between(const ASN1_TIME* from, const ASN1_TIME* to) {
  int days = 0, seconds = 0;
  BOOST_REQUIRE_EQUAL(ASN1_TIME_diff(&days, &seconds, from, to), 1);
  BOOST_TEST(seconds == 0);
  return days;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(authority)

BOOST_AUTO_TEST_CASE(a_new_ca_is_what_rfc_5280_asks_for) {
  const TempDir dir;
  const Authority ca = must(Authority::create(dir / "x/ca", {}, Overwrite::no));
  X509* x = ca.certificate();
  BOOST_TEST(X509_check_ca(x) == 1);
  BOOST_TEST(X509_get_pathlen(x) == 0);
  BOOST_TEST(X509_get_key_usage(x) == static_cast<unsigned>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  for (const int nid : {NID_basic_constraints, NID_key_usage}) {
    BOOST_TEST(X509_EXTENSION_get_critical(X509_get_ext(x, X509_get_ext_by_NID(x, nid, -1))) == 1);
  }
  BOOST_REQUIRE(X509_get0_subject_key_id(x) != nullptr);
  BOOST_TEST(ASN1_STRING_length(X509_get0_subject_key_id(x)) == 20);
  BOOST_TEST(days_between(X509_get0_notBefore(x), X509_get0_notAfter(x)) == kDefaultCaDays + 1);
  BOOST_TEST(describe_key(ca.key()) == "ECDSA P-256");
  BOOST_TEST(verify(x, x, "", false, X509_PURPOSE_ANY) == X509_V_OK);
  BOOST_TEST(mode_of(dir / "x/ca") == 0700u);
  BOOST_TEST(mode_of(dir / "x/ca/ca-key.pem") == 0600u);
  BOOST_TEST(mode_of(dir / "x/ca/ca.pem") == 0644u);
}

BOOST_AUTO_TEST_CASE(it_loads_as_it_was_made) {
  const TempDir dir;
  const Authority made = must(Authority::create(dir.path(), {"My CA ü", 30, KeyType::rsa_2048}, Overwrite::no));
  const Authority loaded = must(Authority::load(dir.path()));
  BOOST_TEST(X509_cmp(made.certificate(), loaded.certificate()) == 0);
  BOOST_TEST(EVP_PKEY_eq(made.key(), loaded.key()) == 1);
  BOOST_TEST(describe(loaded.certificate()).subject == "CN=My CA ü,O=twp");
}

BOOST_AUTO_TEST_CASE(years_beyond_2049_are_encoded) {
  const TempDir dir;
  const Authority ca = must(Authority::create(dir.path(), {"", kMaxCaDays, KeyType::ecdsa_p256}, Overwrite::no));
  BOOST_TEST(ASN1_STRING_type(X509_get0_notBefore(ca.certificate())) == V_ASN1_UTCTIME);
  BOOST_TEST(ASN1_STRING_type(X509_get0_notAfter(ca.certificate())) == V_ASN1_GENERALIZEDTIME);
  BOOST_TEST(verify(ca.certificate(), ca.certificate(), "", false, X509_PURPOSE_ANY) == X509_V_OK);
}

BOOST_AUTO_TEST_CASE(a_ca_is_never_overwritten_without_force) {
  const TempDir dir;
  const Authority first = must(Authority::create(dir.path(), {}, Overwrite::no));
  BOOST_TEST(contains(error_of(Authority::create(dir.path(), {}, Overwrite::no)), "there is a CA already"));
  BOOST_TEST(X509_cmp(must(Authority::load(dir.path())).certificate(), first.certificate()) == 0);
  // Either file alone is reason enough.
  ::unlink(Authority::cert_path(dir.path()).c_str());
  BOOST_TEST(contains(error_of(Authority::create(dir.path(), {}, Overwrite::no)), "ca-key.pem"));
  const Authority second = must(Authority::create(dir.path(), {}, Overwrite::yes));
  BOOST_TEST(X509_cmp(second.certificate(), first.certificate()) != 0);
  must(Authority::load(dir.path()));
}

BOOST_AUTO_TEST_CASE(each_ca_has_its_own_name_and_serial) {
  const TempDir dir;
  std::set<std::string> subjects, serials;
  for (int i = 0; i < 8; ++i) {
    const Description d = describe(must(Authority::create(dir.path(), {}, Overwrite::yes)).certificate());
    subjects.insert(d.subject);
    serials.insert(d.serial);
  }
  BOOST_TEST(subjects.size() == 8u);
  BOOST_TEST(serials.size() == 8u);
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused_before_anything_is_written) {
  const TempDir dir;
  const auto error = [&](CaOptions o) { return error_of(Authority::create(dir / "ca", o, Overwrite::no)); };
  BOOST_TEST(contains(error({"", 0, KeyType::ecdsa_p256}), "1 to 36500 days"));
  BOOST_TEST(contains(error({"", kMaxCaDays + 1, KeyType::ecdsa_p256}), "1 to 36500 days"));
  BOOST_TEST(contains(error({std::string(65, 'x'), 1, KeyType::ecdsa_p256}), "64 are allowed"));
  BOOST_TEST(contains(error({"\xff", 1, KeyType::ecdsa_p256}), "not valid UTF-8"));
  BOOST_TEST(contains(error({"a\nb", 1, KeyType::ecdsa_p256}), "control characters"));
  BOOST_TEST(!exists(dir / "ca"));
  std::string umlauts;
  for (int i = 0; i < 64; ++i) umlauts += "ü";  // 64 characters in 128 bytes
  must(Authority::create(dir / "ca", {umlauts, 1, KeyType::ecdsa_p256}, Overwrite::no));
}

BOOST_FIXTURE_TEST_CASE(what_is_no_ca_is_refused, WithCa) {
  const X509Ptr leaf = mint({"a.test"});
  const TempDir other;
  BOOST_TEST(contains(error_of(Authority::load(other.path())), "no CA here"));
  must(write_pair(other / "ca-key.pem", must(key_to_pem(issuer.leaf_key())), other / "ca.pem",
                  must(to_pem(leaf.get())), Overwrite::no));
  BOOST_TEST(contains(error_of(Authority::load(other.path())), "not a CA certificate"));
  must(save_key(issuer.leaf_key(), dir / "ca/ca-key.pem", Overwrite::yes));
  BOOST_TEST(contains(error_of(Authority::load(dir / "ca")), "does not belong to"));
}

BOOST_AUTO_TEST_CASE(starting_together_makes_one_ca) {
  const TempDir dir;
  std::vector<std::string> seen(6);
  std::vector<std::thread> threads;
  for (std::string& slot : seen) {
    threads.emplace_back([&slot, &dir] {
      const auto ca = Authority::load_or_create(dir / "ca", {});
      slot = ca ? fingerprint(ca->certificate()) : ca.error().what;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& slot : seen) BOOST_TEST(slot == seen.front());
  BOOST_TEST(seen.front().size() == 64u);
}

BOOST_AUTO_TEST_CASE(the_default_directory_follows_the_environment) {
  const Env home("HOME", "/home/x");
  {
    const Env data("XDG_DATA_HOME", "/data");
    BOOST_TEST(must(default_directory()) == "/data/twp");
  }
  {
    const Env data("XDG_DATA_HOME", "relative");
    BOOST_TEST(must(default_directory()) == "/home/x/.local/share/twp");
  }
  const Env data("XDG_DATA_HOME", nullptr);
  const Env none("HOME", nullptr);
  BOOST_TEST(contains(error_of(default_directory()), "neither XDG_DATA_HOME nor HOME"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
