#include "proxy/pool_set.h"

#include <algorithm>
#include <utility>

namespace twp {

PoolSet::~PoolSet() = default;

/// What makes two client contexts equal.
std::string PoolSet::tls_key(const Snapshot& snapshot, std::size_t cluster) {
  const config::Cluster& c = snapshot.config().clusters[cluster];
  return snapshot.clusters()[cluster].tls_files + (c.insecure ? "insecure;" : "verify;") + c.http + ';' +
         snapshot.config().key_log;
}

Result<void> PoolSet::prepare(const Snapshot& snapshot) {
  for (std::size_t i = 0; i < snapshot.clusters().size(); ++i) {
    const Snapshot::Cluster& cluster = snapshot.clusters()[i];
    if (std::ranges::none_of(cluster.origins, &Snapshot::Origin::tls)) continue;
    const std::string key = tls_key(snapshot, i);
    if (tls_.contains(key)) continue;
    TlsClientOptions options;
    options.ca_file = snapshot.config().clusters[i].ca;
    options.verify = !snapshot.config().clusters[i].insecure;
    options.identity = cluster.identity;
    options.key_log_file = snapshot.config().key_log;
    options.alpn = client_alpn(snapshot.config().clusters[i].http);
    auto context = TlsContext::client(options);
    if (!context) {
      drop_unused_tls();
      Error error = context.error();
      error.what = "cluster \"" + snapshot.config().clusters[i].name + "\": " + error.what;
      return std::unexpected(std::move(error));
    }
    tls_[key].context = std::move(*context);
  }
  return {};
}

PoolSet::Lease PoolSet::fill(Generation& generation) {
  const Snapshot& snapshot = *generation.snapshot;
  Lease lease_of_all;
  generation.clusters.reserve(snapshot.clusters().size());
  for (std::size_t i = 0; i < snapshot.clusters().size(); ++i) {
    const config::Cluster& c = snapshot.config().clusters[i];
    Cluster& cluster =
        generation.clusters.emplace_back(c.name, c.balance, worker_.now() * 0x9e3779b97f4a7c15u + worker_.index() + i);
    cluster.response_timeout = c.response_timeout;
    for (const Snapshot::Origin& o : snapshot.clusters()[i].origins) {
      OriginPool& pool = lease(snapshot, i, o);
      cluster.add({&pool, o.authority, o.label, o.weight, 0});
      lease_of_all.push_back(&pool);
    }
  }
  drop_unused_tls();
  return lease_of_all;
}

OriginPool& PoolSet::lease(const Snapshot& snapshot, std::size_t cluster, const Snapshot::Origin& origin) {
  const config::Cluster& c = snapshot.config().clusters[cluster];
  OriginKey key{origin.host,
                origin.port,
                origin.tls,
                !c.insecure,
                origin.http,
                origin.tls ? c.sni : "",
                origin.tls ? c.verify_name : "",
                origin.tls ? tls_key(snapshot, cluster) : "",
                c.source,
                snapshot.config().tcp.congestion,
                c.connect_timeout,
                c.idle_timeout,
                c.queue_timeout,
                c.max_connections,
                c.max_queue,
                c.max_idle};
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++found->second->leases;
    return *found->second->pool;
  }
  auto entry = std::make_unique<Entry>();
  entry->leases = 1;
  DialTarget& t = entry->target;
  t.host = origin.host;
  t.port = origin.port;
  t.tls = origin.tls;
  t.http = origin.http;
  t.sni = key.sni;
  t.verify_name = key.verify_name;
  t.tcp = {snapshot.config().tcp.congestion, snapshot.clusters()[cluster].source};
  t.connect_timeout = c.connect_timeout;
  t.limits = &limits_;
  if (origin.tls) {
    ClientTls& tls = tls_.at(key.tls_files);
    ++tls.pools;
    entry->tls_key = key.tls_files;
    t.tls_context = tls.context.get();
  }
  const PoolLimits limits{c.idle_timeout, c.queue_timeout, c.max_connections, c.max_queue, c.max_idle};
  entry->pool = std::make_unique<OriginPool>(worker_, connector_, entry->target, limits, counters_,
                                             static_cast<PoolOwner*>(this));
  entry->key = std::move(key);
  by_key_[entry->key] = entry.get();
  return *entries_.emplace_back(std::move(entry))->pool;
}

void PoolSet::release(const Lease& lease) noexcept {
  for (OriginPool* const pool : lease) {
    const auto e = std::ranges::find(entries_, pool, [](const auto& p) { return p->pool.get(); });
    if (--(*e)->leases != 0) continue;
    by_key_.erase((*e)->key);
    pool->shut_down();
  }
}

void PoolSet::on_pool_empty(OriginPool& pool) noexcept {
  const auto e = std::ranges::find(entries_, &pool, [](const auto& p) { return p->pool.get(); });
  if (e == entries_.end()) return;
  if (!(*e)->tls_key.empty()) --tls_.at((*e)->tls_key).pools;
  worker_.retire(std::move(*e));
  entries_.erase(e);
  drop_unused_tls();
}

void PoolSet::drop_unused_tls() noexcept {
  std::erase_if(tls_, [](const auto& entry) { return entry.second.pools == 0; });
}

void PoolSet::close() noexcept {
  for (const auto& e : entries_) e->pool->close();
}

}  // namespace twp
