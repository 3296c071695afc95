// Leaf certificates: for twp-certgen leaf, for test origins, and minted on a worker by the intercepting proxy.
#pragma once

#include <cstdint>
#include <ctime>
#include <span>
#include <vector>

#include "base/result.h"
#include "certs/authority.h"
#include "certs/name.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

inline constexpr int kDefaultLeafDays = 90;
/// Clients refuse a life of more than 200 days; with the day of back-dating a leaf lives at most 198.
inline constexpr int kMaxLeafDays = 197;

/// Which side of a TLS connection may use the leaf: extendedKeyUsage (RFC 5280 §4.2.1.12).
enum class Purpose : std::uint8_t { server, client };

struct LeafOptions {
  int days = kDefaultLeafDays;  ///< 1 to kMaxLeafDays, counted from `now`; the start is one day back
  Purpose purpose = Purpose::server;
  std::time_t now = 0;  ///< seconds since 1970; 0 asks the clock
};

/// Signs leaves for one shared key pair with a CA. Everything that can be prepared is: a call of issue
/// parses nothing, fetches no algorithm and makes no key. Immutable after create, so one Issuer may be used by all
/// workers at once, and each may have its own.
class Issuer {
 public:
  /// Prepares a P-256 key for the leaves. Refuses a CA that has expired.
  static Result<Issuer> create(const Authority&);
  /// The same with a given leaf key.
  static Result<Issuer> create(const Authority&, PkeyPtr leaf_key);

  /// A leaf for `names`, at least one and at most kMaxNames:
  ///  - subjectAltName with every name, critical when the subject is empty (RFC 5280 §4.2.1.6);
  ///  - the common name is the first name, left out when longer than 64 characters (ub-common-name);
  ///  - authorityKeyIdentifier byte for byte the CA's subjectKeyIdentifier (§4.2.1.1);
  ///  - a random serial, basicConstraints without CA, keyUsage digitalSignature, extendedKeyUsage;
  ///  - it never outlives the CA.
  /// About 60 us with a P-256 CA. Thread-safe. Hand it to TLS with SSL_use_cert_and_key and leaf_key():
  /// an SSL_CTX for each host would cost more than the certificate.
  Result<X509Ptr> issue(std::span<const Name> names, const LeafOptions& = {}) const;

  EVP_PKEY* leaf_key() const noexcept { return leaf_key_.get(); }
  X509* ca() const noexcept { return chain_.front().get(); }
  /// What follows the leaf in the chain: the CA and, for an intermediate, its issuers.
  const X509Chain& chain() const noexcept { return chain_; }

 private:
  Issuer() = default;
  Result<void> prepare_extensions();

  X509Chain chain_;
  PkeyPtr ca_key_;
  PkeyPtr leaf_key_;
  PkeyPtr leaf_public_;    // its public half, quick to encode (see quick_public_key)
  MdPtr digest_;           // null: the key brings its own
  std::time_t ca_not_after_ = 0;
  // The same bytes in every leaf.
  std::vector<ExtensionPtr> common_;
  ExtensionPtr server_usage_;
  ExtensionPtr client_usage_;
};

}  // namespace twp::certs
