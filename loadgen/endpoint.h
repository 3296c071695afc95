// Endpoint: whom a load's connections go to and how, on one worker.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "http/limits.h"
#include "loadgen/plan.h"
#include "proxy/dialer.h"
#include "tls/tls_context.h"

namespace twp::load {

/// Stays where it is: its target points into it.
class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// `lanes`: requests in flight that one connection must be able to carry. Error: one line (the CA file, --connect-to).
  Result<void> prepare(const Plan& plan, unsigned lanes);
  const DialTarget& target() const noexcept { return target_; }
  /// No connection is left that was made with it.
  void release_tls() noexcept { tls_.reset(); }

 private:
  std::unique_ptr<TlsContext> tls_;
  HttpLimits limits_;
  DialTarget target_;
};

/// What the user is told of a connection that could not be opened: one line.
std::string dial_failure(Fault why, const std::string& detail);

/// Finds out by one handshake which version of HTTP the server chooses when the plan leaves that open ("auto"), and
/// settles it. Returns at once when nothing is open. Blocks for at most the time that a connection may take. Error: as
/// of a connection that cannot be opened.
Result<void> negotiate(Plan& plan);

}  // namespace twp::load
