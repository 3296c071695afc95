// Private keys: make, save, load, name.
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "certs/file.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

enum class KeyType : std::uint8_t { ecdsa_p256, rsa_2048, rsa_4096 };

/// "ecdsa-p256", "rsa-2048" or "rsa-4096"; anything else is Fault::bad_config.
Result<KeyType> parse_key_type(std::string_view text);
std::string_view to_string(KeyType) noexcept;

/// A new key. ECDSA takes about 20 us, RSA-2048 about 60 ms and RSA-4096 about a second, so an RSA key
/// is never made on an event loop. Thread-safe.
Result<PkeyPtr> generate_key(KeyType);

/// PKCS #8 PEM without a passphrase (RFC 5958, RFC 7468 §10).
Result<std::string> key_to_pem(EVP_PKEY*);

/// Writes key_to_pem to `path` with mode 0600, atomically.
Result<void> save_key(EVP_PKEY*, const std::string& path, Overwrite);

/// What kind of key this is, for people: "ECDSA P-256", "RSA 2048", "ED25519". Private or public.
std::string describe_key(EVP_PKEY*);

/// Whether `path` can be read or written by its group or by everybody. False when it cannot be looked at.
bool key_file_exposed(const std::string& path) noexcept;

}  // namespace twp::certs
