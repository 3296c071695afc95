#include "certs/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pemerr.h>

#include "certs/file.h"

namespace twp::certs {
namespace {

/// Refuses every passphrase prompt and remembers that there was one.
int note_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

BioPtr read_only(const std::string& bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

bool looks_like_der(const std::string& bytes) {
  return bytes.size() > 2 && static_cast<unsigned char>(bytes[0]) == 0x30 &&
         static_cast<unsigned char>(bytes[1]) >= 0x80;
}

/// A hint that is true more often than not, for a file that holds nothing of the wanted kind.
std::string what_it_holds(const std::string& bytes) {
  if (bytes.empty()) return " (the file is empty)";
  if (bytes.find("PRIVATE KEY-----") != std::string::npos) return " (it holds a private key)";
  if (bytes.find("CERTIFICATE REQUEST-----") != std::string::npos) return " (it holds a signing request)";
  if (bytes.find("-----BEGIN CERTIFICATE-----") != std::string::npos) return " (it holds a certificate)";
  if (looks_like_der(bytes)) return " (it is binary: convert it to PEM with openssl x509 -inform der)";
  return "";
}

/// Whether the queue says no more than "no further PEM block".
bool only_end_of_file() noexcept {
  const unsigned long code = ERR_peek_last_error();
  return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

Result<CertAndKey> check_links(CertAndKey both, const std::string& cert_path) {
  for (std::size_t i = 1; i < both.chain.size(); ++i) {
    // A root that issued itself may follow; anything else must continue the chain (RFC 8446 §4.4.2).
    if (X509_check_issued(both.chain[i].get(), both.chain[i - 1].get()) == X509_V_OK) continue;
    ERR_clear_error();
    return fail(Fault::bad_config, cert_path + ": certificate " + std::to_string(i + 1) +
                                       " did not issue certificate " + std::to_string(i) +
                                       "; put the leaf first, then each issuer in turn");
  }
  return both;
}

}  // namespace

Result<X509Chain> parse_chain(const std::string& pem, const std::string& name) {
  ERR_clear_error();
  const BioPtr bio = read_only(pem);
  if (!bio) return fail(Fault::out_of_memory, name + ": out of memory");
  X509Chain chain;
  bool asked = false;
  while (X509Ptr x{PEM_read_bio_X509(bio.get(), nullptr, note_passphrase, &asked)}) {
    chain.push_back(std::move(x));
  }
  if (!only_end_of_file()) {
    return fail(Fault::bad_config, name + ": certificate " + std::to_string(chain.size() + 1) +
                                       " is damaged: " + openssl_reason("cannot be decoded"));
  }
  ERR_clear_error();
  if (chain.empty()) return fail(Fault::bad_config, name + ": no certificate found" + what_it_holds(pem));
  return chain;
}

Result<PkeyPtr> parse_key(const std::string& pem, const std::string& name) {
  ERR_clear_error();
  const BioPtr bio = read_only(pem);
  if (!bio) return fail(Fault::out_of_memory, name + ": out of memory");
  bool asked = false;
  PkeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, note_passphrase, &asked));
  if (key) {
    ERR_clear_error();
    return key;
  }
  if (asked) {
    ERR_clear_error();
    return fail(Fault::bad_config,
                name + ": the private key has a passphrase; write one without it with openssl pkey");
  }
  if (pem.find("PRIVATE KEY-----") == std::string::npos) {
    ERR_clear_error();
    return fail(Fault::bad_config, name + ": no private key found" + what_it_holds(pem));
  }
  return fail(Fault::bad_config, name + ": the private key is damaged: " + openssl_reason("cannot be decoded"));
}

Result<X509Chain> load_chain(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return parse_chain(*bytes, path);
}

Result<X509Ptr> load_certificate(const std::string& path) {
  auto chain = load_chain(path);
  if (!chain) return std::unexpected(chain.error());
  return std::move(chain->front());
}

Result<X509Chain> load_chain_any(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  if (!looks_like_der(*bytes)) return parse_chain(*bytes, path);
  const auto* at = reinterpret_cast<const unsigned char*>(bytes->data());
  X509Ptr x(d2i_X509(nullptr, &at, static_cast<long>(bytes->size())));
  if (!x) return fail(Fault::bad_config, path + ": not a certificate: " + openssl_reason("cannot be decoded"));
  X509Chain chain;
  chain.push_back(std::move(x));
  return chain;
}

Result<PkeyPtr> load_key(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return parse_key(*bytes, path);
}

Result<CertAndKey> load_cert_and_key(const std::string& cert_path, const std::string& key_path) {
  auto chain = load_chain(cert_path);
  if (!chain) return std::unexpected(chain.error());
  auto key = load_key(key_path);
  if (!key) return std::unexpected(key.error());
  if (X509_check_private_key(chain->front().get(), key->get()) != 1) {
    openssl_reason("");
    return fail(Fault::bad_config, key_path + " does not belong to " + cert_path);
  }
  return check_links({std::move(*chain), std::move(*key)}, cert_path);
}

Result<std::string> to_pem(X509* x) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), x) != 1) {
    return fail(Fault::internal, "cannot encode the certificate: " + openssl_reason("unknown reason"));
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> to_pem(const X509Chain& chain) {
  std::string out;
  for (const X509Ptr& x : chain) {
    auto one = to_pem(x.get());
    if (!one) return one;
    out += *one;
  }
  return out;
}

Result<std::string> to_der(X509* x) {
  const int size = i2d_X509(x, nullptr);
  if (size <= 0) {
    return fail(Fault::internal, "cannot encode the certificate: " + openssl_reason("unknown reason"));
  }
  std::string out(static_cast<std::size_t>(size), '\0');
  auto* at = reinterpret_cast<unsigned char*>(out.data());
  i2d_X509(x, &at);
  return out;
}

}  // namespace twp::certs
