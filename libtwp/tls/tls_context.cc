#include "tls/tls_context.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/ascii.h"
#include "tls/context_impl.h"

namespace twp {
namespace tls_detail {
namespace {

constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kCiphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
// The hybrid X25519MLKEM768 costs a third more per handshake and 1 KiB in each hello: only when asked for.
constexpr const char* kGroups = "X25519:P-256:P-384";

int connection_index() noexcept {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

Result<std::string> alpn_wire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& p : protocols) {
    if (p.empty() || p.size() > 255) return fail(Fault::bad_config, "ALPN protocol names have 1 to 255 octets");
    wire.push_back(static_cast<char>(p.size()));
    wire += p;
  }
  return wire;
}

const unsigned char* octets(const std::string& s) noexcept { return reinterpret_cast<const unsigned char*>(s.data()); }

// server_name of RFC 6066 §3: the first host_name. OpenSSL checks the extension's syntax afterwards.
std::string hello_name(SSL* ssl) {
  const unsigned char* p = nullptr;
  std::size_t n = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n) != 1 || n < 5 || p[2] != TLSEXT_NAMETYPE_host_name)
    return {};
  const std::size_t len = static_cast<std::size_t>(p[3]) << 8 | p[4];
  if (len > n - 5) return {};
  std::string name = lower({reinterpret_cast<const char*>(p) + 5, len});
  if (name.ends_with('.')) name.pop_back();
  return name;
}

std::string select_alpn(const std::string& ours, const unsigned char* theirs, unsigned n) {
  unsigned char* out = nullptr;
  unsigned char out_n = 0;
  if (n == 0 || ours.empty()) return {};
  if (SSL_select_next_proto(&out, &out_n, octets(ours), static_cast<unsigned>(ours.size()), theirs, n) != OPENSSL_NPN_NEGOTIATED)
    return {};
  return {reinterpret_cast<const char*>(out), out_n};
}

std::string hello_alpn(SSL* ssl, const std::string& ours) {
  const unsigned char* p = nullptr;
  std::size_t n = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n) != 1 || n < 2) return {};
  return select_alpn(ours, p + 2, static_cast<unsigned>(n - 2));
}

}  // namespace

Connection* connection_of(const SSL* ssl) noexcept {
  return static_cast<Connection*>(SSL_get_ex_data(ssl, connection_index()));
}
void set_connection(SSL* ssl, Connection* c) noexcept { SSL_set_ex_data(ssl, connection_index(), c); }

void SessionCache::put(const std::string& slot, SessionPtr session) {
  if (const auto it = index_.find(slot); it != index_.end()) {
    it->second->session = std::move(session);
    order_.splice(order_.begin(), order_, it->second);
    return;
  }
  order_.push_front({slot, std::move(session)});
  index_[slot] = order_.begin();
  if (order_.size() <= kMax) return;
  index_.erase(order_.back().slot);
  order_.pop_back();
}

SSL_SESSION* SessionCache::get(const std::string& slot) noexcept {
  const auto it = index_.find(slot);
  if (it == index_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->session.get();
}

Context::~Context() {
  if (key_log_ >= 0) ::close(key_log_);
}

Result<void> Context::init_common(const SSL_METHOD* method, const Common& o) {
  init_openssl();
  ctx_.reset(SSL_CTX_new(method));
  if (ctx_ == nullptr) return fail(Fault::out_of_memory, "cannot make a TLS context: " + take_error("out of memory"));
  SSL_CTX* c = ctx_.get();
  SSL_CTX_set_app_data(c, this);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                             SSL_OP_PRIORITIZE_CHACHA);
  int version = 0;
  if (o.min_version == "1.2") version = TLS1_2_VERSION;
  if (o.min_version == "1.3") version = TLS1_3_VERSION;
  if (version == 0) return fail(Fault::bad_config, "min_version '" + o.min_version + "': expected \"1.2\" or \"1.3\"");
  SSL_CTX_set_min_proto_version(c, version);
  if (SSL_CTX_set_cipher_list(c, o.ciphers.empty() ? kCiphers : o.ciphers.c_str()) != 1)
    return fail(Fault::bad_config, "ciphers '" + o.ciphers + "': " + take_error("no cipher match"));
  if (SSL_CTX_set_ciphersuites(c, o.ciphersuites.empty() ? kSuites : o.ciphersuites.c_str()) != 1)
    return fail(Fault::bad_config, "ciphersuites '" + o.ciphersuites + "': " + take_error("no cipher match"));
  if (SSL_CTX_set1_groups_list(c, o.groups.empty() ? kGroups : o.groups.c_str()) != 1)
    return fail(Fault::bad_config, "groups '" + o.groups + "': " + take_error("unknown group"));
  auto wire = alpn_wire(o.alpn);
  if (!wire) return std::unexpected(wire.error());
  alpn_ = std::move(*wire);
  return open_key_log(o.key_log_file);
}

