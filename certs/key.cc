#include "certs/key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <sys/stat.h>

#include <array>

namespace twp::certs {

Result<KeyType> parse_key_type(std::string_view text) {
  for (const KeyType type : {KeyType::ecdsa_p256, KeyType::rsa_2048, KeyType::rsa_4096}) {
    if (text == to_string(type)) return type;
  }
  return fail(Fault::bad_config,
              "key type \"" + std::string(text) + "\": use ecdsa-p256, rsa-2048 or rsa-4096");
}

std::string_view to_string(KeyType type) noexcept {
  switch (type) {
    case KeyType::ecdsa_p256: return "ecdsa-p256";
    case KeyType::rsa_2048: return "rsa-2048";
    case KeyType::rsa_4096: return "rsa-4096";
  }
  return "unknown";
}

Result<PkeyPtr> generate_key(KeyType type) {
  PkeyPtr key;
  switch (type) {
    case KeyType::ecdsa_p256: key.reset(EVP_EC_gen("P-256")); break;
    case KeyType::rsa_2048: key.reset(EVP_RSA_gen(2048)); break;
    case KeyType::rsa_4096: key.reset(EVP_RSA_gen(4096)); break;
  }
  if (!key) return fail(Fault::internal, "cannot make a private key: " + openssl_reason("unknown reason"));
  return key;
}

Result<std::string> key_to_pem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(Fault::internal, "cannot encode the private key: " + openssl_reason("unknown reason"));
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<void> save_key(EVP_PKEY* key, const std::string& path, Overwrite overwrite) {
  auto pem = key_to_pem(key);
  if (!pem) return std::unexpected(pem.error());
  return write_file(path, *pem, 0600, overwrite);
}

std::string describe_key(EVP_PKEY* key) {
  if (key == nullptr) return "unknown";
  const int bits = EVP_PKEY_get_bits(key);
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA: return "RSA " + std::to_string(bits);
    case EVP_PKEY_RSA_PSS: return "RSA-PSS " + std::to_string(bits);
    case EVP_PKEY_EC: break;
    default: {
      const char* name = EVP_PKEY_get0_type_name(key);
      return name != nullptr ? name : "unknown";
    }
  }
  std::array<char, 80> group{};
  std::size_t length = 0;
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), &length) != 1) return "ECDSA";
  const char* nist = EC_curve_nid2nist(OBJ_txt2nid(group.data()));
  return std::string("ECDSA ") + (nist != nullptr ? nist : group.data());
}

bool key_file_exposed(const std::string& path) noexcept {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && (st.st_mode & 077) != 0;
}

}  // namespace twp::certs
