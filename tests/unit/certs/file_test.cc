#include "certs/file.h"

#include <unistd.h>

#include <fstream>

#include "certs/key.h"
#include "certs/pem.h"
#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

std::size_t entries(const std::string& dir) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(dir)) ++n;
  return n;
}

struct Umask {
  explicit Umask(mode_t m) : old(::umask(m)) {}
  ~Umask() { ::umask(old); }
  mode_t old;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(file)

BOOST_AUTO_TEST_CASE(modes_do_not_depend_on_the_umask) {
  const TempDir dir;
  for (const mode_t mask : {0000, 0022, 0077, 0777}) {
    const Umask umask(mask);
    must(write_file(dir / "secret", "x", 0600, Overwrite::yes));
    must(write_file(dir / "public", "x", 0644, Overwrite::yes));
    BOOST_TEST(mode_of(dir / "secret") == 0600u);
    BOOST_TEST(mode_of(dir / "public") == 0644u);
  }
  BOOST_TEST(entries(dir.path()) == 2u);  // no temporary file left
}

BOOST_AUTO_TEST_CASE(an_existing_file_stays_unless_told) {
  const TempDir dir;
  must(write_file(dir / "f", "old", 0644, Overwrite::no));
  BOOST_TEST(contains(error_of(write_file(dir / "f", "new", 0644, Overwrite::no)), "f: already exists"));
  BOOST_TEST(must(read_file(dir / "f")) == "old");
  BOOST_TEST(entries(dir.path()) == 1u);
  must(write_file(dir / "f", "new", 0600, Overwrite::yes));
  BOOST_TEST(must(read_file(dir / "f")) == "new");
  BOOST_TEST(mode_of(dir / "f") == 0600u);
}

BOOST_AUTO_TEST_CASE(a_dangling_link_counts_as_existing) {
  const TempDir dir;
  BOOST_REQUIRE_EQUAL(::symlink("/nonexistent/x", (dir / "f").c_str()), 0);
  BOOST_TEST(!write_file(dir / "f", "new", 0600, Overwrite::no));
}

BOOST_AUTO_TEST_CASE(a_pair_is_written_whole_or_not_at_all) {
  const TempDir dir;
  must(write_file(dir / "c", "old", 0644, Overwrite::no));
  BOOST_TEST(!write_pair(dir / "k", "key", dir / "c", "cert", Overwrite::no));
  BOOST_TEST(!exists(dir / "k"));
  BOOST_TEST(!write_pair(dir / "k", "key", dir / "nowhere/c", "cert", Overwrite::no));
  BOOST_TEST(!exists(dir / "k"));
  must(write_pair(dir / "k2", "key", dir / "c2", "cert", Overwrite::no));
  BOOST_TEST(mode_of(dir / "k2") == 0600u);
}

BOOST_AUTO_TEST_CASE(directories_are_private) {
  const TempDir dir;
  const Umask umask(0022);
  must(make_private_dir(dir / "a/b/c"));
  for (const char* d : {"a", "a/b", "a/b/c"}) BOOST_TEST(mode_of(dir / d) == 0700u);
  must(make_private_dir(dir / "a/b/d/"));
  ::chmod((dir / "a").c_str(), 0755);
  must(make_private_dir(dir / "a"));
  BOOST_TEST(mode_of(dir / "a") == 0755u);  // not ours to change
  ::chmod((dir / "a").c_str(), 0777);
  BOOST_TEST(contains(error_of(make_private_dir(dir / "a")), "anyone may replace files"));
  ::chmod((dir / "a").c_str(), 01777);
  must(make_private_dir(dir / "a"));
  must(write_file(dir / "f", "x", 0600, Overwrite::no));
  BOOST_TEST(contains(error_of(make_private_dir(dir / "f")), "Not a directory"));
}

BOOST_AUTO_TEST_CASE(reading_names_file_and_cause) {
  const TempDir dir;
  BOOST_TEST(error_of(read_file(dir / "none")) == dir / "none" + ": No such file or directory");
  BOOST_TEST(contains(error_of(read_file(dir.path())), "Is a directory"));
  std::ofstream(dir / "big") << std::string(kMaxFileBytes + 1, 'x');
  BOOST_TEST(contains(error_of(read_file(dir / "big")), "larger than 1 MiB"));
}

BOOST_AUTO_TEST_CASE(keys_come_back_and_are_private) {
  const TempDir dir;
  for (const auto& [type, text] : {std::pair{KeyType::ecdsa_p256, "ECDSA P-256"}, {KeyType::rsa_2048, "RSA 2048"}}) {
    const PkeyPtr key = must(generate_key(type));
    must(save_key(key.get(), dir / "k.pem", Overwrite::yes));
    BOOST_TEST(mode_of(dir / "k.pem") == 0600u);
    BOOST_TEST(!key_file_exposed(dir / "k.pem"));
    const PkeyPtr back = must(load_key(dir / "k.pem"));
    BOOST_TEST(EVP_PKEY_eq(key.get(), back.get()) == 1);
    BOOST_TEST(describe_key(back.get()) == text);
  }
  ::chmod((dir / "k.pem").c_str(), 0640);
  BOOST_TEST(key_file_exposed(dir / "k.pem"));
  BOOST_TEST(!save_key(must(generate_key(KeyType::ecdsa_p256)).get(), dir / "k.pem", Overwrite::no));
}

BOOST_AUTO_TEST_CASE(key_types_have_names) {
  for (const KeyType t : {KeyType::ecdsa_p256, KeyType::rsa_2048, KeyType::rsa_4096}) {
    BOOST_CHECK(must(parse_key_type(to_string(t))) == t);
  }
  BOOST_TEST(contains(error_of(parse_key_type("dsa")), "use ecdsa-p256"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
