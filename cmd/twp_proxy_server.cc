#include "cmd/twp_proxy_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <latch>

#include "base/arena.h"
#include "base/block.h"
#include "base/log.h"
#include "certs/file.h"
#include "cmd/cli_ready.h"
#include "cmd/twp_proxy_config.h"
#include "config/url.h"
#include "config/value.h"
#include "twp_build_info.h"

namespace twp::cli {

// ---- start --------------------------------------------------------------------------------------------

Result<void> Server::start(std::shared_ptr<const Snapshot> snapshot, const ProcessSecrets& secrets) {
  snapshot_ = std::move(snapshot);
  secrets_ = secrets;
  const unsigned workers = snapshot_->config().workers;
  for (unsigned i = 0; i < workers; ++i) lanes_.push_back(std::make_unique<Lane>());
  lanes_.front()->worker = std::make_unique<Worker>(0);
  install_signals();
  if (auto ok = open_lane(*lanes_.front(), nullptr); !ok) return ok;
  if (auto ok = start_threads(lanes_.front()->shard->addresses()); !ok) return ok;
  if (auto ok = open_admin(); !ok) return ok;
  if (auto ok = write_pid_file(); !ok) return ok;
  announce_in_log();
  return tell_ready();
}

// On the lane's own thread.
Result<void> Server::open_lane(Lane& lane, const std::vector<Address>* bound) {
  const std::string& file = snapshot_->config().access_log.file;
  if (!file.empty()) {
    auto log = AccessLog::open(*lane.worker, file);
    if (!log) return fail(Fault::io_error, log.error().what);
    lane.log = std::move(*log);
  }
  auto shard = Shard::open(*lane.worker, snapshot_, lane.log.get(), bound);
  if (!shard) return std::unexpected(shard.error());
  lane.shard = std::move(*shard);
  return {};
}

Result<void> Server::start_threads(const std::vector<Address>& bound) {
  std::latch opened(static_cast<std::ptrdiff_t>(lanes_.size()) - 1);
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    lane.thread = std::thread([this, &lane, &bound, &opened, i] {
      // Signals go to the main thread.
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      lane.worker = std::make_unique<Worker>(static_cast<unsigned>(i));
      Worker& worker = *lane.worker;
      if (auto ok = open_lane(lane, &bound); !ok) lane.error = ok.error().what;
      const bool run = lane.error.empty();
      opened.count_down();
      if (run) worker.run();
      lane.shard.reset();
      lane.log.reset();
      lane.worker.reset();
    });
  }
  opened.wait();
  for (const auto& lane : lanes_)
    if (!lane->error.empty()) return fail(Fault::io_error, lane->error);
  return {};
}

Result<void> Server::open_admin() {
  const std::string& url = snapshot_->config().admin;
  if (url.empty()) return {};
  const auto parsed = config::parse_listen_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  auto admin = Admin::open(main(), config::listen_address(*parsed), *this, {kVersion, kCommit, wall_now()});
  if (!admin) return fail(admin.error().fault, "admin: " + admin.error().what);
  admin_ = std::move(*admin);
  return {};
}

Result<void> Server::write_pid_file() {
  if (options_.pid_file.empty()) return {};
  auto ok = certs::write_file(options_.pid_file, std::to_string(::getpid()) + "\n", 0644, certs::Overwrite::yes);
  pid_file_written_ = ok.has_value();
  return ok;
}

std::vector<std::string> Server::listen_urls() const {
  std::vector<std::string> out;
  const auto addresses = lanes_.front()->shard->addresses();
  for (std::size_t i = 0; i < addresses.size(); ++i)
    out.push_back((snapshot_->listeners()[i].tls ? "https://" : "http://") + addresses[i].text());
  return out;
}

void Server::announce_in_log() const {
  std::string line = "listening on";
  for (const std::string& url : listen_urls()) line += " " + url;
  line += ", " + std::to_string(lanes_.size()) + (lanes_.size() == 1 ? " worker, to" : " workers, to");
  std::size_t shown = 0;
  for (const config::Cluster& c : snapshot_->config().clusters)
    for (const config::Origin& o : c.origins)
      if (++shown <= 4) line += " " + o.url;
  if (shown > 4) line += " and " + std::to_string(shown - 4) + " more";
  if (admin_ != nullptr) line += ", admin on http://" + admin_->address().text();
  log(LogLevel::info, line);
}

Result<void> Server::tell_ready() {
  const std::string admin = admin_ == nullptr ? std::string() : "http://" + admin_->address().text();
  return announce({"twp-proxy", listen_urls(), admin}, options_.ready_fd, options_.print_listen);
}

void Server::install_signals() {
  const auto on = [this](int signal, auto f) {
    if (!main().on_signal(signal, std::move(f))) log(LogLevel::warning, "cannot handle signal " + std::to_string(signal));
  };
  on(SIGTERM, [this] { on_stop_signal(); });
  on(SIGINT, [this] { on_stop_signal(); });
  on(SIGHUP, [this] { reload(); });
}

// ---- end ----------------------------------------------------------------------------------------------

void Server::run() { main().run(); }

