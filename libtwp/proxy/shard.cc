#include "proxy/shard.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "net/listener.h"
#include "net/resolver.h"
#include "proxy/exchange.h"
#include "proxy/front.h"
#include "proxy/pool_set.h"

namespace twp {
namespace {

constexpr Duration kDrainLook = std::chrono::milliseconds(20);
constexpr Duration kSweepLook = std::chrono::seconds(1);

void set_limits(HttpLimits& out, const config::Config& c) noexcept {
  out.max_target = c.limits.max_target;
  out.max_head = c.limits.max_head;
  out.max_response_head = c.limits.max_response_head;
  out.max_fields = c.limits.max_fields;
  out.max_trailer = c.limits.max_trailer;
  out.max_body = c.limits.max_body;
  out.stream_window = c.limits.stream_window;
  out.max_interim = c.limits.max_interim;
  out.min_body_rate = c.limits.min_body_rate;
  out.h2_max_streams = c.limits.h2_max_streams;
  out.h2_connection_window = c.limits.h2_connection_window;
  out.h2_glitch_burst = c.limits.h2_glitch_burst;
  out.h2_glitch_rate = c.limits.h2_glitch_rate;
  out.abort_on_close = c.tcp.abort_on_close;
  out.head_timeout = c.timeouts.head;
  out.keep_alive_timeout = c.timeouts.keep_alive;
  out.stream_idle_timeout = c.timeouts.stream_idle;
}

ResolverOptions resolver_options(const config::Dns& dns) {
  ResolverOptions out;
  out.servers = dns.servers;
  out.timeout = dns.timeout;
  out.tries = dns.tries;
  return out;
}

HttpVersions versions_of(const config::Listener& l) noexcept { return {l.http1, l.http2}; }

/// This worker's part of the process's limit.
std::size_t connections_per_worker(const config::Config& c) noexcept {
  if (c.limits.max_connections == 0) return 0;
  const unsigned workers = c.workers != 0 ? c.workers : std::max(1u, std::thread::hardware_concurrency());
  return (c.limits.max_connections + workers - 1) / workers;
}

class ShardImpl final : public Shard, Acceptor, Connector, GenerationOwner, Timer {
 public:
  ShardImpl(Worker& worker, ExchangeObserver* observer) noexcept
      : worker_(worker), env_(worker, counters_, observer), pools_(worker, *this, limits_, counters_) {}
  ~ShardImpl() override;

  Result<void> reload(std::shared_ptr<const Snapshot> snapshot, const std::vector<Address>* bound) override;
  void drain(std::move_only_function<void()> done) override;
  void close() noexcept override;
  std::vector<Address> addresses() const override;
  const Counters& counters() noexcept override;
  std::size_t client_connections() const noexcept override;

 private:
  struct Listening {
    std::string url;
    HttpVersions versions;
    std::unique_ptr<TlsContext> tls;
    std::unique_ptr<Front> front;
  };
  struct OwnedGeneration {
    OwnedGeneration(std::shared_ptr<const Snapshot> s, GenerationOwner& owner) : generation(std::move(s), owner) {}
    Generation generation;
    PoolSet::Lease lease;
  };

  // Acceptor
  StreamEvents& accept(Stream& stream) noexcept override {
    return Exchange::begin(env_, current_->generation, stream);
  }
  void rejected(Session& session, Fault why) noexcept override;
  // Connector
  std::unique_ptr<Dial> start(const DialTarget& target, SessionOwner& owner, DialHandler& handler) noexcept override {
    return Dial::start(worker_, *resolvers_.back(), target, owner, handler);
  }
  // GenerationOwner
  void on_generation_unused(Generation& g) noexcept override;
  // Timer
  void on_timer() noexcept override;

  Result<std::unique_ptr<TlsContext>> server_tls(const Snapshot& snapshot, std::size_t listener) const;
  Result<void> probe_addresses(const Snapshot& snapshot) const;
  Result<std::vector<Listening>> open_listeners(const Snapshot& snapshot, const std::vector<Address>* bound);
  void take_listeners(std::vector<Listening> next);
  void sweep() noexcept;

