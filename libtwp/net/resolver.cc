#include "net/resolver.h"

#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/log.h"
#include "net/resolver_impl.h"

namespace twp {
namespace {

// Names are an operator's or, for a forward proxy, anybody's: the cache must not grow with the latter.
constexpr std::size_t kMaxNames = 4096;

// How long an answer may take before an old one is used instead (RFC 8767 §5 has 1.8 s for people who wait).
constexpr Duration kPatience = std::chrono::seconds(1);

std::uint64_t ns(Duration d) noexcept { return static_cast<std::uint64_t>(std::max(d, Duration::zero()).count()); }

}  // namespace

/// One of c-ares's sockets, watched for both edges for as long as c-ares has it open.
class ResolverImpl::Socket final : public PollHandler {
 public:
  Socket(ResolverImpl& owner, ares_socket_t fd) noexcept : owner_(owner), fd_(fd) {}
  ~Socket() { poll_.release(); }  // c-ares closes it
  bool open(Worker& worker) noexcept { return poll_.watch(worker, fd_, *this); }
  void release() noexcept { poll_.release(); }
  void on_poll(Ready ready) noexcept override {
    unsigned events = ARES_FD_EVENT_NONE;
    if (ready.readable) events |= ARES_FD_EVENT_READ;
    if (ready.writable) events |= ARES_FD_EVENT_WRITE;
    owner_.socket_ready(fd_, events);
  }

