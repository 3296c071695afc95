// Out of descriptors: the listener stops, does not spin, and comes back. In a child process, whose limit is lowered.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "net_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

/// Runs `f` in a child and expects it to return 0; other values tell the line that failed.
template <class F>
void in_child(F f) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  BOOST_REQUIRE(pid >= 0);
  if (pid == 0) _exit(f());
  int status = 0;
  BOOST_REQUIRE(waitpid(pid, &status, 0) == pid);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 0, "failed at step " << WEXITSTATUS(status));
}

std::size_t connect_many(const Address& at, std::vector<int>& fds, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return i;
    ::connect(fd, at.sa(), at.length());
    fds.push_back(fd);
  }
  return n;
}

int out_of_descriptors() {
  constexpr std::size_t kLimit = 512;
  constexpr std::size_t kClients = 280;
  const rlimit limit{kLimit, kLimit};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  const int quiet = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(quiet, STDERR_FILENO);
  ::close(quiet);
  Worker w;
  Acceptor acceptor;
  auto listener = Listener::open(w, *Address::parse("127.0.0.1", 0), {}, acceptor);
  if (!listener) return 2;
  // Clients and servers share the limit: so many clients leave too little for as many accepted sockets.
  std::vector<int> clients;
  if (connect_many((*listener)->address(), clients, kClients) != kClients) return 3;
  const Instant end = monotonic_now() + 1'000'000'000u;
  const std::uint64_t turns = w.turns();
  while (monotonic_now() < end) w.turn(std::chrono::milliseconds(500));
  // Ten wake-ups a second are the timer's; a spinning loop makes thousands.
  if (w.turns() - turns > 80) return 4;
  const std::size_t taken = acceptor.accepted.size();
  if (taken == 0 || taken >= kClients) return 5;
  // Room is left for connections to origins, and not much more than that.
  const int spare = ::dup(STDERR_FILENO);
  const int left = static_cast<int>(kLimit) - spare;
  ::close(spare);
  if (spare < 0 || left < 60 || left > 70) return 6;
  for (auto& t : acceptor.accepted) t->close(Fault::none);
  if (!turn_until(w, [&] {
        for (auto& t : acceptor.accepted) t->close(Fault::none);
        return acceptor.accepted.size() >= kClients;
      }))
    return 7;
  // And a new client is served as before.
  for (const int fd : clients) ::close(fd);
  std::vector<int> more;
  connect_many((*listener)->address(), more, 1);
  return turn_until(w, [&] { return acceptor.accepted.size() > kClients; }) ? 0 : 8;
}

int truly_out() {
  // The limit falls after the listener has looked at it: accept4() itself says EMFILE.
  const int quiet = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(quiet, STDERR_FILENO);
  ::close(quiet);
  Worker w;
  Acceptor acceptor;
  auto listener = Listener::open(w, *Address::parse("127.0.0.1", 0), {}, acceptor);
  if (!listener) return 1;
  std::vector<int> clients;
  connect_many((*listener)->address(), clients, 5);
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  const rlimit low{static_cast<rlim_t>(next), old.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
  const std::uint64_t turns = w.turns();
  const Instant end = monotonic_now() + 500'000'000u;
  while (monotonic_now() < end) w.turn(std::chrono::milliseconds(250));
  if (!acceptor.accepted.empty()) return 3;
  if (w.turns() - turns > 50) return 4;
  setrlimit(RLIMIT_NOFILE, &old);
  return turn_until(w, [&] { return acceptor.accepted.size() == 5; }) ? 0 : 5;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(listener)

BOOST_AUTO_TEST_CASE(backs_off_near_the_limit_and_recovers) { in_child(out_of_descriptors); }
BOOST_AUTO_TEST_CASE(backs_off_at_the_limit_and_recovers) { in_child(truly_out); }

BOOST_AUTO_TEST_SUITE_END()
