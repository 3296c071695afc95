// PEM files: certificates, keys and trust stores, with errors a person can act on. Private to tls/; start-up only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tls/openssl_ptr.h"
#include "tls/tls_context.h"

namespace twp::tls_detail {

/// All certificates of a PEM file, in order; at least one.
Result<std::vector<X509Ptr>> load_certificates(const std::string& file);
/// The first private key of a PEM file. Encrypted keys are refused: a daemon has nobody to ask.
Result<KeyPtr> load_key(const std::string& file);
/// The same for text in hand; `name` stands for the file in errors.
Result<std::vector<X509Ptr>> parse_certificates(const std::string& text, const std::string& name);
Result<KeyPtr> parse_key(const std::string& text, const std::string& name);

struct StoreHandle {
  std::shared_ptr<X509_STORE> store;
  std::string digest;  ///< SHA-256 of the file: which anchors these are
};
/// Trust anchors of `file`, or of the system when it is empty. Parsed once per process and version of the file.
Result<StoreHandle> load_trust(const std::string& file);

class Identity final : public TlsIdentity {
 public:
  Identity(std::vector<X509Ptr> certificates, KeyPtr key);
  const std::vector<std::string>& names() const noexcept override { return names_; }
  std::int64_t expires() const noexcept override { return expires_; }
  X509* leaf() const noexcept { return leaf_.get(); }
  EVP_PKEY* key() const noexcept { return key_.get(); }
  STACK_OF(X509)* chain() const noexcept { return chain_.get(); }

 private:
  X509Ptr leaf_;
  KeyPtr key_;
  ChainPtr chain_;
  std::vector<std::string> names_;
  std::int64_t expires_ = 0;
};

/// The only implementation of TlsIdentity.
inline const Identity& as_identity(const TlsIdentity& id) noexcept { return static_cast<const Identity&>(id); }

}  // namespace twp::tls_detail
