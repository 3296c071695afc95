#include "proxy/dialer.h"

#include <utility>
#include <vector>

#include "h1/h1_session.h"
#include "h2/h2_session.h"
#include "tls/tls_transport.h"

namespace twp {
namespace {

constexpr unsigned kUsualStreams = 100;  // what RFC 9113 §6.5.2 asks every server to allow at least

class TcpDial final : public Dial, ResolveWaiter, TransportHandler, Timer, Task {
 public:
  TcpDial(Worker& worker, const DialTarget& target, SessionOwner& owner, DialHandler& handler) noexcept
      : worker_(worker), target_(target), owner_(owner), handler_(handler) {}

  void begin(Resolver& resolver) noexcept {
    worker_.arm(*this, target_.connect_timeout);
    starting_ = true;
    resolver.resolve(target_.host, *this);
    starting_ = false;
  }

 private:
  // ResolveWaiter
  void on_resolved(const std::vector<Address>& addresses) noexcept override {
    addresses_ = addresses;
    try_next();
  }
  void on_resolve_failed(const std::string& detail) noexcept override {
    fail(Fault::dns_failed, target_.host + ": " + detail);
  }
  // TransportHandler
  void on_open(Transport&) noexcept override {
    const std::string& alpn = transport_->peer().alpn;
    const bool http2 = target_.tls ? alpn == "h2" : target_.http == "h2";
    if (target_.http == "h2" && !http2) {
      no_http2(alpn);
      return;
    }
    Timer::cancel();
    over_ = true;
    auto session = http2 ? make_h2_client(worker_, std::move(transport_), owner_, *target_.limits)
                         : make_h1_client(worker_, std::move(transport_), owner_, *target_.limits);
    handler_.on_dialed(*this, std::move(session));
  }
  void on_ready(Transport&, bool, bool) noexcept override {}
  void on_open_failed(Transport&, Fault why, std::string_view detail) noexcept override {
    fault_ = why;
    detail_ = detail;
    if (why == Fault::tls_no_protocol) detail_ += hint();
    worker_.retire(std::move(transport_));
    if (may_try_another(why))
      try_next();
    else
      fail(why, detail_);
  }
  void on_timer() noexcept override {
    if (over_) return;
    if (transport_ != nullptr) {
      transport_->close(Fault::connect_timeout);
      worker_.retire(std::move(transport_));
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(target_.connect_timeout).count();
    fail(Fault::connect_timeout, target_.host + ": no connection within " + std::to_string(ms) + " ms" +
                                     (detail_.empty() ? "" : " (before that: " + detail_ + ")"));
  }
  // Task: a failure inside start() is told later
  void run() noexcept override { handler_.on_dial_failed(*this, fault_, detail_); }

  /// An origin without ALPN goes on as if nothing had been asked; what was asked for is never quietly something else.
  void no_http2(const std::string& alpn) noexcept {
    std::string detail = target_.host + ": the origin chose " + (alpn.empty() ? "no protocol" : '"' + alpn + '"') +
                         " by ALPN instead of \"h2\"" + hint();
    transport_->close(Fault::tls_no_protocol);
    worker_.retire(std::move(transport_));
    fail(Fault::tls_no_protocol, std::move(detail));
  }
  std::string hint() const { return " (cluster.http is \"" + target_.http + "\"; \"auto\" takes either)"; }

  /// Another address of the same name helps against a machine that is down, not against a wrong certificate.
  static bool may_try_another(Fault why) noexcept {
    return why == Fault::connect_refused || why == Fault::connect_failed || why == Fault::connect_timeout ||
           why == Fault::peer_reset || why == Fault::io_error;
  }

  void try_next() noexcept {
    if (over_) return;
    if (next_ == addresses_.size()) {
      fail(fault_ == Fault::none ? Fault::dns_failed : fault_,
           detail_.empty() ? target_.host + ": no address" : detail_);
      return;
    }
    Address to = addresses_[next_++];
    to.set_port(target_.port);
    transport_ = TcpTransport::connect(worker_, to, target_.tcp);
    if (target_.tls) {
      // A name sent instead of the host does not change for whom the certificate must be.
      const std::string& sni = target_.sni.empty() ? target_.host : target_.sni;
      const std::string& verify =
          !target_.verify_name.empty() || target_.sni.empty() ? target_.verify_name : target_.host;
      transport_ = make_tls_client(worker_, std::move(transport_), *target_.tls_context, sni, verify,
                                   target_.host + ':' + std::to_string(target_.port));
    }
    transport_->set_handler(this);
  }

  void fail(Fault why, std::string detail) noexcept {
    if (std::exchange(over_, true)) return;
    Timer::cancel();
    fault_ = why;
    detail_ = std::move(detail);
    if (starting_)
      worker_.schedule(Phase::origin, *this);
    else
      run();
  }

  Worker& worker_;
  const DialTarget& target_;
  SessionOwner& owner_;
  DialHandler& handler_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;
  std::unique_ptr<Transport> transport_;
  Fault fault_ = Fault::none;  // of the address tried last
  std::string detail_;
  bool starting_ = false;
  bool over_ = false;
};

}  // namespace

std::vector<std::string> client_alpn(std::string_view http) {
  if (http == "h2") return {"h2"};
  if (http == "auto") return {"h2", "http/1.1"};
  return {"http/1.1"};
}

unsigned expected_streams(const DialTarget& target) noexcept { return target.http == "h1" ? 1 : kUsualStreams; }

std::unique_ptr<Dial> Dial::start(Worker& worker, Resolver& resolver, const DialTarget& target, SessionOwner& owner,
                                  DialHandler& handler) {
  auto dial = std::make_unique<TcpDial>(worker, target, owner, handler);
  dial->begin(resolver);
  return dial;
}

}  // namespace twp