Result<void> Context::open_key_log(const std::string& file) {
  if (file.empty()) return {};
  // O_APPEND: lines of all workers (and of other programs) end up whole and one after the other.
  key_log_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (key_log_ < 0) return fail(Fault::bad_config, "cannot open key log " + file + ": " + errno_text(errno));
  SSL_CTX_set_keylog_callback(ctx_.get(), on_key);
  return {};
}

Result<void> Context::use_identity(const Identity& id) {
  if (SSL_CTX_use_cert_and_key(ctx_.get(), id.leaf(), id.key(), id.chain(), 1) == 1) return {};
  return fail(Fault::bad_config, "certificate refused: " + take_error("unusable"));
}

Result<void> Context::init_server(const TlsServerOptions& o) {
  std::vector<std::string> alpn = o.alpn;
  // HTTP/1.0 has an identifier of its own, and whoever serves 1.1 serves it.
  if (std::ranges::find(alpn, "http/1.1") != alpn.end()) alpn.emplace_back("http/1.0");
  auto ok = init_common(TLS_server_method(), {o.min_version, o.ciphers, o.ciphersuites, o.groups, o.key_log_file, alpn});
  if (!ok) return ok;
  SSL_CTX* c = ctx_.get();
  if (o.identities.empty()) return fail(Fault::bad_config, "a TLS listener needs a certificate and its key");
  identities_ = o.identities;
  for (const auto& id : identities_)
    for (const std::string& name : id->names()) by_name_.emplace(name, &as_identity(*id));
  if (ok = use_identity(as_identity(*identities_.front())); !ok) return ok;
  if (ok = ask_clients(o); !ok) return ok;
  strict_sni_ = o.strict_sni;
  if (!alpn_.empty()) SSL_CTX_set_alpn_select_cb(c, on_alpn, this);
  SSL_CTX_set_client_hello_cb(c, on_client_hello, this);
  if (identities_.size() > 1) SSL_CTX_set_cert_cb(c, on_cert, this);
  // Tickets only: a cache would need a lock, and would not be shared by the workers' contexts.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 1);
  SSL_CTX_set_session_ticket_cb(c, on_make_ticket, on_ticket, this);
  if (!o.ticket_keys.key.empty()) {
    std::string key = o.ticket_keys.key;
    if (SSL_CTX_set_tlsext_ticket_keys(c, key.data(), static_cast<long>(key.size())) != 1)
      return fail(Fault::bad_config, "ticket keys must have 80 octets: " + take_error("refused"));
  }
  return {};
}

