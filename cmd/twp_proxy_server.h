// The running proxy: one thread and shard a worker, signals, reload, drain, admin.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/config.h"
#include "event/worker.h"
#include "proxy/access_log.h"
#include "proxy/admin.h"
#include "proxy/shard.h"
#include "proxy/snapshot.h"

namespace twp::cli {

/// Where the configuration comes from: a file, or the command line. Called at start and on SIGHUP. Gives the errors,
/// one line each, instead of a configuration.
using ConfigSource = std::function<std::expected<config::Config, std::vector<std::string>>()>;

struct ServerOptions {
  int ready_fd = -1;
  bool print_listen = false;
  std::string pid_file;  ///< empty: none
};

class Server final : AdminSource, Timer {
 public:
  Server(ConfigSource source, ServerOptions options) : source_(std::move(source)), options_(std::move(options)) {}
  ~Server();

  /// Opens everything that `snapshot` names and starts the workers. After an error nothing listens.
  Result<void> start(std::shared_ptr<const Snapshot> snapshot, const ProcessSecrets& secrets);
  /// Serves until a signal says otherwise: SIGTERM or SIGINT drain, a second one ends at once, SIGHUP reloads.
  void run();

 private:
  /// A worker with what lives on its thread. The first one's thread is the main thread.
  struct Lane {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<AccessLog> log;
    std::unique_ptr<Shard> shard;
    std::thread thread;
    std::string error;  ///< why it could not start
  };
  struct Collection {
    std::vector<WorkerSample> samples;
    std::size_t missing = 0;
    std::move_only_function<void(std::vector<WorkerSample>)> done;
  };

  Result<void> open_lane(Lane& lane, const std::vector<Address>* bound);
  Result<void> start_threads(const std::vector<Address>& bound);
  Result<void> open_admin();
  Result<void> tell_ready();
  Result<void> write_pid_file();
  std::vector<std::string> listen_urls() const;
  void announce_in_log() const;
  void install_signals();
  void on_stop_signal();
  void drained_one();
  void on_timer() noexcept override;
  void reload();
  void reload_lanes(std::shared_ptr<const Snapshot> snapshot);
  // AdminSource
  void collect(std::move_only_function<void(std::vector<WorkerSample>)> done) override;
  bool draining() const noexcept override { return draining_; }
  void collected_one(std::uint64_t number, WorkerSample sample);

  Worker& main() noexcept { return *lanes_.front()->worker; }

  ConfigSource source_;
  ServerOptions options_;
  ProcessSecrets secrets_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Admin> admin_;
  std::map<std::uint64_t, Collection> collections_;
  std::uint64_t last_collection_ = 0;
  std::size_t not_drained_ = 0;
  bool draining_ = false;
  bool pid_file_written_ = false;
};

/// A line for the warning about what a reload cannot change; empty when nothing of that kind differs.
std::string needs_restart(const config::Config& now, const config::Config& next);

}  // namespace twp::cli
