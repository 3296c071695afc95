// TlsContext: what TLS connections of one kind share, per worker: an SSL_CTX and its policy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

typedef struct ssl_ctx_st SSL_CTX;

namespace twp {

/// A certificate chain and its key, parsed once and shared (read-only) by all workers' contexts.
class TlsIdentity {
 public:
  /// PEM files. Errors are one line naming file and cause: unreadable, no certificate in it, key does not match.
  static Result<std::shared_ptr<const TlsIdentity>> load(const std::string& cert_file, const std::string& key_file);
  /// The same for PEM texts in hand, so that an issued key never reaches a disk; `name` stands for the files in errors.
  static Result<std::shared_ptr<const TlsIdentity>> from_pem(const std::string& cert_pem, const std::string& key_pem,
                                                             const std::string& name);
  virtual ~TlsIdentity() = default;
  /// DNS names and IPs the leaf is valid for.
  virtual const std::vector<std::string>& names() const noexcept = 0;
  /// notAfter, seconds since 1970.
  virtual std::int64_t expires() const noexcept = 0;
};

/// Secrets that every worker must share so that a ticket from one is good on another. Made at process start.
struct TlsTicketKeys {
  std::string key;  ///< 80 octets, random
  static TlsTicketKeys random();
};

struct TlsServerOptions {
  std::vector<std::shared_ptr<const TlsIdentity>> identities;  ///< first is the default; others by SNI (exact, then wildcard)
  /// In our order of preference; none in common: alert. Who has "http/1.1" in it takes "http/1.0" as well.
  std::vector<std::string> alpn{"http/1.1"};
  std::string client_ca_file;                                   ///< mTLS: trust anchors; empty: no client certificate asked
  bool client_cert_required = false;
  std::string min_version = "1.2";                              ///< "1.2" or "1.3"
  std::string ciphers;                                          ///< OpenSSL list for TLS 1.2; empty: our default
  std::string ciphersuites;                                     ///< TLS 1.3; empty: AES-128-GCM, AES-256-GCM, ChaCha20
  std::string groups;                                           ///< empty: X25519, P-256, P-384 (and the hybrid when asked)
  std::string key_log_file;                                     ///< NSS key log, appended; empty: none
  TlsTicketKeys ticket_keys;
  bool strict_sni = false;                                      ///< refuse names that no identity covers
};

/// One string of the options that OpenSSL does not understand.
struct TlsOptionProblem {
  std::string_view option;  ///< name of the member, which is that of the configuration key
  std::string what;         ///< "'X': why", for a person
};
/// What is wrong with min_version, ciphers, ciphersuites and groups, names one by one. Looks at nothing else, opens nothing.
std::vector<TlsOptionProblem> check_tls_options(const TlsServerOptions& options);

struct TlsClientOptions {
  std::string ca_file;                ///< PEM bundle; empty: the system's store
  bool verify = true;                 ///< chain and name; off only by explicit request
  std::shared_ptr<const TlsIdentity> identity;  ///< client certificate, or null
  std::vector<std::string> alpn{"http/1.1"};
  std::string min_version = "1.2";
  std::string ciphers, ciphersuites, groups;
  std::string key_log_file;
  bool session_cache = true;          ///< resume: tickets kept per session key, bounded
};

/// One per worker and kind; not thread-safe beyond what OpenSSL gives.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> server(const TlsServerOptions& options);
  static Result<std::unique_ptr<TlsContext>> client(const TlsClientOptions& options);
  virtual ~TlsContext() = default;
  virtual SSL_CTX* native() noexcept = 0;
};

}  // namespace twp
