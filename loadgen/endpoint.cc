#include "loadgen/endpoint.h"

#include <algorithm>
#include <utility>

#include "event/worker.h"
#include "http/session.h"
#include "net/resolver.h"

namespace twp::load {
namespace {

// So large that the generator's own credit is never what is waited for.
constexpr std::uint32_t kStreamWindow = 16 * 1024 * 1024;
constexpr std::uint32_t kConnectionWindow = 256 * 1024 * 1024;

HttpLimits limits_for(const Plan& plan, unsigned lanes) noexcept {
  HttpLimits limits;
  limits.stream_idle_timeout = std::max<Duration>(limits.stream_idle_timeout, plan.timeout);
  limits.h2_connection_window = kConnectionWindow;
  limits.h2_max_streams = std::max(limits.h2_max_streams, lanes);
  limits.h2_glitch_burst = 1'000'000'000;  // a server that resets is measured, not left
  // A slow reader takes its share every 20 ms: the window must hold more than one share, and not much more, because what
  // is in the window has arrived at full speed.
  const std::uint32_t usual = plan.http2() && plan.read_rate == 0 ? kStreamWindow : limits.stream_window;
  limits.stream_window =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(plan.read_rate / 20, usual, 1u << 30));
  return limits;
}

class Probe final : public SessionOwner, public DialHandler {
 public:
  explicit Probe(Worker& worker) noexcept : worker_(worker) {}

  void start(Resolver& resolver, const DialTarget& target) {
    dial_ = Dial::start(worker_, resolver, target, *this, *this);
  }
  bool over() const noexcept { return over_; }
  bool http2() const noexcept { return http2_; }
  const std::string& failure() const noexcept { return failure_; }

 private:
  void on_dialed(Dial&, std::unique_ptr<Session> session) noexcept override {
    worker_.retire(std::move(dial_));
    session_ = std::move(session);
    http2_ = session_->version().major == 2;
    session_->close(Fault::none);
  }
  void on_dial_failed(Dial&, Fault why, const std::string& detail) noexcept override {
    worker_.retire(std::move(dial_));
    failure_ = dial_failure(why, detail);
    over_ = true;
  }
  void on_capacity(Session&) noexcept override {}
  void on_session_gone(Session&, Fault) noexcept override {
    worker_.retire(std::move(session_));
    over_ = true;
  }

  Worker& worker_;
  std::unique_ptr<Dial> dial_;
  std::unique_ptr<Session> session_;
  std::string failure_;
  bool http2_ = false;
  bool over_ = false;
};

}  // namespace

std::string dial_failure(Fault why, const std::string& detail) {
  if (why == Fault::tls_verify) return detail + "; trust its CA with --ca FILE, or use --insecure";
  return "cannot connect to " + detail;
}

Result<void> Endpoint::prepare(const Plan& plan, unsigned lanes) {
  target_.host = plan.url.host;
  target_.port = plan.url.port;
  target_.http = plan.http;
  if (!plan.connect_to.empty()) {
    auto to = parse_host_port(plan.connect_to, plan.url.port);
    if (!to) return fail(Fault::bad_config, "--connect-to " + plan.connect_to + ": " + to.error().what);
    target_.host = to->host;
    target_.port = to->port;
  }
  target_.tls = plan.url.encrypted();
  if (target_.tls) {
    const std::string name = plan.host.empty() ? plan.url.host : plan.host.substr(0, plan.host.find(':'));
    target_.sni = target_.verify_name = name;
    TlsClientOptions options;
    options.ca_file = plan.ca_file;
    options.verify = !plan.insecure;
    options.session_cache = plan.resume;
    options.alpn = client_alpn(plan.http);
    auto context = TlsContext::client(options);
    if (!context) return std::unexpected(context.error());
    tls_ = std::move(*context);
    target_.tls_context = tls_.get();
  }
  limits_ = limits_for(plan, lanes);
  target_.limits = &limits_;
  target_.connect_timeout = std::min<Duration>(plan.timeout, std::chrono::seconds(10));
  return {};
}

Result<void> negotiate(Plan& plan) {
  if (plan.http != "auto") return {};
  Endpoint endpoint;
  if (auto ok = endpoint.prepare(plan, 1); !ok) return ok;
  Worker worker;
  Resolver resolver(worker, ResolverOptions{});
  Probe probe(worker);
  probe.start(resolver, endpoint.target());
  while (!probe.over()) worker.turn(std::chrono::seconds(1));
  worker.turn(Duration::zero());  // retires what is left of it
  if (!probe.failure().empty()) return fail(Fault::connect_failed, probe.failure());
  return settle_http(plan, probe.http2() ? "h2" : "h1");
}

}  // namespace twp::load
