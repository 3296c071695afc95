// Owners for OpenSSL's C objects, and the one way its error queue becomes text.
//
// Each alias is a std::unique_ptr whose deleter has no state, so an owner is one pointer wide.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

namespace twp::certs {

template <auto Free>
struct OpensslDelete {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};

template <class T, auto Free>
using OpensslPtr = std::unique_ptr<T, OpensslDelete<Free>>;

// BIO_free has a result nobody can act on; a plain function drops it.
inline void free_bio(BIO* bio) noexcept { BIO_free_all(bio); }
inline void free_x509_stack(STACK_OF(X509) * s) noexcept { sk_X509_free(s); }

using X509Ptr = OpensslPtr<X509, X509_free>;
using PkeyPtr = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
using BioPtr = OpensslPtr<BIO, free_bio>;
using MdPtr = OpensslPtr<EVP_MD, EVP_MD_free>;
using MdCtxPtr = OpensslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;
using ExtensionPtr = OpensslPtr<X509_EXTENSION, X509_EXTENSION_free>;
using OctetStringPtr = OpensslPtr<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using GeneralNamesPtr = OpensslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;
using GeneralNamePtr = OpensslPtr<GENERAL_NAME, GENERAL_NAME_free>;
using Pkcs12Ptr = OpensslPtr<PKCS12, PKCS12_free>;
/// A stack that borrows its certificates: freeing it frees no certificate.
using X509ViewStackPtr = OpensslPtr<STACK_OF(X509), free_x509_stack>;

using X509Chain = std::vector<X509Ptr>;

/// The oldest entry of this thread's OpenSSL error queue in words ("bad decrypt"), or `otherwise` when
/// it is empty. Empties the queue, so that a later TLS call does not report this failure as its own.
std::string openssl_reason(const char* otherwise);

/// One more owner of the same certificate or key. The count is atomic: safe from any thread.
X509Ptr share(X509* x) noexcept;
PkeyPtr share(EVP_PKEY* k) noexcept;

}  // namespace twp::certs
