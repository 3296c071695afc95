#include "certs/leaf.h"

#include <algorithm>
#include <string>

#include "certs/extension.h"
#include "certs/key.h"

namespace twp::certs {
namespace {

constexpr std::size_t kMaxCommonName = 64;  // ub-common-name, RFC 5280 App. A.1

std::time_t to_time(const ASN1_TIME* t) {
  std::tm tm{};
  return ASN1_TIME_to_tm(t, &tm) == 1 ? ::timegm(&tm) : 0;
}

GeneralNamePtr general_name(const Name& name) {
  GeneralNamePtr gn(GENERAL_NAME_new());
  const bool ip = name.kind == Name::Kind::ip;
  ASN1_STRING* value = ip ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  const std::string& bytes = ip ? name.octets : name.text;
  if (!gn || value == nullptr || ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    ASN1_STRING_free(value);
    return nullptr;
  }
  GENERAL_NAME_set0_value(gn.get(), ip ? GEN_IPADD : GEN_DNS, value);
  return gn;
}

bool add_alt_names(X509* x, std::span<const Name> names, bool critical) {
  const GeneralNamesPtr all(GENERAL_NAMES_new());
  if (!all) return false;
  for (const Name& name : names) {
    GeneralNamePtr gn = general_name(name);
    if (!gn || sk_GENERAL_NAME_push(all.get(), gn.get()) <= 0) return false;
    gn.release();
  }
  return X509_add1_ext_i2d(x, NID_subject_alt_name, all.get(), critical ? 1 : 0, X509V3_ADD_APPEND) == 1;
}

bool add_authority_identifier(X509* x, const ASN1_OCTET_STRING* id) {
  const OpensslPtr<AUTHORITY_KEYID, AUTHORITY_KEYID_free> aki(AUTHORITY_KEYID_new());
  if (!aki) return false;
  aki->keyid = ASN1_OCTET_STRING_dup(id);
  return aki->keyid != nullptr &&
         X509_add1_ext_i2d(x, NID_authority_key_identifier, aki.get(), 0, X509V3_ADD_APPEND) == 1;
}

bool add_purpose(X509* x, int nid) {
  const OpensslPtr<EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free> eku(EXTENDED_KEY_USAGE_new());
  // OBJ_nid2obj gives a static object: the stack's free leaves it alone.
  return eku && sk_ASN1_OBJECT_push(eku.get(), OBJ_nid2obj(nid)) > 0 &&
         X509_add1_ext_i2d(x, NID_ext_key_usage, eku.get(), 0, X509V3_ADD_APPEND) == 1;
}

/// Takes the last extension off `x`.
ExtensionPtr take_last(X509* x) { return ExtensionPtr(X509_delete_ext(x, X509_get_ext_count(x) - 1)); }

/// The public half of an EC key in a form that X509_set_pubkey encodes directly. For a key of a provider it
/// looks up an encoder each time, which costs as much as the signature. What d2i_PublicKey returns carries its own
/// encoding. Should a later OpenSSL change that, only the speed is lost; on any failure the key itself serves.
PkeyPtr quick_public_key(EVP_PKEY* key) {
  unsigned char* encoded = nullptr;
  const int size = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? i2d_PublicKey(key, &encoded) : 0;
  EVP_PKEY* out = size > 0 ? EVP_PKEY_new() : nullptr;
  if (out != nullptr && EVP_PKEY_copy_parameters(out, key) == 1) {
    const unsigned char* at = encoded;
    if (d2i_PublicKey(EVP_PKEY_EC, &out, &at, size) == nullptr || EVP_PKEY_eq(out, key) != 1) {
      EVP_PKEY_free(out);
      out = nullptr;
    }
  } else {
    EVP_PKEY_free(out);
    out = nullptr;
  }
  OPENSSL_free(encoded);
  openssl_reason("");
  return out != nullptr ? PkeyPtr(out) : share(key);
}

Result<void> check(std::span<const Name> names, const LeafOptions& options) {
  if (names.empty() || names.size() > kMaxNames) {
    return fail(Fault::bad_config, "a certificate carries 1 to 256 names, not " + std::to_string(names.size()));
  }
  if (options.days < 1 || options.days > kMaxLeafDays) {
    return fail(Fault::bad_config, "a leaf lasts 1 to " + std::to_string(kMaxLeafDays) +
                                       " days (clients refuse more than 200), not " + std::to_string(options.days));
  }
  return {};
}

}  // namespace

Result<Issuer> Issuer::create(const Authority& authority) {
  auto key = generate_key(KeyType::ecdsa_p256);
  if (!key) return std::unexpected(key.error());
  return create(authority, std::move(*key));
}

Result<Issuer> Issuer::create(const Authority& authority, PkeyPtr leaf_key) {
  Issuer issuer;
  for (const X509Ptr& x : authority.chain()) issuer.chain_.push_back(share(x.get()));
  issuer.ca_key_ = share(authority.key());
  issuer.leaf_key_ = std::move(leaf_key);
  issuer.leaf_public_ = quick_public_key(issuer.leaf_key_.get());
  issuer.digest_ = signature_digest(issuer.ca_key_.get());
  issuer.ca_not_after_ = to_time(X509_get0_notAfter(issuer.ca()));
  if (issuer.ca_not_after_ <= std::time(nullptr)) {
    return fail(Fault::bad_config, "the CA has expired; make a new one with twp-certgen ca --force and trust it");
  }
  if (auto r = issuer.prepare_extensions(); !r) return std::unexpected(r.error());
  return issuer;
}

Result<void> Issuer::prepare_extensions() {
  const X509Ptr scratch(X509_new());
  X509* x = scratch.get();
  if (x == nullptr || X509_set_pubkey(x, leaf_key_.get()) != 1) return openssl_fail("cannot use the leaf key");
  auto leaf_id = key_identifier(x);
  if (!leaf_id) return std::unexpected(leaf_id.error());
  const ASN1_OCTET_STRING* ca_id = X509_get0_subject_key_id(ca());
  OctetStringPtr computed;
  if (ca_id == nullptr) {  // a CA of another tool without SKI: verifiers then accept what its key hashes to
    auto id = key_identifier(ca());
    if (!id) return std::unexpected(id.error());
    computed = std::move(*id);
    ca_id = computed.get();
  }
  // RSA key exchange of TLS 1.2 encrypts with the leaf's key; ECDSA only ever signs.
  const bool rsa = EVP_PKEY_get_base_id(leaf_key_.get()) == EVP_PKEY_RSA;
  const std::uint32_t usage = KU_DIGITAL_SIGNATURE | (rsa ? KU_KEY_ENCIPHERMENT : 0);
  const auto keep = [&](bool added) {
    if (added) common_.push_back(take_last(x));
    return added;
  };
  if (!keep(add_basic_constraints(x, false, -1)) || !keep(add_key_usage(x, usage)) ||
      !keep(add_key_identifier(x, leaf_id->get())) || !keep(add_authority_identifier(x, ca_id)) ||
      !add_purpose(x, NID_server_auth)) {
    return openssl_fail("cannot prepare the leaf's extensions");
  }
  server_usage_ = take_last(x);
  if (!add_purpose(x, NID_client_auth)) return openssl_fail("cannot prepare the leaf's extensions");
  client_usage_ = take_last(x);
  return {};
}

Result<X509Ptr> Issuer::issue(std::span<const Name> names, const LeafOptions& options) const {
  if (auto r = check(names, options); !r) return std::unexpected(r.error());
  const std::time_t now = options.now != 0 ? options.now : std::time(nullptr);
  const std::time_t end = std::min<std::time_t>(now + options.days * kDaySeconds, ca_not_after_);
  if (end <= now) return fail(Fault::bad_config, "the CA has expired");
  auto made = blank_certificate();
  if (!made) return made;
  X509* x = made->get();
  const bool common_name = names.front().text.size() <= kMaxCommonName;
  bool good = set_validity(x, now - kDaySeconds, end) && X509_set_pubkey(x, leaf_public_.get()) == 1 &&
              X509_set_issuer_name(x, X509_get_subject_name(ca())) == 1;
  if (common_name) good = good && add_subject(x, NID_commonName, names.front().text);
  for (const ExtensionPtr& ext : common_) good = good && X509_add_ext(x, ext.get(), -1) == 1;
  const ExtensionPtr& usage = options.purpose == Purpose::server ? server_usage_ : client_usage_;
  good = good && X509_add_ext(x, usage.get(), -1) == 1 && add_alt_names(x, names, !common_name);
  if (!good || X509_sign(x, ca_key_.get(), digest_.get()) <= 0) return openssl_fail("cannot issue a certificate");
  return made;
}

}  // namespace twp::certs
