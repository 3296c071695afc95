// Certificates, an in-memory transport that cuts its octets as told, and an endpoint that records what it hears.
#pragma once

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "event/worker.h"
#include "net/transport.h"
#include "support/turn.h"
#include "tls/tls_context.h"
#include "tls/tls_transport.h"

namespace twp::test {

/// A folder that goes with the object.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "twp-tls-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void spit(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }
inline std::string slurp(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

/// A certificate with its key, as PEM files NAME.pem and NAME.key.
struct TestCert {
  X509* x = nullptr;
  EVP_PKEY* key = nullptr;
  std::string cert_file, key_file;
};

/// Makes certificates below one authority.
class TestPki {
 public:
  TestPki() { ca = make("ca", "", nullptr, true); }
  ~TestPki() {
    for (const TestCert& c : made_) {
      X509_free(c.x);
      EVP_PKEY_free(c.key);
    }
  }
  TestPki(const TestPki&) = delete;
  TestPki& operator=(const TestPki&) = delete;

  /// `san` as in openssl.cnf: "DNS:a.test,IP:127.0.0.1". Negative `days`: already expired.
  TestCert leaf(const std::string& name, const std::string& san, int days = 30, bool rsa = false) {
    return make(name, san, &ca, false, days, rsa);
  }
  TestCert other_ca(const std::string& name) { return make(name, "", nullptr, true); }
  TestCert leaf_of(const TestCert& issuer, const std::string& name, const std::string& san) {
    return make(name, san, &issuer, false);
  }

  TempDir dir;
  TestCert ca;

 private:
  static void extend(X509* x, X509* issuer, int nid, const std::string& value) {
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, nullptr, nullptr, 0);
    X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &ctx, nid, value.c_str());
    BOOST_REQUIRE(e != nullptr);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
  }

  TestCert make(const std::string& name, const std::string& san, const TestCert* issuer, bool is_ca, int days = 30,
                bool rsa = false) {
    TestCert c;
    c.key = rsa ? EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}) : EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
    BOOST_REQUIRE(c.key != nullptr);
    c.x = X509_new();
    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(c.x), -2 * 86400L + (days < 0 ? days * 86400L : 0));
    X509_gmtime_adj(X509_getm_notAfter(c.x), days * 86400L);
    X509_NAME* subject = X509_get_subject_name(c.x);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509* parent = issuer == nullptr ? c.x : issuer->x;
    X509_set_issuer_name(c.x, X509_get_subject_name(parent));
    X509_set_pubkey(c.x, c.key);
    extend(c.x, parent, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (!san.empty()) extend(c.x, parent, NID_subject_alt_name, san);
    BOOST_REQUIRE(X509_sign(c.x, issuer == nullptr ? c.key : issuer->key, EVP_sha256()) > 0);
    c.cert_file = dir / (name + ".pem");
    c.key_file = dir / (name + ".key");
    std::FILE* f = std::fopen(c.cert_file.c_str(), "we");
    PEM_write_X509(f, c.x);
    std::fclose(f);
    f = std::fopen(c.key_file.c_str(), "we");
    PEM_write_PrivateKey(f, c.key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(f);
    made_.push_back(c);
    return c;
  }

  std::vector<TestCert> made_;
  long serial_ = 1000;
};

/// One end of an in-memory connection. `cut` says how many octets become readable in each turn; `capacity` is how
/// many may wait at the other end before write() takes no more.
class MemTransport final : public Transport, Task {
 public:
  explicit MemTransport(Worker& worker) : worker_(worker) {}
  ~MemTransport() override { close(Fault::none); }

  static std::pair<std::unique_ptr<MemTransport>, std::unique_ptr<MemTransport>> pair(Worker& worker) {
    auto a = std::make_unique<MemTransport>(worker);
    auto b = std::make_unique<MemTransport>(worker);
    a->other_ = b.get();
    b->other_ = a.get();
    return {std::move(a), std::move(b)};
  }

  void set_handler(TransportHandler* h) noexcept override { handler_ = h; }
  IoResult read(std::span<std::byte> into) noexcept override {
    if (into.empty()) return {};
    ++reads;
    if (in_.empty()) {
      if (!eof_in_ || !hidden_.empty()) return {};
      eof_told_ = true;
      return {IoStatus::eof, 0, Fault::none};
    }
    const std::size_t n = std::min(in_.size(), into.size());
    std::memcpy(into.data(), in_.data(), n);
    in_.erase(0, n);
    if (other_ != nullptr && other_->blocked_) worker_.schedule(Phase::client, *other_);
    return {IoStatus::ok, n, Fault::none};
  }
  bool drained() const noexcept override { return in_.empty() && (!eof_in_ || eof_told_ || !hidden_.empty()); }
  IoResult write(Chain& from) noexcept override {
    ++writes;
    blocked_ = false;
    if (from.empty()) return {IoStatus::ok, 0, Fault::none};
    if (other_ == nullptr) return {IoStatus::error, 0, Fault::peer_reset};
    std::size_t n = 0;
    while (!from.empty()) {
      const std::size_t held = other_->in_.size() + other_->hidden_.size();
      const std::size_t room = held >= capacity ? 0 : capacity - held;
      if (room == 0) {
        blocked_ = true;
        break;
      }
      const auto front = from.front().first(std::min(from.front().size(), room));
      other_->hidden_.append(reinterpret_cast<const char*>(front.data()), front.size());
      sent += front.size();
      n += front.size();
      from.consume(front.size());
    }
    if (n != 0) worker_.schedule(Phase::client, *other_);
    return {n != 0 || from.empty() ? IoStatus::ok : IoStatus::again, n, Fault::none};
  }
  void shutdown_write() noexcept override {
    if (other_ == nullptr) return;
    other_->eof_in_ = true;
    worker_.schedule(Phase::client, *other_);
  }
  void close(Fault) noexcept override {
    shutdown_write();
    if (other_ != nullptr) other_->other_ = nullptr;
    other_ = nullptr;
    handler_ = nullptr;
  }
  const PeerInfo& peer() const noexcept override { return peer_; }

