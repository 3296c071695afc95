#include "support/test_pki.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "certs/authority.h"
#include "certs/key.h"
#include "certs/leaf.h"
#include "certs/pem.h"

namespace twp::test {
namespace {

[[noreturn]] void fatal(const std::string& what) {
  std::fprintf(stderr, "test certificates: %s\n", what.c_str());
  std::abort();
}

template <class T>
T must(Result<T> r) {
  if (!r) fatal(r.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

struct Made : TestPki {
  Made() {
    char name[] = "/tmp/twp-test-pki-XXXXXX";
    if (mkdtemp(name) == nullptr) fatal("cannot make a directory");
    dir = name;
    ca = dir + "/ca.pem";
    cert = dir + "/leaf.pem";
    key = dir + "/leaf-key.pem";
    const auto authority = must(certs::Authority::create(dir, {}, certs::Overwrite::no));
    const auto issuer = must(certs::Issuer::create(authority));
    const std::vector<certs::Name> names{must(certs::parse_name("127.0.0.1")),
                                         must(certs::parse_name("a.test"))};
    const auto leaf = must(issuer.issue(names));
    must(certs::write_pair(key, must(certs::key_to_pem(issuer.leaf_key())), cert,
                           must(certs::to_pem(leaf.get())), certs::Overwrite::no));
  }
  ~Made() {
    std::error_code ignored;
    std::filesystem::remove_all(dir, ignored);
  }
  std::string dir;
};

}  // namespace

const TestPki& test_pki() {
  static const Made made;
  return made;
}

}  // namespace twp::test
