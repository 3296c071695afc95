// Certificates and keys in files. Every error is one line that names the file and the cause.
#pragma once

#include <string>

#include "base/result.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

/// The certificates of a PEM file in file order, at least one (RFC 7468 §5). Text around the blocks and
/// blocks of other kinds are skipped. Parsing costs about 50 us a certificate and takes locks inside
/// OpenSSL: start-up and reload only, never on a worker.
Result<X509Ptr> load_certificate(const std::string& path);
Result<X509Chain> load_chain(const std::string& path);

/// As load_chain, but also takes a single certificate in DER.
Result<X509Chain> load_chain_any(const std::string& path);

/// The first private key of a PEM file: PKCS #8, SEC 1 or PKCS #1. A key under a passphrase is an error
/// that says so; this never asks on the terminal.
Result<PkeyPtr> load_key(const std::string& path);

/// What load_chain and load_key do, for bytes in hand; `name` stands for the file in errors.
Result<X509Chain> parse_chain(const std::string& pem, const std::string& name);
Result<PkeyPtr> parse_key(const std::string& pem, const std::string& name);

struct CertAndKey {
  X509Chain chain;  ///< the leaf first, then what the peer needs to reach a root
  PkeyPtr key;
};

/// Loads both and checks that the key belongs to the first certificate and that each further
/// certificate issued the one before it.
Result<CertAndKey> load_cert_and_key(const std::string& cert_path, const std::string& key_path);

/// PEM of one certificate, or of several one after the other.
Result<std::string> to_pem(X509*);
Result<std::string> to_pem(const X509Chain&);

/// DER of one certificate (RFC 5280 §4.1).
Result<std::string> to_der(X509*);

}  // namespace twp::certs
