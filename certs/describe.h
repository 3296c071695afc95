// A certificate in words, for `twp-certgen show` and for log lines.
#pragma once

#include <string>
#include <vector>

#include "certs/openssl_ptr.h"

namespace twp::certs {

struct Description {
  std::string subject;      ///< RFC 4514, UTF-8; "(empty)" when it has no parts
  std::string issuer;
  std::string serial;       ///< hexadecimal
  std::vector<std::string> names;  ///< "DNS:a.test", "IP:192.0.2.1"; other kinds by their kind
  std::string not_before;   ///< "2026-11-30 13:52:27 UTC"
  std::string not_after;
  std::string fingerprint;  ///< SHA-256 of the DER, "AB:CD:..."
  std::string key;          ///< "ECDSA P-256"
  bool ca = false;
  bool self_issued = false;
  std::string validity;     ///< "valid, 89 days left", "expired 3 days ago", "not valid before ..."
};

/// Control characters and bytes that are not text come out escaped: a certificate of a stranger
/// cannot write to the terminal.
Description describe(X509*);

/// describe as lines "Subject:      CN=a.test".
std::string to_text(const Description&);

/// SHA-256 of the DER in hexadecimal: lower case without colons ("abcd..."), 64 characters.
std::string fingerprint(X509*);

}  // namespace twp::certs
