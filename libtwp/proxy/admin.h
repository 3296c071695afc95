// Admin: /metrics, /healthz and /memory on a loopback listener, over the proxy's own Front and sessions.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "event/worker.h"
#include "net/address.h"
#include "proxy/metrics.h"

namespace twp {

/// Where the answers come from.
class AdminSource {
 public:
  /// Asks every worker for a sample; `done` runs later on the admin's worker.
  virtual void collect(std::move_only_function<void(std::vector<WorkerSample>)> done) = 0;
  virtual bool draining() const noexcept = 0;

 protected:
  ~AdminSource() = default;
};

/// GET and HEAD of
///   /metrics  Prometheus text (prometheus_text)
///   /healthz  200 "ok", or 503 "draining" from the moment a drain begins
///   /memory   memory_json
/// anything else is 404 or 405. The request's authority must be an IP address or localhost (421 otherwise), so
/// that no page in a browser reaches it by rebinding a name. Worker thread only.
class Admin {
 public:
  /// `at` must be a loopback address. `source` outlives the admin.
  static Result<std::unique_ptr<Admin>> open(Worker& worker, const Address& at, AdminSource& source, ProcessInfo process);
  virtual ~Admin() = default;
  virtual const Address& address() const noexcept = 0;
};

}  // namespace twp