Result<void> Context::ask_clients(const TlsServerOptions& o) {
  policy_ = "open";
  if (!o.client_ca_file.empty()) {
    auto certificates = load_certificates(o.client_ca_file);
    if (!certificates) return std::unexpected(certificates.error());
    auto trust = load_trust(o.client_ca_file);
    if (!trust) return std::unexpected(trust.error());
    trust_ = trust->store;
    SSL_CTX_set1_cert_store(ctx_.get(), trust_.get());
    for (const X509Ptr& x : *certificates) SSL_CTX_add_client_CA(ctx_.get(), x.get());
    SSL_CTX_set_verify(ctx_.get(), SSL_VERIFY_PEER | (o.client_cert_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
    policy_ = (o.client_cert_required ? "must" : "may!") + trust->digest;
  }
  // OpenSSL compares this with a session's own and falls back to a full handshake when they differ: a session
  // made under another demand for client certificates never counts here.
  const std::string id = policy_.substr(0, SSL_MAX_SID_CTX_LENGTH);
  SSL_CTX_set_session_id_context(ctx_.get(), octets(id), static_cast<unsigned>(id.size()));
  return {};
}

Result<void> Context::init_client(const TlsClientOptions& o) {
  auto ok = init_common(TLS_client_method(), {o.min_version, o.ciphers, o.ciphersuites, o.groups, o.key_log_file, o.alpn});
  if (!ok) return ok;
  SSL_CTX* c = ctx_.get();
  if (!alpn_.empty()) SSL_CTX_set_alpn_protos(c, octets(alpn_), static_cast<unsigned>(alpn_.size()));
  verify_ = o.verify;
  if (verify_) {
    auto trust = load_trust(o.ca_file);
    if (!trust) return std::unexpected(trust.error());
    trust_ = trust->store;
    SSL_CTX_set1_cert_store(c, trust_.get());
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  }
  if (o.identity != nullptr) {
    identities_.push_back(o.identity);
    if (ok = use_identity(as_identity(*o.identity)); !ok) return ok;
  }
  cache_ = o.session_cache;
  SSL_CTX_set_session_cache_mode(c, cache_ ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL : SSL_SESS_CACHE_OFF);
  if (cache_) SSL_CTX_sess_set_new_cb(c, on_new_session);
  return {};
}

const Identity* Context::find(const std::string& name) const {
  if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  // RFC 9525 §6.3: a wildcard stands for exactly the left-most label.
  const auto dot = name.find('.');
  if (dot == std::string::npos || dot == 0) return nullptr;
  const auto it = by_name_.find("*" + name.substr(dot));
  return it != by_name_.end() ? it->second : nullptr;
}

int Context::on_client_hello(SSL* ssl, int* alert, void* self) noexcept {
  auto& c = *static_cast<Context*>(self);
  std::string name = hello_name(ssl);
  if (c.strict_sni_ && !name.empty() && c.find(name) == nullptr) {
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_CLIENT_HELLO_ERROR;
  }
  if (Connection* conn = connection_of(ssl); conn != nullptr) {
    conn->binding = name + '\0' + hello_alpn(ssl, c.alpn_) + '\0' + c.policy_;
    conn->sni = std::move(name);
  }
  return SSL_CLIENT_HELLO_SUCCESS;
}

int Context::on_cert(SSL* ssl, void* self) noexcept {
  auto& c = *static_cast<Context*>(self);
  const Connection* conn = connection_of(ssl);
  const char* sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const Identity* id = conn != nullptr ? c.find(conn->sni) : sni != nullptr ? c.find(lower(sni)) : nullptr;
  if (id == nullptr || id == c.identities_.front().get()) return 1;
  // Cleared first: the default's certificate must not stay beside this one when their key types differ.
  SSL_certs_clear(ssl);
  return SSL_use_cert_and_key(ssl, id->leaf(), id->key(), id->chain(), 1);
}

int Context::on_alpn(SSL*, const unsigned char** out, unsigned char* n, const unsigned char* in, unsigned in_n,
                     void* self) noexcept {
  const auto& ours = static_cast<Context*>(self)->alpn_;
  unsigned char* chosen = nullptr;
  if (in_n == 0 || SSL_select_next_proto(&chosen, n, octets(ours), static_cast<unsigned>(ours.size()), in, in_n) !=
                       OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;  // RFC 7301 §3.2: no_application_protocol
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

int Context::on_make_ticket(SSL* ssl, void*) noexcept {
  const Connection* conn = connection_of(ssl);
  if (conn == nullptr) return 1;
  const std::string good_for = conn->ticket(conn->quic_version);
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), good_for.data(), good_for.size());
}

SSL_TICKET_RETURN Context::on_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char*, std::size_t,
                                     SSL_TICKET_STATUS status, void*) noexcept {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
  // A ticket got for one name (or protocol, or demand for a client certificate) is worth nothing for another:
  // TLS 1.3 itself does not tie them together.
  const Connection* conn = connection_of(ssl);
  void* data = nullptr;
  std::size_t n = 0;
  if (conn == nullptr || SSL_SESSION_get0_ticket_appdata(session, &data, &n) != 1) return SSL_TICKET_RETURN_IGNORE_RENEW;
  const std::string needed = conn->ticket(conn->quic_offered);
  if (n != needed.size() || std::memcmp(data, needed.data(), n) != 0) return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

int Context::on_new_session(SSL* ssl, SSL_SESSION* session) noexcept {
  auto* self = static_cast<Context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const Connection* conn = connection_of(ssl);
  if (conn == nullptr || conn->slot.empty()) return 0;
  self->sessions_.put(conn->slot, SessionPtr(session));
  return 1;  // the reference is ours now
}

void Context::on_key(const SSL* ssl, const char* line) noexcept {
  const auto* self = static_cast<Context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const std::string whole = std::string(line) + '\n';
  [[maybe_unused]] const auto n = ::write(self->key_log_, whole.data(), whole.size());
}

}  // namespace tls_detail

TlsTicketKeys TlsTicketKeys::random() {
  TlsTicketKeys k;
  k.key.resize(80);  // 16 name, 32 HMAC-SHA-256, 32 AES-256
  if (RAND_bytes(reinterpret_cast<unsigned char*>(k.key.data()), static_cast<int>(k.key.size())) != 1) std::abort();
  return k;
}

Result<std::unique_ptr<TlsContext>> TlsContext::server(const TlsServerOptions& options) {
  auto c = std::make_unique<tls_detail::Context>();
  if (auto ok = c->init_server(options); !ok) return std::unexpected(ok.error());
  return c;
}

Result<std::unique_ptr<TlsContext>> TlsContext::client(const TlsClientOptions& options) {
  auto c = std::make_unique<tls_detail::Context>();
  if (auto ok = c->init_client(options); !ok) return std::unexpected(ok.error());
  return c;
}

}  // namespace twp
