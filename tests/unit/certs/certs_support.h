// What the tests of certs/ share: a scratch folder, unwrapping, and verification as a client does it.
#pragma once

#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "certs/authority.h"
#include "certs/leaf.h"
#include "certs/name.h"
#include "certs/openssl_ptr.h"

namespace twp::certs::test {

class TempDir {
 public:
  TempDir() {
    std::string path = (std::filesystem::temp_directory_path() / "twp-certs-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~TempDir() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The value, or a failed test that says why there is none.
template <class T>
T must(Result<T> r) {
  if (!r) BOOST_FAIL(r.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

template <class T>
std::string error_of(const Result<T>& r) {
  return r ? "(no error)" : r.error().what;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline unsigned mode_of(const std::string& path) {
  struct stat st {};
  BOOST_REQUIRE_EQUAL(::stat(path.c_str(), &st), 0);
  return st.st_mode & 07777;
}

inline std::vector<Name> names(std::vector<std::string> texts) { return must(parse_names(texts)); }

using StorePtr = OpensslPtr<X509_STORE, X509_STORE_free>;
using StoreCtxPtr = OpensslPtr<X509_STORE_CTX, X509_STORE_CTX_free>;

/// X509_V_OK, or why a strict client that trusts `ca` refuses `leaf` for `host` (name or address; empty: any).
inline int verify(X509* leaf, X509* ca, const std::string& host, bool ip = false,
                  int purpose = X509_PURPOSE_SSL_SERVER, std::time_t at = 0) {
  const StorePtr store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), ca);
  const StoreCtxPtr ctx(X509_STORE_CTX_new());
  X509_STORE_CTX_init(ctx.get(), store.get(), leaf, nullptr);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(ctx.get());
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
  X509_VERIFY_PARAM_set_purpose(param, purpose);
  if (at != 0) X509_VERIFY_PARAM_set_time(param, at);
  if (!host.empty() && ip) X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str());
  if (!host.empty() && !ip) X509_VERIFY_PARAM_set1_host(param, host.c_str(), 0);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return X509_verify_cert(ctx.get()) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx.get());
}

/// A CA in a scratch folder and an issuer over it.
struct WithCa {
  TempDir dir;
  Authority ca = must(Authority::create(dir / "ca", {}, Overwrite::no));
  Issuer issuer = must(Issuer::create(ca));

  X509Ptr mint(std::vector<std::string> hosts, LeafOptions options = {}) const {
    return must(issuer.issue(names(std::move(hosts)), options));
  }
};

}  // namespace twp::certs::test
