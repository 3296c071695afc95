// Snapshot: a configuration made ready once (files read, addresses parsed, routes compiled) and shared,
// read-only, by all workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "net/address.h"
#include "proxy/router.h"
#include "tls/tls_context.h"

namespace twp {

/// What stays the same for the whole life of the process, whatever is reloaded.
struct ProcessSecrets {
  TlsTicketKeys ticket_keys;
  std::string instance;  ///< random lower-case hex, tells this process from others with its Via pseudonym
  static ProcessSecrets random();
};

class Snapshot {
 public:
  struct Listener {
    Address at;       ///< port 0: pick one
    bool tls = false;
    std::vector<std::shared_ptr<const TlsIdentity>> identities;
  };
  struct Origin {
    std::string host;       ///< without brackets
    std::uint16_t port = 0;
    bool tls = false;
    std::string http;       ///< protocol of its sessions, as DialTarget::http
    unsigned weight = 1;
    std::string authority;  ///< host[:port] as a Host field; no port when it is the scheme's own
    std::string label;      ///< "host:port", for logs
  };
  struct Cluster {
    std::vector<Origin> origins;
    std::shared_ptr<const TlsIdentity> identity;  ///< client certificate or null
    Address source;                               ///< invalid: any
    std::string tls_files;  ///< changes when a file that the TLS settings name has changed
  };

  /// `config` must have passed validation. `issued` holds certificates made in this process, as Config::listeners; a null
  /// or missing one means the listener's own files. Errors are one line with the key and the cause. Opens no socket.
  static Result<std::shared_ptr<const Snapshot>> prepare(config::Config config, const ProcessSecrets& secrets,
                                                         const std::vector<std::shared_ptr<const TlsIdentity>>& issued = {});

  const config::Config& config() const noexcept { return config_; }
  const std::vector<Listener>& listeners() const noexcept { return listeners_; }  ///< as Config::listeners
  const std::vector<Cluster>& clusters() const noexcept { return clusters_; }     ///< as Config::clusters
  const Router& router() const noexcept { return *router_; }
  const ProcessSecrets& secrets() const noexcept { return secrets_; }

  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Snapshot() = default;
  config::Config config_;
  std::vector<Listener> listeners_;
  std::vector<Cluster> clusters_;
  std::unique_ptr<const Router> router_;
  ProcessSecrets secrets_;
};

}  // namespace twp
