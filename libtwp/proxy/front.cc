#include "proxy/front.h"

#include <string>
#include <utility>

#include "base/ilist.h"
#include "base/log.h"
#include "h1/h1_session.h"
#include "h2/h2_session.h"
#include "net/sniff.h"
#include "tls/tls_transport.h"

namespace twp {
namespace {

constexpr Duration kDrainGrace = std::chrono::seconds(1);  // for a first request that crosses our decision to close

/// Who asks clients for certificates wants to know who came without; other refusals are mostly the clients' business.
LogLevel refusal_level(Fault why) noexcept {
  if (why == Fault::tls_client_cert) return LogLevel::warning;
  return why == Fault::client_closed || why == Fault::client_reset ? LogLevel::debug : LogLevel::info;
}

class FrontImpl final : public Front, ListenHandler {
 public:
  FrontImpl(Worker& worker, const FrontOptions& options, TlsContext* tls, Acceptor& acceptor,
            const HttpLimits& limits) noexcept
      : worker_(worker), acceptor_(acceptor), limits_(limits), handshake_timeout_(options.handshake_timeout),
        max_connections_(options.max_connections), limit_name_(options.limit_name), tls_(tls), versions_(options.versions) {}
  ~FrontImpl() override {
    listener_.reset();
    while (!connections_.empty()) delete &connections_.front();
  }

  Result<void> listen(const FrontOptions& options) {
    auto listener = Listener::open(worker_, options.at, options.listen, *this);
    if (!listener) return std::unexpected(listener.error());
    listener_ = std::move(*listener);
    address_ = listener_->address();
    return {};
  }

  const Address& address() const noexcept override { return address_; }
  void set_tls(TlsContext* tls) noexcept override { tls_ = tls; }
  void set_versions(HttpVersions versions) noexcept override { versions_ = versions; }
  void drain() noexcept override;
  void close() noexcept override;
  std::size_t connections() const noexcept override { return stats_.open; }
  const FrontStats& stats() const noexcept override { return stats_; }
  bool uses(const TlsContext& tls) const noexcept override;

 private:
  /// From accept to the end of the session.
  class Connection final : public TransportHandler, public SessionOwner, public SniffHandler, public IListHook<> {
   public:
    Connection(FrontImpl& front, TlsContext* tls) noexcept : front_(front), tls_(tls) {}

    void start(std::unique_ptr<Transport> transport) noexcept {
      const HttpVersions versions = front_.versions_;
      if (tls_ == nullptr && versions.http1 && versions.http2) {
        sniffer_ = std::make_unique<Sniffer>(front_.worker_, std::move(transport), *this,
                                             SniffTimes{front_.limits_.keep_alive_timeout, front_.limits_.head_timeout});
        return;
      }
      if (tls_ == nullptr) {
        serve(std::move(transport), versions.http2, {});
        return;
      }
      transport_ = make_tls_server(front_.worker_, std::move(transport), *tls_, front_.handshake_timeout_);
      transport_->set_handler(this);
    }
    void drain() noexcept {
      // A handshake is drained when it has become a session.
      if (session_ != nullptr) session_->drain();
      else if (sniffer_ != nullptr) sniffer_->drain(kDrainGrace);
    }
    void close() noexcept {
      if (session_ != nullptr) {
        session_->close(Fault::shutdown);
        return;
      }
      if (sniffer_ != nullptr) sniffer_->close(Fault::shutdown);
      else transport_->close(Fault::shutdown);
      front_.remove(*this);
    }
    const TlsContext* tls() const noexcept { return tls_; }

   private:
    // TransportHandler: only while there is no session
    void on_open(Transport& t) noexcept override {
      const std::string& alpn = t.peer().alpn;
      // Who sends no ALPN speaks HTTP/1, or is told by HTTP/2 that nobody does here (RFC 9113 §3.2).
      const bool http2 = alpn == "h2" || (alpn.empty() && !front_.versions_.http1);  // before the move
      serve(std::move(transport_), http2, {});
    }
    void on_ready(Transport&, bool, bool) noexcept override {}
    void on_open_failed(Transport&, Fault why, std::string_view detail) noexcept override {
      ++front_.stats_.handshake_failures;
      log_limited(refusal_level(why), detail);
      front_.worker_.retire(std::move(transport_));
      front_.remove(*this);
    }
    // SessionOwner
    void on_capacity(Session&) noexcept override {}
    void on_session_gone(Session&, Fault) noexcept override { front_.remove(*this); }

