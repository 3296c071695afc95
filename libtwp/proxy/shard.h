// Shard: the proxy on one worker. Fronts, origin pools, resolver, TLS contexts, exchanges and counters; shares
// nothing with the other workers but the read-only Snapshot.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "event/worker.h"
#include "net/address.h"
#include "proxy/counters.h"
#include "proxy/exchange_record.h"
#include "proxy/snapshot.h"

namespace twp {

/// Every call belongs to the worker's own thread (or happens before it runs).
class Shard {
 public:
  /// Opens every listener. `bound`: real addresses of another shard's listeners, so that a port picked by one
  /// worker is shared by all; null for the first, which fails when another process has an address already. `observer` may be null; it outlives the shard.
  static Result<std::unique_ptr<Shard>> open(Worker& worker, std::shared_ptr<const Snapshot> snapshot,
                                             ExchangeObserver* observer, const std::vector<Address>* bound = nullptr);
  /// Ends everything that is left. Not from inside a callback of the shard.
  virtual ~Shard() = default;

  /// Swaps the configuration. Listeners with the same URL keep their socket, new ones open, removed ones
  /// drain; exchanges in flight finish with the configuration they began with; pools whose origin is unchanged
  /// keep their connections. On error nothing has changed.
  virtual Result<void> reload(std::shared_ptr<const Snapshot> snapshot, const std::vector<Address>* bound = nullptr) = 0;

  /// Stops accepting, closes idle connections, lets exchanges finish. `done` runs once, in a later turn, when
  /// no client connection is left.
  virtual void drain(std::move_only_function<void()> done) = 0;
  /// Ends every exchange and connection now.
  virtual void close() noexcept = 0;

  /// Real addresses of the listeners, in the order of Config::listeners.
  virtual std::vector<Address> addresses() const = 0;
  /// Up to date, gauges included.
  virtual const Counters& counters() noexcept = 0;
  virtual std::size_t client_connections() const noexcept = 0;
};

}  // namespace twp
