// Owning pointers for OpenSSL's objects and its error queue as text. Private to tls/.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace twp::tls_detail {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* p) const noexcept {
    kFree(p);
  }
};
inline void free_chain(STACK_OF(X509)* chain) noexcept { sk_X509_pop_free(chain, X509_free); }

using BioPtr = std::unique_ptr<BIO, Free<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Free<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using ChainPtr = std::unique_ptr<STACK_OF(X509), Free<free_chain>>;
using SslPtr = std::unique_ptr<SSL, Free<SSL_free>>;
using SslCtxPtr = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, Free<SSL_SESSION_free>>;

/// Initialises OpenSSL once, without openssl.cnf: what a host's file says must not change what we offer.
void init_openssl() noexcept;

/// The reason of the first queued error ("wrong version number"), or `otherwise`; empties the queue.
std::string take_error(const char* otherwise);

}  // namespace twp::tls_detail
