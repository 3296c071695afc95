#include "net/listener.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/log.h"

namespace twp {
namespace {

constexpr unsigned kAcceptsPerWake = 64;
constexpr unsigned kMostWaiting = 65536;
constexpr Duration kBackOff = std::chrono::milliseconds(100);

constexpr rlim_t kReserve = 64;  // descriptors that clients leave to origins, where there are enough

// A descriptor number tells how many are in use: the kernel always hands out the lowest free one, here `mine`.
int busy_threshold(int mine) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::numeric_limits<int>::max();
  const rlim_t all = limit.rlim_cur;
  const rlim_t free = all - std::min(all, static_cast<rlim_t>(mine));
  const rlim_t reserve = std::max(all / 20, std::min(free / 2, kReserve));
  return static_cast<int>(std::min<rlim_t>(all - reserve, std::numeric_limits<int>::max()));
}

bool set_flag(int fd, int level, int option, int value) noexcept {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// What decides whether two sockets may share an address. The step that failed, or null.
const char* share(int fd, const Address& at, bool reuse_port) noexcept {
  if (!set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1)) return "SO_REUSEADDR";
  if (reuse_port && !set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return "SO_REUSEPORT";
  if (at.family() == AF_INET6 && !set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) return "IPV6_V6ONLY";
  return nullptr;
}

// The step that failed, or null. Options set here are inherited by accepted sockets.
const char* prepare(int fd, const Address& at, const ListenOptions& options) noexcept {
  if (const char* step = share(fd, at, options.reuse_port); step != nullptr) return step;
  if (!set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1)) return "TCP_NODELAY";
  if (!options.tcp.congestion.empty() &&
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.tcp.congestion.data(),
                 static_cast<socklen_t>(options.tcp.congestion.size())) != 0)
    return "congestion control";
  if (::bind(fd, at.sa(), at.length()) != 0) return "";
  if (::listen(fd, options.backlog) != 0) return "";
  return nullptr;
}

// With errno. `step` may be empty.
std::unexpected<Error> cannot_listen(const Address& at, const char* step) {
  const int err = errno;
  std::string what = "cannot listen on " + at.text() + ": ";
  if (*step != '\0') what += std::string(step) + ": ";
  return fail(err == EMFILE || err == ENFILE ? Fault::too_many_files : Fault::io_error, what + errno_text(err));
}

}  // namespace

Result<void> Listener::probe(const Address& at) {
  if (at.port() == 0) return {};
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_listen(at, "");
  Result<void> free;
  // No listen(2): nobody may connect to a socket that goes at once.
  if (const char* step = share(fd, at, false); step != nullptr) free = cannot_listen(at, step);
  else if (::bind(fd, at.sa(), at.length()) != 0) free = cannot_listen(at, "");
  ::close(fd);
  return free;
}

Result<std::unique_ptr<Listener>> Listener::open(Worker& worker, const Address& at, const ListenOptions& options,
                                                 ListenHandler& handler) {
  const auto refuse = [&](const char* step) { return cannot_listen(at, step); };
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return refuse("");
  if (const char* step = prepare(fd, at, options); step != nullptr) {
    auto error = refuse(step);
    ::close(fd);
    return error;
  }
  std::unique_ptr<Listener> l(new Listener(worker, handler));
  sockaddr_storage bound{};
  socklen_t n = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &n) == 0)
    l->address_ = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&bound));
  const auto octets = l->address_.ip_octets();
  l->wildcard_ = std::all_of(octets.begin(), octets.end(), [](char c) { return c == '\0'; });
  l->busy_fd_ = busy_threshold(fd);
  if (!l->poll_.open_level(worker, fd, *l)) return refuse("epoll");
  return l;
}

void Listener::on_poll(Ready) noexcept {
  // A handler may close the listener from inside on_accept().
  for (unsigned i = 0; i < kAcceptsPerWake && poll_.is_open() && !armed(); ++i)
    if (!accept_one()) return;
}

void Listener::finish() noexcept {
  cancel();
  // Bounded, for a queue that is filled as fast as it is emptied; and not into the descriptors of origins.
  for (unsigned i = 0; i < kMostWaiting && !armed() && accept_one(); ++i) {
  }
  close();
}

bool Listener::accept_one() noexcept {
  sockaddr_storage from{};
  socklen_t n = sizeof from;
  const int fd = ::accept4(poll_.fd(), reinterpret_cast<sockaddr*>(&from), &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    switch (errno) {
      case EAGAIN: return false;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM: back_off(strerrordesc_np(errno)); return false;
      case EBADF:
      case EINVAL:
      case ENOTSOCK: return false;
      default: return true;  // this connection died on the way (ECONNABORTED and network errors); go on
    }
  }
  Address local = address_;
  if (wildcard_) {
    sockaddr_storage here{};
    socklen_t m = sizeof here;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &m) == 0)
      local = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&here));
  }
  // Before the handler runs: it may open descriptors of its own or close this listener.
  if (fd >= busy_fd_)
    back_off("too few descriptors (ulimit -n) are left");
  else
    told_ = false;
  auto transport = TcpTransport::accepted(worker_, fd, local, Address::from_sockaddr(reinterpret_cast<sockaddr*>(&from)));
  if (transport != nullptr) handler_.on_accept(std::move(transport));
  return true;
}

void Listener::back_off(const char* why) noexcept {
  poll_.pause();
  worker_.arm(*this, kBackOff);
  if (std::exchange(told_, true)) return;
  log(LogLevel::warning, address_.text() + ": not accepting for now: " + why);
}

void Listener::on_timer() noexcept {
  if (!poll_.is_open()) return;
  // Would the next connection be above the mark? One call every 100 ms, only while short of descriptors.
  const int probe = ::fcntl(poll_.fd(), F_DUPFD_CLOEXEC, 0);
  if (probe >= 0) ::close(probe);
  if (probe < 0 || probe >= busy_fd_) {
    worker_.arm(*this, kBackOff);
    return;
  }
  poll_.resume();
}

}  // namespace twp
