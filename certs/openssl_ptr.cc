#include "certs/openssl_ptr.h"

#include <openssl/err.h>

namespace twp::certs {

std::string openssl_reason(const char* otherwise) {
  const unsigned long code = ERR_peek_error();
  const char* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return text != nullptr ? text : otherwise;
}

X509Ptr share(X509* x) noexcept {
  if (x != nullptr) X509_up_ref(x);
  return X509Ptr(x);
}

PkeyPtr share(EVP_PKEY* k) noexcept {
  if (k != nullptr) EVP_PKEY_up_ref(k);
  return PkeyPtr(k);
}

}  // namespace twp::certs
