#include "certs/authority.h"

#include <cstdlib>
#include <ctime>

#include "certs/extension.h"
#include "certs/idna.h"
#include "certs/pem.h"

namespace twp::certs {
namespace {

constexpr std::size_t kMaxCommonName = 64;  // ub-common-name, RFC 5280 App. A.1

Result<void> check(const CaOptions& options) {
  if (options.days < 1 || options.days > kMaxCaDays) {
    return fail(Fault::bad_config, "a CA lasts 1 to " + std::to_string(kMaxCaDays) + " days, not " +
                                       std::to_string(options.days));
  }
  auto points = decode_utf8(options.name);
  if (!points) return fail(Fault::bad_config, "CA name: " + points.error().what);
  if (points->size() > kMaxCommonName) {
    return fail(Fault::bad_config, "CA name: " + std::to_string(points->size()) +
                                       " characters; 64 are allowed (RFC 5280 ub-common-name)");
  }
  for (const char32_t c : *points) {
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
      return fail(Fault::bad_config, "CA name: control characters are not allowed");
    }
  }
  return {};
}

/// A name of its own for each CA: stores and verifiers confuse two CAs with one subject and different keys.
std::string default_name(const ASN1_OCTET_STRING* id) {
  std::string name = "twp CA ";
  const unsigned char* bytes = ASN1_STRING_get0_data(id);
  for (int i = 0; i < 4 && i < ASN1_STRING_length(id); ++i) {
    name += "0123456789abcdef"[bytes[i] >> 4];
    name += "0123456789abcdef"[bytes[i] & 15];
  }
  return name;
}

Result<X509Ptr> self_signed(EVP_PKEY* key, const CaOptions& options) {
  auto made = blank_certificate();
  if (!made) return made;
  X509* x = made->get();
  const std::time_t now = std::time(nullptr);
  if (X509_set_pubkey(x, key) != 1) return openssl_fail("cannot put the key into the CA certificate");
  auto id = key_identifier(x);
  if (!id) return std::unexpected(id.error());
  const bool good =
      // One day back, as the leaves are: a client whose clock is behind must not see a CA from the future.
      set_validity(x, now - kDaySeconds, now + options.days * kDaySeconds) &&
      add_subject(x, NID_organizationName, "twp") &&
      add_subject(x, NID_commonName, options.name.empty() ? default_name(id->get()) : options.name) &&
      X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 && add_basic_constraints(x, true, 0) &&
      add_key_usage(x, KU_KEY_CERT_SIGN | KU_CRL_SIGN) && add_key_identifier(x, id->get());
  if (!good || X509_sign(x, key, signature_digest(key).get()) <= 0) {
    return openssl_fail("cannot make the CA certificate");
  }
  return made;
}

std::string absolute_env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

Result<std::string> default_directory() {
  // The base directory specification says to ignore relative values.
  if (const std::string data = absolute_env("XDG_DATA_HOME"); !data.empty()) return join(data, "twp");
  if (const std::string home = absolute_env("HOME"); !home.empty()) return join(home, ".local/share/twp");
  return fail(Fault::bad_config, "neither XDG_DATA_HOME nor HOME is set: name the CA's directory");
}

Result<Authority> Authority::create(const std::string& dir, const CaOptions& options, Overwrite overwrite) {
  if (auto r = check(options); !r) return std::unexpected(r.error());
  if (auto r = make_private_dir(dir); !r) return std::unexpected(r.error());
  const DirLock lock(dir, DirLock::Mode::exclusive);
  return create_locked(dir, options, overwrite);
}

Result<Authority> Authority::create_locked(const std::string& dir, const CaOptions& options, Overwrite overwrite) {
  if (overwrite == Overwrite::no && (exists(key_path(dir)) || exists(cert_path(dir)))) {
    return fail(Fault::io_error, dir + ": there is a CA already (" +
                                     (exists(cert_path(dir)) ? kCertFile : kKeyFile) +
                                     "); --force replaces it, but untrust it first");
  }
  auto key = generate_key(options.key);
  if (!key) return std::unexpected(key.error());
  auto x = self_signed(key->get(), options);
  if (!x) return std::unexpected(x.error());
  auto key_pem = key_to_pem(key->get());
  if (!key_pem) return std::unexpected(key_pem.error());
  auto cert_pem = to_pem(x->get());
  if (!cert_pem) return std::unexpected(cert_pem.error());
  if (auto r = write_pair(key_path(dir), *key_pem, cert_path(dir), *cert_pem, overwrite); !r) {
    return std::unexpected(r.error());
  }
  X509Chain chain;
  chain.push_back(std::move(*x));
  return Authority(std::move(chain), std::move(*key));
}

Result<Authority> Authority::load(const std::string& dir) {
  const DirLock lock(dir, DirLock::Mode::shared);
  return load_locked(dir);
}

Result<Authority> Authority::load_locked(const std::string& dir) {
  const std::string path = cert_path(dir);
  if (!exists(path) && !exists(key_path(dir))) {
    return fail(Fault::bad_config, dir + ": no CA here; make one with twp-certgen ca --out " + dir);
  }
  auto both = load_cert_and_key(path, key_path(dir));
  if (!both) return std::unexpected(both.error());
  X509* x = both->chain.front().get();
  if ((X509_get_extension_flags(x) & EXFLAG_CA) == 0) {
    return fail(Fault::bad_config, path + ": not a CA certificate (basicConstraints says so or is missing)");
  }
  // UINT32_MAX when there is no keyUsage: everything is allowed.
  if ((X509_get_key_usage(x) & KU_KEY_CERT_SIGN) == 0) {
    return fail(Fault::bad_config, path + ": this CA may not sign certificates (keyUsage lacks keyCertSign)");
  }
  return Authority(std::move(both->chain), std::move(both->key));
}

Result<Authority> Authority::load_or_create(const std::string& dir, const CaOptions& options) {
  if (auto r = check(options); !r) return std::unexpected(r.error());
  if (auto r = make_private_dir(dir); !r) return std::unexpected(r.error());
  const DirLock lock(dir, DirLock::Mode::exclusive);
  if (exists(cert_path(dir)) || exists(key_path(dir))) return load_locked(dir);
  return create_locked(dir, options, Overwrite::no);
}

}  // namespace twp::certs
