// What stands behind TlsContext. Private to tls/.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "tls/openssl_ptr.h"
#include "tls/pem.h"
#include "tls/tls_context.h"

namespace twp::tls_detail {

/// Facts of one connection that the context's callbacks share with its transport.
struct Connection {
  std::string sni;      ///< server role: name the client asked for, lower case
  std::string binding;  ///< server role: name, protocol and policy that a ticket is good for
  std::string slot;     ///< client role: where its tickets are kept; empty: nowhere
  std::uint32_t quic_offered = 0;  ///< server role: version of a QUIC client's first packet; 0: TCP
  std::uint32_t quic_version = 0;  ///< and the one that was agreed on

  /// What a ticket for use with that QUIC version carries.
  std::string ticket(std::uint32_t version) const { return version == 0 ? binding : binding + '\0' + std::to_string(version); }
};
/// Null for an SSL that no TlsTransport drives.
Connection* connection_of(const SSL* ssl) noexcept;
void set_connection(SSL* ssl, Connection* c) noexcept;

/// The latest session per slot, least recently used out first. Not thread-safe.
class SessionCache {
 public:
  static constexpr std::size_t kMax = 256;
  void put(const std::string& slot, SessionPtr session);
  /// Null when there is none; the cache keeps its reference.
  SSL_SESSION* get(const std::string& slot) noexcept;

 private:
  struct Entry {
    std::string slot;
    SessionPtr session;
  };
  std::list<Entry> order_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

class Context final : public TlsContext {
 public:
  Context() = default;
  ~Context() override;
  SSL_CTX* native() noexcept override { return ctx_.get(); }

  Result<void> init_server(const TlsServerOptions& options);
  Result<void> init_client(const TlsClientOptions& options);

  SessionCache& sessions() noexcept { return sessions_; }
  bool verifies() const noexcept { return verify_; }
  bool caches() const noexcept { return cache_; }

 private:
  struct Common {
    const std::string &min_version, &ciphers, &ciphersuites, &groups, &key_log_file;
    const std::vector<std::string>& alpn;
  };
  Result<void> init_common(const SSL_METHOD* method, const Common& options);
  Result<void> open_key_log(const std::string& file);
  Result<void> use_identity(const Identity& id);
  Result<void> ask_clients(const TlsServerOptions& options);
  const Identity* find(const std::string& name) const;

  static int on_client_hello(SSL* ssl, int* alert, void* self) noexcept;
  static int on_cert(SSL* ssl, void* self) noexcept;
  static int on_alpn(SSL* ssl, const unsigned char** out, unsigned char* n, const unsigned char* in, unsigned in_n,
                     void* self) noexcept;
  static int on_make_ticket(SSL* ssl, void* self) noexcept;
  static SSL_TICKET_RETURN on_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char* name, std::size_t name_n,
                                     SSL_TICKET_STATUS status, void* self) noexcept;
  static int on_new_session(SSL* ssl, SSL_SESSION* session) noexcept;
  static void on_key(const SSL* ssl, const char* line) noexcept;

  SslCtxPtr ctx_;
  std::vector<std::shared_ptr<const TlsIdentity>> identities_;
  std::unordered_map<std::string, const Identity*> by_name_;  // lower case; wildcards as "*.a.test"
  std::string alpn_;      // wire form, our order
  std::string policy_;    // what we demand of clients: anchors and whether a certificate is required
  std::shared_ptr<X509_STORE> trust_;
  SessionCache sessions_;
  int key_log_ = -1;
  bool strict_sni_ = false;
  bool verify_ = true;
  bool cache_ = true;
};

}  // namespace twp::tls_detail
