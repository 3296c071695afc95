#include "certs/extension.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <string>

namespace twp::certs {
namespace {

bool set_random_serial(X509* x) noexcept {
  std::array<unsigned char, 16> serial;
  if (RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) return false;
  // Top bit clear: positive. Next bit set: always 16 octets, so no leading zero to trim.
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);
  return ASN1_STRING_set(X509_get_serialNumber(x), serial.data(), static_cast<int>(serial.size())) == 1;
}

}  // namespace

std::unexpected<Error> openssl_fail(std::string_view doing) {
  return fail(Fault::internal, std::string(doing) + ": " + openssl_reason("unknown reason"));
}

Result<X509Ptr> blank_certificate() {
  X509Ptr x(X509_new());
  if (!x || X509_set_version(x.get(), X509_VERSION_3) != 1 || !set_random_serial(x.get())) {
    return openssl_fail("cannot start a certificate");
  }
  return x;
}

bool set_validity(X509* x, std::time_t not_before, std::time_t not_after) noexcept {
  return ASN1_TIME_set(X509_getm_notBefore(x), not_before) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(x), not_after) != nullptr;
}

bool add_subject(X509* x, int nid, std::string_view text) noexcept {
  return X509_NAME_add_entry_by_NID(X509_get_subject_name(x), nid, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool add_basic_constraints(X509* x, bool ca, int path_length) {
  const OpensslPtr<BASIC_CONSTRAINTS, BASIC_CONSTRAINTS_free> bc(BASIC_CONSTRAINTS_new());
  if (!bc) return false;
  bc->ca = ca ? 0xff : 0;
  if (path_length >= 0) {
    bc->pathlen = ASN1_INTEGER_new();
    if (bc->pathlen == nullptr || ASN1_INTEGER_set(bc->pathlen, path_length) != 1) return false;
  }
  return X509_add1_ext_i2d(x, NID_basic_constraints, bc.get(), 1, X509V3_ADD_APPEND) == 1;
}

bool add_key_usage(X509* x, std::uint32_t usage) {
  const OpensslPtr<ASN1_BIT_STRING, ASN1_BIT_STRING_free> bits(ASN1_BIT_STRING_new());
  if (!bits) return false;
  // KU_* number bit 0 of the BIT STRING as 0x80.
  for (int bit = 0; bit < 8; ++bit) {
    if ((usage & (0x80u >> bit)) != 0 && ASN1_BIT_STRING_set_bit(bits.get(), bit, 1) != 1) return false;
  }
  return X509_add1_ext_i2d(x, NID_key_usage, bits.get(), 1, X509V3_ADD_APPEND) == 1;
}

bool add_key_identifier(X509* x, const ASN1_OCTET_STRING* id) {
  // The encoder only reads, but its argument is not const.
  return X509_add1_ext_i2d(x, NID_subject_key_identifier, const_cast<ASN1_OCTET_STRING*>(id), 0,
                           X509V3_ADD_APPEND) == 1;
}

Result<OctetStringPtr> key_identifier(X509* with_public_key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  OctetStringPtr id(ASN1_OCTET_STRING_new());
  if (!id || X509_pubkey_digest(with_public_key, EVP_sha1(), digest.data(), &size) != 1 ||
      ASN1_OCTET_STRING_set(id.get(), digest.data(), static_cast<int>(size)) != 1) {
    return openssl_fail("cannot identify the public key");
  }
  return id;
}

MdPtr signature_digest(EVP_PKEY* key) {
  const int type = EVP_PKEY_get_base_id(key);
  if (type == EVP_PKEY_ED25519 || type == EVP_PKEY_ED448) return nullptr;
  return MdPtr(EVP_MD_fetch(nullptr, "SHA256", nullptr));
}

}  // namespace twp::certs