  Worker& worker_;
  Counters counters_;
  FrontStats closed_fronts_;  // of fronts that are no more
  HttpLimits limits_;         // changed in place: sessions see the new values at once
  std::vector<std::unique_ptr<Resolver>> resolvers_;  // last: in use; dials may wait for the others
  config::Dns dns_;
  ExchangeEnv env_;
  PoolSet pools_;
  std::vector<std::unique_ptr<OwnedGeneration>> generations_;
  OwnedGeneration* current_ = nullptr;
  std::vector<std::unique_ptr<TlsContext>> old_tls_;  // until the sessions made with them are gone
  std::vector<Listening> listening_;
  std::vector<Listening> leaving_;  // removed by a reload, draining
  std::move_only_function<void()> drained_;
  bool draining_ = false;
};

ShardImpl::~ShardImpl() {
  close();
  // What close() has ended lets go of us in the turns that follow.
  for (int i = 0; i < 3; ++i) worker_.turn(Duration::zero());
  leaving_.clear();
  listening_.clear();
  worker_.turn(Duration::zero());
}

// ---- configuration ------------------------------------------------------------------------------------

Result<std::unique_ptr<TlsContext>> ShardImpl::server_tls(const Snapshot& snapshot, std::size_t listener) const {
  const Snapshot::Listener& l = snapshot.listeners()[listener];
  if (!l.tls) return nullptr;
  const config::Tls settings = snapshot.config().listeners[listener].tls.value_or(config::Tls{});
  TlsServerOptions options;
  options.identities = l.identities;
  options.client_ca_file = settings.client_ca;
  options.client_cert_required = settings.client_cert_required && !settings.client_ca.empty();
  options.min_version = settings.min_version;
  options.ciphers = settings.ciphers;
  options.ciphersuites = settings.ciphersuites;
  options.groups = settings.groups;
  options.key_log_file = snapshot.config().key_log;
  options.alpn = server_alpn(versions_of(snapshot.config().listeners[listener]));
  options.ticket_keys = snapshot.secrets().ticket_keys;
  return TlsContext::server(options);
}

/// All before the first is opened: two of our own may share a port, as 0.0.0.0:80 and 127.0.0.1:80 do.
Result<void> ShardImpl::probe_addresses(const Snapshot& snapshot) const {
  for (const Snapshot::Listener& l : snapshot.listeners()) {
    const bool ours = std::ranges::any_of(listening_, [&](const Listening& o) { return o.front->address().port() == l.at.port(); });
    if (ours) continue;
    if (auto ok = Listener::probe(l.at); !ok) return ok;
  }
  return {};
}

/// One entry per configured listener; those whose front is null keep the one that is open.
Result<std::vector<ShardImpl::Listening>> ShardImpl::open_listeners(const Snapshot& snapshot,
                                                                    const std::vector<Address>* bound) {
  std::vector<Listening> out;
  const config::Config& c = snapshot.config();
  if (bound == nullptr)
    if (auto ok = probe_addresses(snapshot); !ok) return std::unexpected(ok.error());
  for (std::size_t i = 0; i < c.listeners.size(); ++i) {
    Listening l;
    l.url = c.listeners[i].url;
    l.versions = versions_of(c.listeners[i]);
    auto tls = server_tls(snapshot, i);
    if (!tls) return std::unexpected(tls.error());
    l.tls = std::move(*tls);
    if (std::ranges::find(listening_, l.url, &Listening::url) == listening_.end()) {
      FrontOptions options;
      options.at = bound != nullptr && i < bound->size() ? (*bound)[i] : snapshot.listeners()[i].at;
      options.listen.backlog = c.tcp.backlog;
      options.listen.tcp.congestion = c.tcp.congestion;
      options.handshake_timeout = c.timeouts.tls_handshake;
      options.max_connections = connections_per_worker(c);
      options.versions = l.versions;
      auto front = Front::open(worker_, options, l.tls.get(), *this, limits_);
      if (!front) return std::unexpected(front.error());
      l.front = std::move(*front);
    }
    out.push_back(std::move(l));
  }
  return out;
}

void ShardImpl::take_listeners(std::vector<Listening> next) {
  for (Listening& l : next) {
    if (l.front != nullptr) continue;
    const auto kept = std::ranges::find(listening_, l.url, &Listening::url);
    l.front = std::move(kept->front);
    l.front->set_tls(l.tls.get());
    l.front->set_versions(l.versions);
    if (kept->tls != nullptr) old_tls_.push_back(std::move(kept->tls));
    listening_.erase(kept);
  }
  for (Listening& l : listening_) {
    l.front->drain();
    leaving_.push_back(std::move(l));
  }
  listening_ = std::move(next);
}

Result<void> ShardImpl::reload(std::shared_ptr<const Snapshot> snapshot, const std::vector<Address>* bound) {
  if (draining_) return fail(Fault::draining, "shutting down: the configuration is not reloaded");
  if (auto ok = pools_.prepare(*snapshot); !ok) return ok;
  auto next = open_listeners(*snapshot, bound);
  if (!next) return std::unexpected(next.error());

  // From here on nothing fails.
  const config::Config& c = snapshot->config();
  set_limits(limits_, c);
  if (resolvers_.empty() || c.dns != dns_) {
    dns_ = c.dns;
    resolvers_.push_back(std::make_unique<Resolver>(worker_, resolver_options(c.dns)));
  }
  auto owned = std::make_unique<OwnedGeneration>(std::move(snapshot), static_cast<GenerationOwner&>(*this));
  owned->lease = pools_.fill(owned->generation);
  OwnedGeneration* const before = std::exchange(current_, owned.get());
  generations_.push_back(std::move(owned));
  take_listeners(std::move(*next));
  if (before != nullptr) before->generation.release();
  if (!armed()) worker_.arm(*this, kSweepLook);
  return {};
}

void ShardImpl::on_generation_unused(Generation& g) noexcept {
  const auto at = std::ranges::find(generations_, &g, [](const auto& o) { return &o->generation; });
  pools_.release((*at)->lease);
  worker_.retire(std::move(*at));
  generations_.erase(at);
}

// ---- requests -----------------------------------------------------------------------------------------

void ShardImpl::rejected(Session& session, Fault why) noexcept {
  ++counters_.rejected;
  counters_.count(why);
  ++counters_.responses[std::min<std::size_t>(info(why).http_status / 100, 5)];
  if (env_.observer != nullptr) env_.observer->on_rejected(session.peer(), why);
}

const Counters& ShardImpl::counters() noexcept {
  FrontStats sum = closed_fronts_;
  for (const auto* list : {&listening_, &leaving_}) {
    for (const Listening& l : *list) {
      sum.accepted += l.front->stats().accepted;
      sum.handshake_failures += l.front->stats().handshake_failures;
    }
  }
  counters_.slab_live_bytes = env_.exchanges.live_bytes() + env_.relays.live_bytes();
  counters_.slab_free_bytes = env_.exchanges.free_bytes() + env_.relays.free_bytes();
  counters_.connections = sum.accepted;
  counters_.handshake_failures = sum.handshake_failures;
  return counters_;
}

std::vector<Address> ShardImpl::addresses() const {
  std::vector<Address> out;
  for (const Listening& l : listening_) out.push_back(l.front->address());
  return out;
}

std::size_t ShardImpl::client_connections() const noexcept {
  std::size_t n = 0;
  for (const auto* list : {&listening_, &leaving_})
    for (const Listening& l : *list) n += l.front->connections();
  return n;
}

// ---- ends ---------------------------------------------------------------------------------------------

void ShardImpl::drain(std::move_only_function<void()> done) {
  draining_ = true;
  drained_ = std::move(done);
  for (Listening& l : listening_) l.front->drain();
  worker_.arm(*this, kDrainLook);
}

void ShardImpl::on_timer() noexcept {
  sweep();
  if (draining_ && client_connections() == 0 && counters_.exchanges_active == 0) {
    if (drained_) std::exchange(drained_, {})();
    return;
  }
  // Otherwise quiet: an idle worker sleeps.
  if (draining_)
    worker_.arm(*this, kDrainLook);
  else if (!leaving_.empty() || !old_tls_.empty())
    worker_.arm(*this, kSweepLook);
}

/// Lets go of what only old connections needed.
void ShardImpl::sweep() noexcept {
  std::erase_if(leaving_, [&](Listening& l) {
    if (l.front->connections() != 0) return false;
    closed_fronts_.accepted += l.front->stats().accepted;
    closed_fronts_.handshake_failures += l.front->stats().handshake_failures;
    worker_.retire(std::move(l.front));
    worker_.retire(std::move(l.tls));
    return true;
  });
  std::erase_if(old_tls_, [&](const std::unique_ptr<TlsContext>& tls) {
    return std::ranges::none_of(listening_, [&](const Listening& l) { return l.front->uses(*tls); });
  });
}

void ShardImpl::close() noexcept {
  draining_ = true;
  for (auto* list : {&listening_, &leaving_})
    for (Listening& l : *list) l.front->close();
  pools_.close();
}

}  // namespace

Result<std::unique_ptr<Shard>> Shard::open(Worker& worker, std::shared_ptr<const Snapshot> snapshot,
                                           ExchangeObserver* observer, const std::vector<Address>* bound) {
  // A peer that has gone makes splice(2) raise it; every write here looks at its result.
  std::signal(SIGPIPE, SIG_IGN);
  auto shard = std::make_unique<ShardImpl>(worker, observer);
  if (auto ok = shard->reload(std::move(snapshot), bound); !ok) return std::unexpected(ok.error());
  return shard;
}

}  // namespace twp
