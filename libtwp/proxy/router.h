// Router: which cluster a request goes to. First match of the configured routes wins.
#pragma once

#include <cstdint>
#include <memory>

#include "config/config.h"
#include "http/head.h"

namespace twp {

/// Where a request goes.
struct RouteTarget {
  std::uint32_t cluster = 0;             ///< index into Config::clusters
  bool preserve_host = true;             ///< send the client's authority; false: the origin's
  const config::Route* route = nullptr;  ///< the route that matched, for logs
};

/// Immutable once made, so one Router serves every worker.
class Router {
 public:
  /// `config` outlives the router and was validated: every route names an existing cluster.
  explicit Router(const config::Config& config);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Thread-safe, allocates nothing. nullptr: no route matches (404). Host names compare without case and
  /// without the port; the path compares up to '?'.
  const RouteTarget* find(const Head& request) const noexcept;

 private:
  struct Table;
  std::unique_ptr<const Table> table_;
};

}  // namespace twp
