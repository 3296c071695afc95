// What the CA and the leaves have in common when a certificate is put together. Internal to certs/.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/result.h"
#include "certs/openssl_ptr.h"

namespace twp::certs {

inline constexpr std::time_t kDaySeconds = 86400;

/// Fault::internal with `doing` and OpenSSL's reason.
std::unexpected<Error> openssl_fail(std::string_view doing);

/// An empty version 3 certificate with a fresh serial number: positive, 16 octets, 126 random bits
/// (RFC 5280 §4.1.2.2 asks for at most 20 octets, browsers for at least 64 random bits).
Result<X509Ptr> blank_certificate();

/// The validity, UTCTime to 2049 and GeneralizedTime from 2050 (RFC 5280 §4.1.2.5).
bool set_validity(X509*, std::time_t not_before, std::time_t not_after) noexcept;

/// Appends `text` to the subject as UTF8String.
bool add_subject(X509*, int nid, std::string_view text) noexcept;

/// basicConstraints; `path_length` < 0 leaves pathLenConstraint out.
bool add_basic_constraints(X509*, bool ca, int path_length);

/// keyUsage with the bits of `usage`: KU_DIGITAL_SIGNATURE and its relatives. Critical.
bool add_key_usage(X509*, std::uint32_t usage);

bool add_key_identifier(X509*, const ASN1_OCTET_STRING*);

/// The subject key identifier of a public key: SHA-1 of its bit string (RFC 5280 §4.2.1.2 method 1).
Result<OctetStringPtr> key_identifier(X509* with_public_key);

/// The digest for signatures by `key`: SHA-256, or none for keys that bring their own (Ed25519, Ed448).
MdPtr signature_digest(EVP_PKEY* key);

}  // namespace twp::certs
