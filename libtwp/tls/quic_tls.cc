#include "tls/quic_tls.h"

#include "tls/handshake.h"

namespace twp {
namespace tls_detail {
namespace {

class QuicTlsImpl final : public QuicTls {
 public:
  QuicTlsImpl(Context& context, bool server, std::uint32_t version) noexcept
      : context_(context), ssl_(SSL_new(context.native())), server_(server) {
    connection_.quic_offered = connection_.quic_version = version;
    if (ssl_ == nullptr) return;
    SSL_set_min_proto_version(ssl_.get(), TLS1_3_VERSION);  // RFC 9001 §4.2
    set_connection(ssl_.get(), &connection_);
    if (server)
      SSL_set_accept_state(ssl_.get());
    else
      SSL_set_connect_state(ssl_.get());
  }
  ~QuicTlsImpl() override {
    if (ssl_ == nullptr) return;
    set_connection(ssl_.get(), nullptr);
    // QUIC has no close_notify: without this SSL_free() would spoil the session for resumption.
    SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }

  bool made() const noexcept { return ssl_ != nullptr; }
  void expect(const ServerName& name) {
    PeerInfo asked;
    expected_ = expect_server(ssl_.get(), context_, connection_, name, asked);
    sni_ = asked.sni;
  }

  SSL* native() noexcept override { return ssl_.get(); }
  void negotiated(std::uint32_t version) noexcept override { connection_.quic_version = version; }
  void fill(PeerInfo& peer) override {
    if (!server_) peer.sni = sni_;
    note_peer(ssl_.get(), connection_, server_, context_.verifies(), peer);
  }
  Failure failure(const PeerInfo& peer) override {
    tls_detail::Failure f = explain_failure(ssl_.get(), connection_, server_, expected_);
    return {f.fault, whom(peer) + ": " + f.reason};
  }
  std::string whom(const PeerInfo& peer) const override {
    return describe_peer("QUIC", peer, connection_, server_, expected_);
  }

 private:
  Context& context_;
  SslPtr ssl_;
  Connection connection_;
  std::string expected_, sni_;
  const bool server_;
};

}  // namespace
}  // namespace tls_detail

using tls_detail::QuicTlsImpl;

std::unique_ptr<QuicTls> QuicTls::server(TlsContext& context, std::uint32_t version) {
  auto t = std::make_unique<QuicTlsImpl>(static_cast<tls_detail::Context&>(context), true, version);
  if (!t->made()) return nullptr;
  return t;
}

std::unique_ptr<QuicTls> QuicTls::client(TlsContext& context, std::uint32_t version, const std::string& host,
                                         const std::string& verify_name, const std::string& session_key) {
  auto t = std::make_unique<QuicTlsImpl>(static_cast<tls_detail::Context&>(context), false, version);
  if (!t->made()) return nullptr;
  t->expect({host, verify_name, session_key + '\0' + std::to_string(version)});
  return t;
}

}  // namespace twp