  std::function<std::size_t()> cut;
  std::size_t capacity = 1 << 20;
  std::size_t reads = 0;
  std::size_t writes = 0;
  std::size_t sent = 0;

 private:
  void run() noexcept override {
    const std::size_t n = std::min(hidden_.size(), cut ? cut() : hidden_.size());
    in_.append(hidden_, 0, n);
    hidden_.erase(0, n);
    if (!hidden_.empty()) worker_.schedule(Phase::client, *this);
    if (handler_ != nullptr) handler_->on_ready(*this, true, true);
  }

  Worker& worker_;
  MemTransport* other_ = nullptr;
  TransportHandler* handler_ = nullptr;
  PeerInfo peer_;
  std::string in_;
  std::string hidden_;
  bool eof_in_ = false;
  bool eof_told_ = false;
  bool blocked_ = false;
};

/// Reads all it can (unless paused), sends what it is given, records everything.
class Endpoint final : public TransportHandler {
 public:
  explicit Endpoint(std::unique_ptr<Transport> t) : transport(std::move(t)) { transport->set_handler(this); }

  void on_open(Transport&) noexcept override {
    ++opened;
    pump();
  }
  void on_ready(Transport&, bool, bool) noexcept override { pump(); }
  void on_open_failed(Transport&, Fault f, std::string_view d) noexcept override {
    ++failed;
    fault = f;
    detail = d;
  }

  void send(std::string_view text) {
    out.append_copy(text);
    pump();
  }
  void pump() noexcept {
    if (opened == 0) return;
    if (!out.empty()) {
      const IoResult r = transport->write(out);
      if (r.status == IoStatus::error) write_fault = r.fault;
    }
    std::array<std::byte, 20000> buf;
    while (!paused && !transport->drained()) {
      const IoResult r = transport->read(std::span(buf).first(std::min(read_size, buf.size())));
      if (r.status == IoStatus::again) break;
      if (r.status == IoStatus::eof) {
        eof = true;
        break;
      }
      if (r.status == IoStatus::error) {
        fault = r.fault;
        break;
      }
      in.append(reinterpret_cast<const char*>(buf.data()), r.n);
    }
  }

  std::unique_ptr<Transport> transport;
  Chain out;
  std::string in;
  std::size_t read_size = 16384;
  int opened = 0;
  int failed = 0;
  bool eof = false;
  bool paused = false;
  Fault fault = Fault::none;
  Fault write_fault = Fault::none;
  std::string detail;
};

/// A client made of OpenSSL alone, which does what ours would not: offer a session to whom it likes.
class RawClient final : public TransportHandler {
 public:
  RawClient(std::unique_ptr<Transport> t, const std::string& sni, SSL_SESSION* session) : transport(std::move(t)) {
    ctx_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(ctx_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx_, [](SSL* s, SSL_SESSION* made) {
      auto* self = static_cast<RawClient*>(SSL_get_app_data(s));
      SSL_SESSION_free(self->ticket);
      self->ticket = made;
      return 1;
    });
    ssl_ = SSL_new(ctx_);
    SSL_set_app_data(ssl_, this);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
    std::string name = sni;
    SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>("\x08http/1.1"), 9);
    if (session != nullptr) SSL_set_session(ssl_, session);
    transport->set_handler(this);
    pump();
  }
  ~RawClient() {
    SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl_);
    SSL_CTX_free(ctx_);
    SSL_SESSION_free(ticket);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  void on_ready(Transport&, bool, bool) noexcept override { pump(); }
  void on_open_failed(Transport&, Fault, std::string_view) noexcept override {}
  bool resumed() const { return SSL_session_reused(ssl_) == 1; }
  SSL* ssl() { return ssl_; }

  void pump() {
    std::array<std::byte, 4096> buf;
    for (IoResult r; (r = transport->read(buf)).status == IoStatus::ok;) BIO_write(SSL_get_rbio(ssl_), buf.data(), static_cast<int>(r.n));
    char text[4096];
    for (int n; (n = SSL_read(ssl_, text, sizeof text)) > 0;) in.append(text, static_cast<std::size_t>(n));
    ERR_clear_error();
    Chain out;
    for (int n; (n = BIO_read(SSL_get_wbio(ssl_), text, sizeof text)) > 0;) out.append_copy(std::string_view(text, static_cast<std::size_t>(n)));
    if (!out.empty()) transport->write(out);
  }

  std::unique_ptr<Transport> transport;
  SSL_SESSION* ticket = nullptr;
  std::string in;

 private:
  SSL_CTX* ctx_;
  SSL* ssl_;
};

}  // namespace twp::test
