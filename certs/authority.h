// The certificate authority: one certificate and its key in a directory of the user's.
#pragma once

#include <string>

#include "base/result.h"
#include "certs/file.h"
#include "certs/key.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

inline constexpr int kDefaultCaDays = 3650;
inline constexpr int kMaxCaDays = 36500;

struct CaOptions {
  std::string name;                    ///< common name, UTF-8, at most 64 characters; empty: "twp CA " + 8 hex digits
  int days = kDefaultCaDays;           ///< 1 to kMaxCaDays, counted from now; the start is one day back
  KeyType key = KeyType::ecdsa_p256;
};

/// Where twp keeps its CA when nobody says otherwise: $XDG_DATA_HOME/twp, else ~/.local/share/twp.
/// An error when neither variable is set to an absolute path.
Result<std::string> default_directory();

class Authority {
 public:
  static constexpr const char* kCertFile = "ca.pem";
  static constexpr const char* kKeyFile = "ca-key.pem";

  /// Makes a CA and writes it to `dir`, which is made with mode 0700 if missing: ca-key.pem with mode
  /// 0600 and ca.pem with mode 0644. With Overwrite::no, an existing file of either name is an error and
  /// both stay as they are. Two programs that do this at once end up with one CA.
  ///
  /// The certificate (RFC 5280 §4.2): basicConstraints CA with pathLen 0, critical; keyUsage keyCertSign
  /// and cRLSign, critical; subjectKeyIdentifier.
  static Result<Authority> create(const std::string& dir, const CaOptions&, Overwrite);

  /// Loads ca.pem and ca-key.pem. ca.pem may be made by another tool and may be an intermediate
  /// followed by its issuers. Refused: no CA certificate, a CA that may not sign, a key of another
  /// certificate. An expired CA loads (so that it can be shown); Issuer refuses it.
  static Result<Authority> load(const std::string& dir);

  /// load, or create when `dir` has neither file.
  static Result<Authority> load_or_create(const std::string& dir, const CaOptions&);

  X509* certificate() const noexcept { return chain_.front().get(); }
  EVP_PKEY* key() const noexcept { return key_.get(); }
  /// The CA certificate, then its issuers if it is an intermediate.
  const X509Chain& chain() const noexcept { return chain_; }

  static std::string cert_path(const std::string& dir) { return join(dir, kCertFile); }
  static std::string key_path(const std::string& dir) { return join(dir, kKeyFile); }

 private:
  Authority(X509Chain chain, PkeyPtr key) : chain_(std::move(chain)), key_(std::move(key)) {}
  static Result<Authority> create_locked(const std::string& dir, const CaOptions&, Overwrite);
  static Result<Authority> load_locked(const std::string& dir);

  X509Chain chain_;
  PkeyPtr key_;
};

}  // namespace twp::certs
