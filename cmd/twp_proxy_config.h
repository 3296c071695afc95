// From the command line, or a file, to a configuration that is ready to run.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "proxy/snapshot.h"

namespace twp::cli {

/// What `twp-proxy reverse` and `run` take. Empty and unset: the configuration's own default.
struct ProxyArguments {
  std::string file;  // run -c
  std::vector<std::string> listen, to;
  std::vector<std::string> cert, key;
  std::string ca;
  std::string inspect;
  std::string admin, origin_http, origin_ca, drain_timeout, access_log, key_log, congestion, workers;
  bool origin_insecure = false;
  std::vector<std::string> sets;
  // Not part of the configuration.
  int ready_fd = -1;
  bool print_listen = false;
  std::string pid_file;
};

using ConfigOrErrors = std::expected<config::Config, std::vector<std::string>>;

/// The file when `a.file` is set, else the flags; then what both share and --set; then checked as a whole. Errors are
/// one line each, without a trailing newline.
ConfigOrErrors make_config(const ProxyArguments& a);

/// workers = 0 becomes the number of cores that this process may use.
unsigned usable_cores();

/// Files read, certificates issued for listeners with tls.ca, keys checked against certificates, CA bundles
/// parsed. Opens no socket. Errors are bad_config.
Result<std::shared_ptr<const Snapshot>> prepare(config::Config config, const ProcessSecrets& secrets);

}  // namespace twp::cli
