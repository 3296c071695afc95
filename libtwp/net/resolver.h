// Resolver: names to addresses with c-ares on the worker's own loop (resolv.conf, hosts file, search list).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ilist.h"
#include "base/result.h"
#include "event/worker.h"
#include "net/address.h"

namespace twp {

struct ResolverOptions {
  std::string servers;                                 ///< "127.0.0.1:5353,..."; empty: the system's
  std::string hosts_file = "/etc/hosts";
  Duration timeout = std::chrono::seconds(2);          ///< per try
  unsigned tries = 3;
  Duration min_ttl = std::chrono::seconds(1);          ///< a shorter TTL counts as this
  Duration max_ttl = std::chrono::minutes(5);
  Duration negative_ttl = std::chrono::seconds(2);     ///< a failed name is not asked again sooner
  Duration stale_for = std::chrono::minutes(10);       ///< old addresses are used while the resolver is down
};

/// Waits for an answer. Deregisters itself when destroyed; embed it in whoever asks.
class ResolveWaiter : public IListHook<> {
 public:
  /// At least one address, IPv6 and IPv4 in the order RFC 6724 gives, port 0. The vector is valid during the call.
  virtual void on_resolved(const std::vector<Address>& addresses) noexcept = 0;
  virtual void on_resolve_failed(const std::string& detail) noexcept = 0;

 protected:
  ~ResolveWaiter() = default;
};

/// One per worker. Caches by TTL, joins equal questions, keeps the last good answer when a refresh fails.
class Resolver {
 public:
  Resolver(Worker& worker, const ResolverOptions& options);
  ~Resolver();

  /// Answers from the cache or an IP literal at once (before returning) or later through `waiter`.
  void resolve(const std::string& host, ResolveWaiter& waiter) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace twp
