// PoolSet: the origin pools of one worker and the TLS contexts they dial with, shared by configurations.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "proxy/generation.h"
#include "proxy/origin_key.h"
#include "proxy/origin_pool.h"
#include "tls/tls_context.h"

namespace twp {

/// A pool lives as long as a generation uses it; a configuration that names the same origin with the same
/// settings (see OriginKey) finds the pool of the one before, with its connections.
class PoolSet final : PoolOwner {
 public:
  /// Pools that one generation uses. Must be given back with release().
  using Lease = std::vector<OriginPool*>;

  /// `limits`, `counters` and `connector` outlive the set.
  PoolSet(Worker& worker, Connector& connector, const HttpLimits& limits, Counters& counters) noexcept
      : worker_(worker), connector_(connector), limits_(limits), counters_(counters) {}
  ~PoolSet();

  /// Makes what can fail: the TLS contexts of every cluster. Changes nothing that is in use.
  Result<void> prepare(const Snapshot& snapshot);
  /// Adds the clusters of `generation`'s snapshot, which was prepared, to it.
  Lease fill(Generation& generation);
  /// Pools that nobody uses any more are shut down and go when they are empty.
  void release(const Lease& lease) noexcept;
  /// Ends every connection now.
  void close() noexcept;

 private:
  struct ClientTls {
    std::unique_ptr<TlsContext> context;
    unsigned pools = 0;
  };
  struct Entry {
    OriginKey key;
    std::string tls_key;
    DialTarget target;
    std::unique_ptr<OriginPool> pool;
    unsigned leases = 0;
  };

  void on_pool_empty(OriginPool& pool) noexcept override;
  OriginPool& lease(const Snapshot& snapshot, std::size_t cluster, const Snapshot::Origin& origin);
  static std::string tls_key(const Snapshot& snapshot, std::size_t cluster);
  void drop_unused_tls() noexcept;

  Worker& worker_;
  Connector& connector_;
  const HttpLimits& limits_;
  Counters& counters_;
  std::map<std::string, ClientTls> tls_;
  std::map<OriginKey, Entry*> by_key_;          // those that a new generation may use
  std::vector<std::unique_ptr<Entry>> entries_;  // all, also those that are going
};

}  // namespace twp