Server::~Server() {
  if (lanes_.empty() || lanes_.front()->worker == nullptr) return;
  collections_.clear();
  admin_.reset();
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    if (!lane.thread.joinable()) continue;
    // A lane that did not start has ended, or is ending, its worker by itself.
    if (lane.error.empty()) lane.worker->stop();
    lane.thread.join();
  }
  cancel();
  Lane& first = *lanes_.front();
  first.shard.reset();
  first.log.reset();
  first.worker.reset();
  if (pid_file_written_) ::unlink(options_.pid_file.c_str());
}

void Server::on_stop_signal() {
  if (draining_) {
    log(LogLevel::info, "stopping at once");
    return main().stop();
  }
  draining_ = true;
  const Duration limit = snapshot_->config().timeouts.drain;
  if (limit == Duration::zero()) return main().stop();
  log(LogLevel::info, "draining for at most " + config::format_duration(limit) +
                          "; a second signal stops at once");
  main().arm(*this, limit);
  not_drained_ = lanes_.size();
  for (const auto& lane : lanes_) {
    lane->worker->post([this, &lane = *lane] {
      lane.shard->drain([this] { main().post([this] { drained_one(); }); });
    });
  }
}

void Server::drained_one() {
  if (--not_drained_ == 0) main().stop();
}

void Server::on_timer() noexcept {
  log(LogLevel::warning, "drain timeout: ending what is still in flight (timeouts.drain)");
  main().stop();
}

// ---- reload -------------------------------------------------------------------------------------------

std::string needs_restart(const config::Config& now, const config::Config& next) {
  std::string keys;
  const auto differs = [&keys](const char* key, bool yes) {
    if (yes) (keys += keys.empty() ? "" : ", ") += key;
  };
  // Of what runs, 0 has become a number already.
  differs("workers", now.workers != (next.workers != 0 ? next.workers : usable_cores()));
  differs("admin", now.admin != next.admin);
  differs("log_level", now.log_level != next.log_level);
  differs("access_log.file", now.access_log.file.empty() && !next.access_log.file.empty());
  return keys;
}

void Server::reload() {
  if (draining_) return;
  const auto keep = [](const std::string& why) { log(LogLevel::error, "reload: " + why + "; the old configuration stays"); };
  auto next = source_();
  if (!next) {
    for (const std::string& line : next.error()) log(LogLevel::error, line);
    return keep("the configuration has errors");
  }
  const std::string stuck = needs_restart(snapshot_->config(), *next);
  if (!stuck.empty()) log(LogLevel::warning, "reload: needs a restart to change: " + stuck);
  const config::Config& now = snapshot_->config();
  next->workers = now.workers;
  next->admin = now.admin;
  next->log_level = now.log_level;
  if (now.access_log.file.empty()) next->access_log.file.clear();
  auto snapshot = prepare(std::move(*next), secrets_);
  if (!snapshot) return keep(snapshot.error().what);
  // The first worker's turn decides: what it cannot open, nobody can.
  if (auto ok = lanes_.front()->shard->reload(*snapshot, nullptr); !ok) return keep(ok.error().what);
  reload_lanes(std::move(*snapshot));
}

void Server::reload_lanes(std::shared_ptr<const Snapshot> snapshot) {
  snapshot_ = snapshot;
  const auto bound = std::make_shared<const std::vector<Address>>(lanes_.front()->shard->addresses());
  // Who reads "reloaded" may count on it: the last worker to have taken the configuration says it.
  const auto missing = std::make_shared<std::atomic<std::size_t>>(lanes_.size());
  for (const auto& lane : lanes_) {
    const bool first = lane == lanes_.front();
    lane->worker->post([&lane = *lane, snapshot, bound, first, missing] {
      if (lane.log != nullptr)
        if (auto ok = lane.log->reopen(snapshot->config().access_log.file); !ok) log(LogLevel::error, ok.error().what);
      if (!first)
        if (auto ok = lane.shard->reload(snapshot, bound.get()); !ok)
          log(LogLevel::error, "reload of worker " + std::to_string(lane.worker->index()) + ": " + ok.error().what);
      if (missing->fetch_sub(1) == 1) log(LogLevel::info, "reloaded");
    });
  }
}

// ---- admin --------------------------------------------------------------------------------------------

void Server::collect(std::move_only_function<void(std::vector<WorkerSample>)> done) {
  const std::uint64_t number = ++last_collection_;
  collections_[number] = {{}, lanes_.size(), std::move(done)};
  for (const auto& lane : lanes_) {
    lane->worker->post([this, &lane = *lane, number] {
      WorkerSample s;
      s.counters = lane.shard->counters();
      s.client_connections = lane.shard->client_connections();
      s.blocks_live = BlockPool::local().live_blocks();
      s.blocks_free = BlockPool::local().free_blocks();
      s.arena_live_bytes = Arena::memory().live;
      s.arena_free_bytes = Arena::memory().free;
      s.turns = lane.worker->turns();
      main().post([this, number, s] { collected_one(number, s); });
    });
  }
}

void Server::collected_one(std::uint64_t number, WorkerSample sample) {
  const auto i = collections_.find(number);
  if (i == collections_.end()) return;
  i->second.samples.push_back(sample);
  if (--i->second.missing != 0) return;
  Collection whole = std::move(i->second);
  collections_.erase(i);
  whole.done(std::move(whole.samples));
}

}  // namespace twp::cli
