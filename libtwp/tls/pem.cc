#include "tls/pem.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

#include "base/ascii.h"
#include "net/address.h"

namespace twp {
namespace tls_detail {
namespace {

// Without a callback OpenSSL would ask for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) noexcept { return -1; }

Result<std::string> read_file(const std::string& file, const char* what) {
  const auto unreadable = [&](int err) {
    return fail(Fault::bad_config, "cannot read " + std::string(what) + " " + file + ": " + errno_text(err));
  };
  std::unique_ptr<std::FILE, Free<std::fclose>> f(std::fopen(file.c_str(), "re"));
  if (f == nullptr) return unreadable(errno);
  std::string text;
  char buf[16384];
  for (std::size_t n; (n = std::fread(buf, 1, sizeof buf, f.get())) != 0;) text.append(buf, n);
  if (std::ferror(f.get()) != 0) return unreadable(errno);
  return text;
}

BioPtr memory_bio(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// True when the error queue says only that no (further) PEM block was there; empties it either way.
bool only_end_of_file(std::string& reason) {
  const unsigned long e = ERR_peek_last_error();
  if (ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE) {
    ERR_clear_error();
    return true;
  }
  reason = take_error("bad PEM");
  return false;
}

std::string find_system_bundle() {
  if (const char* env = std::getenv("SSL_CERT_FILE"); env != nullptr && *env != '\0') return env;
  static constexpr const char* kUsual[] = {
      "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Gentoo
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL 7 and later
      "/etc/pki/tls/certs/ca-bundle.crt",                   // older Fedora and RHEL
      "/etc/ssl/ca-bundle.pem",                             // openSUSE
      "/etc/ssl/cert.pem",                                  // Alpine
      "/etc/pki/tls/cacert.pem",
  };
  struct stat st {};
  for (const char* path : kUsual)
    if (stat(path, &st) == 0) return path;
  return {};
}

std::string sha256(const std::string& text) {
  unsigned char md[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (EVP_Digest(text.data(), text.size(), md, &n, EVP_sha256(), nullptr) != 1) return {};
  return {reinterpret_cast<const char*>(md), n};
}

}  // namespace

void init_openssl() noexcept {
  static const bool done = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1;
  static_cast<void>(done);
}

std::string take_error(const char* otherwise) {
  const unsigned long e = ERR_peek_error();
  const char* reason = e == 0 ? nullptr : ERR_reason_error_string(e);
  std::string text = reason != nullptr ? reason : otherwise;
  // ERR_LIB_SYS carries an errno instead of a reason.
  if (reason == nullptr && e != 0 && ERR_SYSTEM_ERROR(e)) text = errno_text(ERR_GET_REASON(e));
  ERR_clear_error();
  return text;
}

Result<std::vector<X509Ptr>> parse_certificates(const std::string& text, const std::string& file) {
  init_openssl();
  std::vector<X509Ptr> out;
  const BioPtr bio = memory_bio(text);
  while (X509* x = PEM_read_bio_X509_AUX(bio.get(), nullptr, no_passphrase, nullptr)) out.emplace_back(x);
  std::string reason;
  if (!only_end_of_file(reason))
    return fail(Fault::bad_config, file + ": certificate " + std::to_string(out.size() + 1) + " is damaged: " + reason);
  if (out.empty()) return fail(Fault::bad_config, "no certificate in " + file + " (expected PEM, -----BEGIN CERTIFICATE-----)");
  return out;
}

Result<std::vector<X509Ptr>> load_certificates(const std::string& file) {
  const auto text = read_file(file, "certificate");
  if (!text) return std::unexpected(text.error());
  return parse_certificates(*text, file);
}

Result<KeyPtr> load_key(const std::string& file) {
  const auto text = read_file(file, "key");
  if (!text) return std::unexpected(text.error());
  return parse_key(*text, file);
}

Result<KeyPtr> parse_key(const std::string& text, const std::string& file) {
  init_openssl();
  const BioPtr bio = memory_bio(text);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (key != nullptr) {
    ERR_clear_error();
    return key;
  }
  if (text.find("BEGIN ENCRYPTED PRIVATE KEY") != std::string::npos || text.find("Proc-Type: 4,ENCRYPTED") != std::string::npos) {
    ERR_clear_error();
    return fail(Fault::bad_config, "key " + file + " is encrypted; give it without a passphrase, readable only by this user");
  }
  std::string reason;
  if (only_end_of_file(reason)) return fail(Fault::bad_config, "no private key in " + file + " (expected PEM, -----BEGIN PRIVATE KEY-----)");
  // A file without a key block ends in the decoder's words, which say nothing to a person.
  if (text.find("PRIVATE KEY-----") == std::string::npos)
    return fail(Fault::bad_config, "no private key in " + file + " (expected PEM, -----BEGIN PRIVATE KEY-----)");
  return fail(Fault::bad_config, "key " + file + " is damaged: " + reason);
}

Result<StoreHandle> load_trust(const std::string& given) {
  init_openssl();
  const std::string file = given.empty() ? find_system_bundle() : given;
  if (file.empty())
    return fail(Fault::bad_config, "no trust store of the system found: set SSL_CERT_FILE or name a CA file");
  auto text = read_file(file, "CA file");
  if (!text) return std::unexpected(text.error());
  std::string digest = sha256(*text);

  // A parsed system store costs about a megabyte: workers share it. Start-up and reload only, hence the lock.
  static std::mutex mutex;
  static std::map<std::pair<std::string, bool>, std::weak_ptr<X509_STORE>> known;
  const std::lock_guard lock(mutex);
  const std::pair<std::string, bool> key(digest, given.empty());
  if (auto store = known[key].lock()) return StoreHandle{store, digest};

  auto certificates = parse_certificates(*text, file);
  if (!certificates) return std::unexpected(certificates.error());
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  if (store == nullptr) return fail(Fault::out_of_memory, "out of memory");
  for (const X509Ptr& x : *certificates) X509_STORE_add_cert(store.get(), x.get());
  // Who names a file means exactly its certificates, be they roots, intermediates or the server's own.
  if (!given.empty()) X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  ERR_clear_error();
  std::erase_if(known, [](const auto& e) { return e.second.expired(); });
  known[key] = store;
  return StoreHandle{store, digest};
}

Identity::Identity(std::vector<X509Ptr> certificates, KeyPtr key)
    : leaf_(std::move(certificates.front())), key_(std::move(key)), chain_(sk_X509_new_null()) {
  for (std::size_t i = 1; i < certificates.size(); ++i) sk_X509_push(chain_.get(), certificates[i].release());
  auto* sans = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf_.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(sans); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(sans, i);
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
    const std::string_view octets(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                  static_cast<std::size_t>(type == GEN_DNS || type == GEN_IPADD ? ASN1_STRING_length(value) : 0));
    if (type == GEN_DNS) names_.push_back(lower(octets));
    if (type != GEN_IPADD) continue;
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET;
    v6.sin6_family = AF_INET6;
    if (octets.size() == 4) {
      octets.copy(reinterpret_cast<char*>(&v4.sin_addr), 4);
      names_.push_back(Address::from_sockaddr(reinterpret_cast<sockaddr*>(&v4)).ip());
    } else if (octets.size() == 16) {
      octets.copy(reinterpret_cast<char*>(&v6.sin6_addr), 16);
      names_.push_back(Address::from_sockaddr(reinterpret_cast<sockaddr*>(&v6)).ip());
    }
  }
  GENERAL_NAMES_free(sans);
  std::tm tm{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(leaf_.get()), &tm) == 1) expires_ = static_cast<std::int64_t>(timegm(&tm));
  ERR_clear_error();
}

}  // namespace tls_detail

namespace {

Result<std::shared_ptr<const TlsIdentity>> make_identity(Result<std::vector<tls_detail::X509Ptr>> certificates,
                                                         Result<tls_detail::KeyPtr> key, const std::string& cert_name,
                                                         const std::string& key_name) {
  if (!certificates) return std::unexpected(certificates.error());
  if (!key) return std::unexpected(key.error());
  if (X509_check_private_key(certificates->front().get(), key->get()) != 1) {
    ERR_clear_error();
    return fail(Fault::bad_config, "key " + key_name + " does not match certificate " + cert_name);
  }
  return std::make_shared<const tls_detail::Identity>(std::move(*certificates), std::move(*key));
}

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::load(const std::string& cert_file, const std::string& key_file) {
  return make_identity(tls_detail::load_certificates(cert_file), tls_detail::load_key(key_file), cert_file, key_file);
}

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::from_pem(const std::string& cert_pem, const std::string& key_pem,
                                                                 const std::string& name) {
  return make_identity(tls_detail::parse_certificates(cert_pem, name), tls_detail::parse_key(key_pem, name), name, name);
}

}  // namespace twp