 private:
  ResolverImpl& owner_;
  const ares_socket_t fd_;
  PollFd poll_;
};

struct ResolverImpl::Query {
  ResolverImpl* owner;
  ResolverName* name;
};

ResolverImpl::ResolverImpl(Worker& worker, const ResolverOptions& options) : worker_(worker), options_(options) {
  static const int library = ares_library_init(ARES_LIB_INIT_ALL);
  ares_options o{};
  o.flags = ARES_FLAG_EDNS;
  o.timeout = static_cast<int>(std::clamp<std::int64_t>(options.timeout.count() / 1'000'000, 1, 60'000));
  o.maxtimeout = o.timeout;  // per try, as the option says; c-ares would double it
  o.tries = static_cast<int>(std::clamp(options.tries, 1u, 20u));
  o.qcache_max_ttl = 0;      // one cache is enough
  o.sock_state_cb = [](void* self, ares_socket_t fd, int r, int w) {
    static_cast<ResolverImpl*>(self)->socket_state(fd, r != 0, w != 0);
  };
  o.sock_state_cb_data = this;
  std::string hosts = options.hosts_file;
  o.hosts_path = hosts.data();
  int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_MAXTIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_QUERY_CACHE |
             ARES_OPT_SOCK_STATE_CB;
  if (!hosts.empty()) mask |= ARES_OPT_HOSTS_FILE;
  int rc = library != ARES_SUCCESS ? library : ares_init_options(&channel_, &o, mask);
  if (rc == ARES_SUCCESS && !options.servers.empty()) rc = ares_set_servers_ports_csv(channel_, options.servers.c_str());
  if (rc == ARES_SUCCESS) return;
  broken_ = std::string("the resolver cannot start: ") + ares_strerror(rc);
  log(LogLevel::error, broken_ + (options.servers.empty() ? "" : " (servers '" + options.servers + "')"));
}

ResolverImpl::~ResolverImpl() {
  // Waiters deregister silently; c-ares then ends every query with ARES_EDESTRUCTION, which answered() ignores.
  for (auto& [name, n] : names_)
    while (!n->waiters.empty()) n->waiters.pop_front();
  if (channel_ != nullptr) ares_destroy(channel_);
}

ResolverName& ResolverImpl::entry(const std::string& name) {
  auto& slot = names_[name];
  if (slot == nullptr) slot = std::make_unique<ResolverName>(*this, name);
  slot->used = worker_.now();
  return *slot;
}

void ResolverImpl::forget_some() noexcept {
  if (names_.size() <= kMaxNames) return;
  // Rare: everything not used for longer than the median goes, so that this cost is paid once per thousands of names.
  std::vector<Instant> ages;
  for (const auto& [name, n] : names_) ages.push_back(n->used);
  std::nth_element(ages.begin(), ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2), ages.end());
  const Instant median = ages[ages.size() / 2];
  std::erase_if(names_, [&](const auto& e) { return !e.second->asking && e.second->waiters.empty() && e.second->used <= median; });
}

void ResolverImpl::resolve(const std::string& host, ResolveWaiter& waiter) noexcept {
  waiter.unlink();
  if (const auto literal = Address::parse(host, 0)) return waiter.on_resolved({*literal});
  std::string name = lower(host);
  if (name.empty() || name.size() > 254) return waiter.on_resolve_failed("'" + host + "' is not a host name");
  forget_some();
  ResolverName& n = entry(name);
  const Instant now = worker_.now();
  if (now < n.fresh_until) return waiter.on_resolved(std::vector(n.addresses));
  if (!n.asking && now < n.failed_until) {
    if (!n.addresses.empty() && now < n.stale_until) return waiter.on_resolved(std::vector(n.addresses));
    return waiter.on_resolve_failed(n.failure);
  }
  if (n.asking && n.late && now < n.stale_until) return waiter.on_resolved(std::vector(n.addresses));
  n.waiters.push_back(waiter);
  if (!n.asking) ask(n);
}

void ResolverImpl::ask(ResolverName& n) noexcept {
  n.asking = true;
  n.late = false;
  if (!n.addresses.empty()) worker_.arm(n, kPatience);
  if (channel_ == nullptr || !broken_.empty()) return answered(n, ARES_ENOTINITIALIZED, nullptr);
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;  // one node per address
  // May answer before it returns (hosts file, names that cannot exist).
  ares_getaddrinfo(
      channel_, n.name.c_str(), nullptr, &hints,
      [](void* arg, int status, int, ares_addrinfo* info) {
        const std::unique_ptr<Query> q(static_cast<Query*>(arg));
        if (status != ARES_EDESTRUCTION) q->owner->answered(*q->name, status, info);
        ares_freeaddrinfo(info);
      },
      new Query{this, &n});
  follow_up();
}

void ResolverImpl::answered(ResolverName& n, int status, const ares_addrinfo* info) noexcept {
  n.asking = false;
  n.cancel();
  const Instant now = worker_.now();
  std::vector<Address> found;
  std::uint64_t ttl = ns(options_.max_ttl);
  for (const ares_addrinfo_node* node = info == nullptr ? nullptr : info->nodes; node != nullptr; node = node->ai_next) {
    Address a = Address::from_sockaddr(node->ai_addr);
    if (!a.valid()) continue;
    a.set_port(0);
    if (std::find(found.begin(), found.end(), a) == found.end()) found.push_back(a);
    ttl = std::min(ttl, static_cast<std::uint64_t>(std::max(node->ai_ttl, 0)) * 1'000'000'000u);
  }
  if (status == ARES_SUCCESS && !found.empty()) {
    // c-ares gives entries of the hosts file TTL 0: they live as long as the shortest answer.
    n.addresses = std::move(found);
    n.fresh_until = now + std::max(ttl, ns(options_.min_ttl));
    n.stale_until = n.fresh_until + ns(options_.stale_for);
    n.failed_until = 0;
    n.failure.clear();
    return tell(n);
  }
  n.failure = "cannot resolve '" + n.name + "': " +
              (!broken_.empty() ? broken_ : status == ARES_SUCCESS ? "no address" : ares_strerror(status));
  n.failed_until = now + ns(options_.negative_ttl);
  // A server that says "there is no such name" is not down: the old answer dies with it.
  if (status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS) n.addresses.clear();
  tell(n);
}

void ResolverName::on_timer() noexcept { owner.answer_is_late(*this); }

void ResolverImpl::answer_is_late(ResolverName& n) noexcept {
  if (worker_.now() >= n.stale_until) return;
  n.late = true;
  tell(n);
}

void ResolverImpl::tell(ResolverName& n) noexcept {
  // Waiters may ask again or destroy themselves and others from inside; each leaves the list before it is told.
  IList<ResolveWaiter> batch;
  batch.splice_back(n.waiters);
  const bool good = !n.addresses.empty() && worker_.now() < n.stale_until;
  const std::vector<Address> addresses = n.addresses;
  const std::string failure = n.failure;
  while (!batch.empty()) {
    ResolveWaiter& w = batch.pop_front();
    if (good)
      w.on_resolved(addresses);
    else
      w.on_resolve_failed(failure);
  }
}

void ResolverImpl::socket_state(ares_socket_t fd, bool readable, bool writable) noexcept {
  auto it = sockets_.find(fd);
  if (!readable && !writable) {
    if (it == sockets_.end()) return;
    // Unwatched now, since c-ares closes it next. We may be inside its on_poll(): the object goes later.
    it->second->release();
    worker_.retire(std::move(it->second));
    sockets_.erase(it);
    return;
  }
  if (it != sockets_.end()) return;  // both edges are watched from the start
  auto s = std::make_unique<Socket>(*this, fd);
  if (s->open(worker_)) sockets_.emplace(fd, std::move(s));  // else the query runs into its timeout
}

void ResolverImpl::socket_ready(ares_socket_t fd, unsigned events) noexcept {
  const ares_fd_events_t e{fd, events};
  ares_process_fds(channel_, &e, 1, ARES_PROCESS_FLAG_NONE);
  follow_up();
}

void ResolverImpl::on_timer() noexcept {
  ares_process_fds(channel_, nullptr, 0, ARES_PROCESS_FLAG_NONE);
  follow_up();
}

void ResolverImpl::run() noexcept {
  if (channel_ == nullptr) return;
  timeval tv{};
  if (ares_timeout(channel_, nullptr, &tv) == nullptr) return cancel();
  worker_.arm(*this, std::chrono::seconds(tv.tv_sec) + std::chrono::microseconds(tv.tv_usec) + std::chrono::milliseconds(1));
}

struct Resolver::Impl : ResolverImpl {
  using ResolverImpl::ResolverImpl;
};

Resolver::Resolver(Worker& worker, const ResolverOptions& options) : impl_(std::make_unique<Impl>(worker, options)) {}
Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& host, ResolveWaiter& waiter) noexcept { impl_->resolve(host, waiter); }

}  // namespace twp
