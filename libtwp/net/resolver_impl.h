// What stands behind Resolver: c-ares on the worker's loop, and the cache. Private to net/.
#pragma once

#include <ares.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/resolver.h"

namespace twp {

class ResolverImpl;

/// One name: the last good answer, what is known of its failure, and who waits. The timer runs while an answer
/// is late and an old one could serve.
struct ResolverName final : Timer {
  ResolverName(ResolverImpl& o, std::string n) : owner(o), name(std::move(n)) {}
  void on_timer() noexcept override;

  ResolverImpl& owner;
  const std::string name;
  std::vector<Address> addresses;  // the last good answer; empty: never had one
  Instant fresh_until = 0;         // addresses are good without asking
  Instant stale_until = 0;         // addresses still serve while the resolver is down
  Instant failed_until = 0;        // do not ask again before
  std::string failure;             // text of the last failure
  IList<ResolveWaiter> waiters;
  bool asking = false;
  bool late = false;               // asking, and patience is over: old addresses serve
  Instant used = 0;                // for the choice of whom to forget
};

class ResolverImpl : Timer, Task {
 public:
  ResolverImpl(Worker& worker, const ResolverOptions& options);
  ~ResolverImpl();
  void resolve(const std::string& host, ResolveWaiter& waiter) noexcept;
  void answer_is_late(ResolverName& n) noexcept;

 private:
  class Socket;
  struct Query;

  void on_timer() noexcept override;
  void run() noexcept override;  // buries closed sockets, re-arms the timer
  void ask(ResolverName& n) noexcept;
  void answered(ResolverName& n, int status, const ares_addrinfo* info) noexcept;
  void tell(ResolverName& n) noexcept;
  void socket_state(ares_socket_t fd, bool readable, bool writable) noexcept;
  void socket_ready(ares_socket_t fd, unsigned events) noexcept;
  void follow_up() noexcept { worker_.schedule(Phase::flush, *this); }
  ResolverName& entry(const std::string& name);
  void forget_some() noexcept;

  Worker& worker_;
  ResolverOptions options_;
  ares_channel_t* channel_ = nullptr;
  std::string broken_;  // why there is no channel
  std::unordered_map<std::string, std::unique_ptr<ResolverName>> names_;
  std::map<ares_socket_t, std::unique_ptr<Socket>> sockets_;
};

}  // namespace twp