    // SniffHandler
    void on_sniffed(Sniffer& s, Sniffed which, Chain first) noexcept override {
      auto transport = s.take_transport();
      front_.worker_.retire(std::move(sniffer_));
      serve(std::move(transport), which == Sniffed::http2, std::move(first));
    }
    void on_sniff_ended(Sniffer&) noexcept override {
      front_.worker_.retire(std::move(sniffer_));
      front_.remove(*this);
    }

    void serve(std::unique_ptr<Transport> transport, bool http2, Chain first) noexcept {
      FrontImpl& f = front_;
      session_ = http2 ? make_h2_server(f.worker_, std::move(transport), f.acceptor_, *this, f.limits_, std::move(first))
                       : make_h1_server(f.worker_, std::move(transport), f.acceptor_, *this, f.limits_, std::move(first));
      if (f.draining_) session_->drain();
    }

    FrontImpl& front_;
    TlsContext* const tls_;
    std::unique_ptr<Transport> transport_;  // handshaking
    std::unique_ptr<Sniffer> sniffer_;      // or waiting for the first octets
    std::unique_ptr<Session> session_;
  };

  void on_accept(std::unique_ptr<TcpTransport> transport) noexcept override;
  void remove(Connection& c) noexcept {
    c.unlink();
    --stats_.open;
    worker_.retire(std::unique_ptr<Connection>(&c));
  }

  Worker& worker_;
  Acceptor& acceptor_;
  const HttpLimits& limits_;
  const Duration handshake_timeout_;
  const std::size_t max_connections_;
  const std::string_view limit_name_;
  TlsContext* tls_;
  HttpVersions versions_;
  Address address_;
  std::unique_ptr<Listener> listener_;
  IList<Connection> connections_;
  FrontStats stats_;
  bool draining_ = false;
};

void FrontImpl::on_accept(std::unique_ptr<TcpTransport> transport) noexcept {
  ++stats_.accepted;
  if (max_connections_ != 0 && stats_.open >= max_connections_) {
    ++stats_.refused;
    log_limited(LogLevel::warning, "connection from " + transport->peer().remote.text() +
                                       " refused: " + std::string(limit_name_) + " reached on this worker (" +
                                       std::to_string(max_connections_) + ")");
    transport->close(Fault::overloaded);
    return;
  }
  auto* c = new Connection(*this, tls_);
  connections_.push_back(*c);
  ++stats_.open;
  c->start(std::move(transport));
}

void FrontImpl::drain() noexcept {
  draining_ = true;
  // Called from outside of any callback of the listener.
  if (listener_ != nullptr) listener_->finish();
  connections_.for_each([](Connection& c) { c.drain(); });
}

void FrontImpl::close() noexcept {
  draining_ = true;
  if (listener_ != nullptr) listener_->close();
  // Ending one session may end others that hang on it: take them one by one.
  IList<Connection> all;
  all.splice_back(connections_);
  while (!all.empty()) {
    Connection& c = all.pop_front();
    connections_.push_back(c);
    c.close();
  }
}

bool FrontImpl::uses(const TlsContext& tls) const noexcept {
  bool used = tls_ == &tls;
  auto& connections = const_cast<IList<Connection>&>(connections_);
  connections.for_each([&](const Connection& c) { used |= c.tls() == &tls; });
  return used;
}

}  // namespace

std::vector<std::string> server_alpn(HttpVersions versions) {
  std::vector<std::string> out;
  if (versions.http2) out.emplace_back("h2");
  if (versions.http1) {
    out.emplace_back("http/1.1");
    out.emplace_back("http/1.0");
  }
  return out;
}

Result<std::unique_ptr<Front>> Front::open(Worker& worker, const FrontOptions& options, TlsContext* tls,
                                           Acceptor& acceptor, const HttpLimits& limits) {
  auto front = std::make_unique<FrontImpl>(worker, options, tls, acceptor, limits);
  if (auto ok = front->listen(options); !ok) return std::unexpected(ok.error());
  return front;
}

}  // namespace twp
