#include "origin/server.h"

#include <signal.h>

#include <thread>

#include "event/worker.h"
#include "net/listener.h"
#include "origin/site.h"

namespace twp::origin {
namespace {

constexpr Duration kDrainLook = std::chrono::milliseconds(5);

// An origin for tests must not be what ends them: slow uploads and long silences are what some tests are about.
HttpLimits origin_limits() noexcept {
  HttpLimits limits;
  limits.min_body_rate = 0;
  limits.keep_alive_timeout = std::chrono::minutes(10);
  limits.h2_connection_window = 16 * 1024 * 1024;
  limits.h2_glitch_burst = 1'000'000'000;  // clients that reset their streams are what some tests are about as well
  return limits;
}

}  // namespace

// One worker with its listeners. Lives and dies on its own thread once run() has begun.
struct Server::Shard final : Timer {
  explicit Shard(unsigned index) : worker(index), site(worker) {}

  void drain(Duration at_most) noexcept {
    for (auto& f : fronts) f->drain();
    give_up = worker.now() + static_cast<Instant>(at_most.count());
    worker.arm(*this, Duration::zero());
  }
  void on_timer() noexcept override {
    std::size_t open = 0;
    for (auto& f : fronts) open += f->connections();
    if (open == 0 || worker.now() >= give_up) stop();
    else worker.arm(*this, kDrainLook);
  }
  void stop() noexcept {
    for (auto& f : fronts) f->close();
    worker.stop();
  }
  void run() noexcept {
    worker.run();
    fronts.clear();
    worker.turn(Duration::zero());  // retires what closing has left behind
  }

  Worker worker;
  Site site;
  HttpLimits limits = origin_limits();
  std::unique_ptr<TlsContext> tls;
  std::vector<std::unique_ptr<Front>> fronts;
  Instant give_up = 0;
};

Server::Server() = default;
Server::~Server() = default;

Result<void> Server::open_shard(const ServerOptions& options, const TlsTicketKeys& tickets) {
  auto shard = std::make_unique<Shard>(static_cast<unsigned>(shards_.size()));
  bool encrypted = false;
  for (const config::Url& url : options.listen) encrypted |= url.encrypted();
  if (encrypted) {
    TlsServerOptions tls;
    tls.identities = options.identities;
    tls.ticket_keys = tickets;
    tls.key_log_file = options.key_log_file;
    tls.alpn = server_alpn(options.versions);
    auto context = TlsContext::server(tls);
    if (!context) return std::unexpected(context.error());
    shard->tls = std::move(*context);
  }
  for (std::size_t i = 0; i < options.listen.size(); ++i) {
    FrontOptions front;
    // The first worker picks the port where the person left it open; the others share it.
    front.at = i < addresses_.size() ? addresses_[i] : config::listen_address(options.listen[i]);
    front.versions = options.versions;
    front.listen.tcp.congestion = options.congestion;
    TlsContext* tls = options.listen[i].encrypted() ? shard->tls.get() : nullptr;
    auto opened = Front::open(shard->worker, front, tls, shard->site, shard->limits);
    if (!opened) return std::unexpected(opened.error());
    if (i == addresses_.size()) addresses_.push_back((*opened)->address());
    shard->fronts.push_back(std::move(*opened));
  }
  shards_.push_back(std::move(shard));
  return {};
}

Result<std::unique_ptr<Server>> Server::open(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server);
  server->drain_timeout_ = options.drain_timeout;
  const TlsTicketKeys tickets = TlsTicketKeys::random();
  for (const config::Url& url : options.listen)
    if (auto ok = Listener::probe(config::listen_address(url)); !ok) return std::unexpected(ok.error());
  for (unsigned i = 0; i < options.threads; ++i)
    if (auto ok = server->open_shard(options, tickets); !ok) return std::unexpected(ok.error());
  // Before anybody is told that it is ready: from then on a signal means a drain.
  ::signal(SIGPIPE, SIG_IGN);
  for (const int sig : {SIGINT, SIGTERM})
    server->shards_.front()->worker.on_signal(sig, [s = server.get()] { s->on_signal(); });
  for (std::size_t i = 0; i < options.listen.size(); ++i)
    server->urls_.push_back(std::string(config::scheme_text(options.listen[i].scheme)) + "://" + server->addresses_[i].text());
  return server;
}

void Server::on_signal() {
  const bool now = ++signals_ > 1;
  for (auto& s : shards_)
    s->worker.post([shard = s.get(), now, at_most = drain_timeout_] {
      if (now) shard->stop();
      else shard->drain(at_most);
    });
}

void Server::run() {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < shards_.size(); ++i) threads.emplace_back([shard = shards_[i].get()] { shard->run(); });
  shards_.front()->run();
  // Worker 0 has the signals; it may be drained before the others are, and a second signal must still reach them.
  bool waiting = true;
  std::thread joiner([&] {
    for (auto& t : threads) t.join();
    shards_.front()->worker.post([&] { waiting = false; });
  });
  while (waiting) shards_.front()->worker.turn(std::chrono::seconds(1));
  joiner.join();
}

}  // namespace twp::origin
