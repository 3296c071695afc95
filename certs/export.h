// Certificates in the containers that other systems import.
#pragma once

#include <string>

#include "base/result.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

struct P12Options {
  std::string password;       ///< UTF-8; may be empty
  std::string friendly_name;  ///< what an import dialog shows; empty: none
  /// 3DES and SHA-1 instead of AES-256 and SHA-256, for importers that know nothing newer (Windows before
  /// 10 1709, macOS before 15, Android before 12).
  bool legacy = false;
};

/// A PKCS #12 container (RFC 7292) with the first certificate of `chain`, the rest of the chain, and
/// `key` unless it is null. Takes about a millisecond on purpose (key derivation).
Result<std::string> to_p12(const X509Chain& chain, EVP_PKEY* key, const P12Options&);

}  // namespace twp::certs
