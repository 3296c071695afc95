#include "certs/export.h"

#include <openssl/objects.h>
#include <openssl/pkcs12.h>

#include "certs/extension.h"

namespace twp::certs {
namespace {

constexpr int kIterations = 2048;  // what OpenSSL, NSS and Java write

}  // namespace

Result<std::string> to_p12(const X509Chain& chain, EVP_PKEY* key, const P12Options& options) {
  if (chain.empty()) return fail(Fault::bad_config, "nothing to export");
  const X509ViewStackPtr rest(sk_X509_new_null());
  bool good = rest != nullptr;
  // Without a key there is no "main" certificate: then all of them are plain entries.
  for (std::size_t i = 1; good && i < chain.size(); ++i) good = sk_X509_push(rest.get(), chain[i].get()) > 0;
  const int algorithm = options.legacy ? NID_pbe_WithSHA1And3_Key_TripleDES_CBC : NID_aes_256_cbc;
  const char* name = options.friendly_name.empty() ? nullptr : options.friendly_name.c_str();
  // mac_iter -1: the integrity code follows below, with a digest of our choice.
  const Pkcs12Ptr p12(good ? PKCS12_create(options.password.c_str(), name, key, chain.front().get(), rest.get(),
                                           algorithm, algorithm, kIterations, -1, 0)
                           : nullptr);
  if (!p12 || PKCS12_set_mac(p12.get(), options.password.c_str(), -1, nullptr, 0, kIterations,
                             options.legacy ? EVP_sha1() : EVP_sha256()) != 1) {
    return openssl_fail("cannot make the PKCS #12 container");
  }
  const int size = i2d_PKCS12(p12.get(), nullptr);
  if (size <= 0) return openssl_fail("cannot encode the PKCS #12 container");
  std::string out(static_cast<std::size_t>(size), '\0');
  auto* at = reinterpret_cast<unsigned char*>(out.data());
  i2d_PKCS12(p12.get(), &at);
  return out;
}

}  // namespace twp::certs
