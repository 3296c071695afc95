#include "net/udp_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace twp {
namespace {

constexpr std::size_t kReceive = 64 * 1024;  // what GRO can put together, and more than any datagram has
constexpr unsigned kMessagesPerCall =
    16;  // fewer of them say that the socket is drained: no call to see EAGAIN
constexpr unsigned kCallsPerTurn = 4;
constexpr std::size_t kMostSegments = 64;   // UDP_MAX_SEGMENTS of the kernels that have the fewest
constexpr std::size_t kMostOctets = 65507;  // of one call: the largest IPv4 datagram

// What a worker's sockets receive into, one after the other. Pages that nothing was received into are never touched.
struct ReceiveSpace {
  std::unique_ptr<std::byte[]> octets =
      std::make_unique_for_overwrite<std::byte[]>(kMessagesPerCall * kReceive);
  std::array<mmsghdr, kMessagesPerCall> messages;
  std::array<iovec, kMessagesPerCall> pieces;
  std::array<sockaddr_in6, kMessagesPerCall> from;
  struct alignas(cmsghdr) Control {
    std::byte octets[CMSG_SPACE(sizeof(in6_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))];
  };
  std::array<Control, kMessagesPerCall> control;

  void prepare() noexcept {
    for (unsigned i = 0; i < kMessagesPerCall; ++i) {
      pieces[i] = {octets.get() + i * kReceive, kReceive};
      msghdr& m = messages[i].msg_hdr;
      m = {};
      m.msg_name = &from[i];
      m.msg_namelen = sizeof from[i];
      m.msg_iov = &pieces[i];
      m.msg_iovlen = 1;
      m.msg_control = control[i].octets;
      m.msg_controllen = sizeof control[i].octets;
    }
  }
};

// Control messages of one sendmsg(2).
class ControlWriter {
 public:
  template <class T>
  void add(int level, int type, const T& value) noexcept {
    auto* c = reinterpret_cast<cmsghdr*>(space_ + used_);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    used_ += CMSG_SPACE(sizeof value);
  }
  void attach(msghdr& m) noexcept {
    m.msg_control = used_ == 0 ? nullptr : space_;
    m.msg_controllen = used_;
  }

 private:
  alignas(cmsghdr) std::byte space_[CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int))] = {};
  std::size_t used_ = 0;
};

bool udp_flag(int fd, int level, int option, int value) noexcept {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

bool is_wildcard(const Address& a) noexcept {
  const auto octets = a.ip_octets();
  return std::all_of(octets.begin(), octets.end(), [](char c) { return c == '\0'; });
}

// The octets of a network address, in the form that the control messages have.
Address udp_local(const in_pktinfo& info, std::uint16_t port) noexcept {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr = info.ipi_addr;
  a.sin_port = htons(port);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&a));
}

Address udp_local(const in6_pktinfo& info, std::uint16_t port) noexcept {
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  a.sin6_addr = info.ipi6_addr;
  a.sin6_port = htons(port);
  if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) a.sin6_scope_id = info.ipi6_ifindex;  // the way back needs it
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&a));
}

void add_source(ControlWriter& control, const Address& local) noexcept {
  if (local.family() == AF_INET) {
    in_pktinfo info{};
    info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(local.sa())->sin_addr;
    control.add(IPPROTO_IP, IP_PKTINFO, info);
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(local.sa());
    in6_pktinfo info{};
    info.ipi6_addr = v6->sin6_addr;
    info.ipi6_ifindex = v6->sin6_scope_id;
    control.add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
}

std::size_t size_class(std::size_t datagrams) noexcept {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(datagrams)) - 1, 7);
}

Result<std::unique_ptr<UdpSocket>> cannot_open(const char* verb, const Address& at, const char* step,
                                               int err) {
  std::string what = std::string("cannot ") + verb + " UDP " + at.text() + ": ";
  if (*step != '\0') what += std::string(step) + ": ";
  return fail(err == EMFILE || err == ENFILE ? Fault::too_many_files : Fault::io_error,
              what + errno_text(err));
}

// The step that failed, or null. Only what the socket cannot do without is a failure.
const char* prepare_udp(int fd, int family, bool wildcard, const UdpOptions& options) noexcept {
  const bool v6 = family == AF_INET6;
  if (wildcard &&
      !(v6 ? udp_flag(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) : udp_flag(fd, IPPROTO_IP, IP_PKTINFO, 1)))
    return "packet information";
  udp_flag(fd, SOL_SOCKET, SO_RCVBUF, options.buffer);
  udp_flag(fd, SOL_SOCKET, SO_SNDBUF, options.buffer);
  udp_flag(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  if (options.gro) udp_flag(fd, SOL_UDP, UDP_GRO, 1);
  // PROBE: never fragments and ignores what the kernel believes of the path. QUIC has its own discovery (RFC 9000 §14.3).
  if (v6) {
    udp_flag(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    udp_flag(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  } else {
    udp_flag(fd, IPPROTO_IP, IP_RECVTOS, 1);
    udp_flag(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
  return nullptr;
}

Address name_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) noexcept {
  sockaddr_storage name{};
  socklen_t n = sizeof name;
  if (ask(fd, reinterpret_cast<sockaddr*>(&name), &n) != 0) return {};
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

Fault unreachable_fault(int err) noexcept {
  return err == ECONNREFUSED ? Fault::connect_refused : Fault::connect_failed;
}

// What an ICMP message becomes (udp(7), ip(7)).
bool is_unreachable(int err) noexcept {
  return err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH || err == EHOSTDOWN ||
         err == ENOPROTOOPT || err == EPROTO;
}

}  // namespace

UdpCounters& UdpCounters::operator+=(const UdpCounters& o) noexcept {
  datagrams_in += o.datagrams_in, octets_in += o.octets_in, calls_in += o.calls_in;
  datagrams_out += o.datagrams_out, octets_out += o.octets_out, calls_out += o.calls_out;
  for (std::size_t i = 0; i < gro.size(); ++i) gro[i] += o.gro[i], gso[i] += o.gso[i];
  kernel_drops += o.kernel_drops, cut += o.cut, queued += o.queued;
  queue_drops += o.queue_drops, send_errors += o.send_errors;
  return *this;
}

Result<void> probe_udp(const Address& at) {
  if (at.port() == 0) return {};
  const int fd = ::socket(at.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int err = fd < 0 ? errno : 0;
  if (fd >= 0) {
    if (at.family() == AF_INET6) udp_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (::bind(fd, at.sa(), at.length()) != 0) err = errno;
    ::close(fd);
  }
  if (err == 0) return {};
  return std::unexpected(cannot_open("open", at, "", err).error());
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::open(Worker& worker, const Address& at,
                                                   const UdpOptions& options, UdpHandler& handler) {
  const int fd = ::socket(at.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_open("open", at, "", errno);
  std::unique_ptr<UdpSocket> s(new UdpSocket(worker, handler, options));
  s->wildcard_ = is_wildcard(at);
  const char* step = nullptr;
  // Not SO_REUSEADDR: for UDP it lets anybody take over the port.
  if (options.reuse_port && !udp_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1))
    step = "SO_REUSEPORT";
  else if (at.family() == AF_INET6 && !udp_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))
    step = "IPV6_V6ONLY";
  else
    step = prepare_udp(fd, at.family(), s->wildcard_, options);  // before bind(2): datagrams may come at once
  if (step == nullptr && ::bind(fd, at.sa(), at.length()) != 0) step = "";
  if (step != nullptr) {
    const int err = errno;
    ::close(fd);
    return cannot_open("open", at, step, err);
  }
  return start(std::move(s), fd);
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::connect(Worker& worker, const Address& to,
                                                      const UdpOptions& options, UdpHandler& handler) {
  const int fd = ::socket(to.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_open("connect", to, "", errno);
  std::unique_ptr<UdpSocket> s(new UdpSocket(worker, handler, options));
  const char* step = prepare_udp(fd, to.family(), false, options);
  if (step == nullptr && options.source.valid() &&
      ::bind(fd, options.source.sa(), options.source.length()) != 0)
    step = "source address";
  if (step == nullptr && ::connect(fd, to.sa(), to.length()) != 0) step = "";
  if (step != nullptr) {
    const int err = errno;
    ::close(fd);
    return cannot_open("connect", to, step, err);
  }
  return start(std::move(s), fd);
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::adopt(Worker& worker, int fd, const UdpOptions& options,
                                                    UdpHandler& handler) {
  const Address at = name_of(fd, ::getsockname);
  int type = 0;
  socklen_t n = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || type != SOCK_DGRAM || !at.valid()) {
    if (fd >= 0) ::close(fd);
    return fail(Fault::io_error, "descriptor " + std::to_string(fd) + " is no UDP socket");
  }
  std::unique_ptr<UdpSocket> s(new UdpSocket(worker, handler, options));
  s->wildcard_ = is_wildcard(at);
  const char* step = prepare_udp(fd, at.family(), s->wildcard_, options);
  if (step == nullptr && (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0))
    step = "";
  if (step != nullptr) {
    const int err = errno;
    ::close(fd);
    return cannot_open("adopt", at, step, err);
  }
  return start(std::move(s), fd);
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::start(std::unique_ptr<UdpSocket> s, int fd) {
  s->local_ = name_of(fd, ::getsockname);
  s->remote_ = name_of(fd, ::getpeername);
  s->gso_ = s->options_.gso;
  if (!s->poll_.open(s->worker_, fd, *s)) return cannot_open("open", s->local_, "epoll", errno);
  return s;
}

void UdpSocket::close() noexcept {
  poll_.close();
  static_cast<Task&>(*this).unlink();
  queue_.clear();
  queue_octets_ = 0;
}

// --- in ----------------------------------------------------------------------------------------------

void UdpSocket::on_poll(Ready ready) noexcept {
  if (ready.writable) flush_queue();
  if (ready.readable && poll_.is_open()) read();
}

void UdpSocket::run() noexcept {
  if (unreachable_ != Fault::none) handler_.on_unreachable(*this, std::exchange(unreachable_, Fault::none));
  if (unread_ && poll_.is_open()) read();
}

void UdpSocket::read() noexcept {
  unread_ = false;
  for (unsigned i = 0; i < kCallsPerTurn; ++i)
    if (read_once() < static_cast<int>(kMessagesPerCall) || !poll_.is_open()) return;
  unread_ = true;  // no further edge comes for what is there already
  worker_.schedule(Phase::client, *this);
}

// How many messages came; kMessagesPerCall also when there may be more for another reason.
int UdpSocket::read_once() noexcept {
  static thread_local ReceiveSpace space;
  space.prepare();
  int n = 0;
  do {
    n = ::recvmmsg(poll_.fd(), space.messages.data(), kMessagesPerCall, 0, nullptr);
  } while (n < 0 && errno == EINTR);
  ++counters_.calls_in;
  if (n < 0) {
    if (errno == EAGAIN) return 0;
    unreachable(errno);
    return kMessagesPerCall;  // an error comes before the datagrams that wait
  }
  for (int i = 0; i < n && poll_.is_open(); ++i) deliver(space.messages[static_cast<unsigned>(i)]);
  return n;
}

void UdpSocket::deliver(mmsghdr& message) noexcept {
  msghdr& m = message.msg_hdr;
  Datagrams in;
  in.octets = {static_cast<const std::byte*>(m.msg_iov->iov_base), message.msg_len};
  in.local = local_;
  in.remote = remote_.valid() ? remote_ : Address::from_sockaddr(static_cast<const sockaddr*>(m.msg_name));
  const auto take = [](const cmsghdr* c, auto value) noexcept {
    std::memcpy(&value, CMSG_DATA(c), sizeof value);
    return value;
  };
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    const int level = c->cmsg_level;
    const int type = c->cmsg_type;
    if (level == IPPROTO_IP && type == IP_TOS)
      in.ecn = static_cast<Ecn>(take(c, std::uint8_t{}) & 3);
    else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS)
      in.ecn = static_cast<Ecn>(take(c, int{}) & 3);
    else if (level == SOL_UDP && type == UDP_GRO)
      in.segment = static_cast<std::size_t>(take(c, int{}));
    else if (level == IPPROTO_IP && type == IP_PKTINFO)
      in.local = udp_local(take(c, in_pktinfo{}), local_.port());
    else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO)
      in.local = udp_local(take(c, in6_pktinfo{}), local_.port());
    else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      const auto seen = take(c, std::uint32_t{});
      counters_.kernel_drops +=
          seen - std::exchange(drops_seen_, seen);  // the kernel's count wraps, and so does this
    }
  }
  const std::size_t count = in.count();
  if ((m.msg_flags & MSG_TRUNC) != 0) {
    counters_.cut += count;
    return;
  }
  counters_.datagrams_in += count;
  counters_.octets_in += in.octets.size();
  ++counters_.gro[size_class(count)];
  handler_.on_datagrams(*this, in);
}

void UdpSocket::unreachable(int err) noexcept {
  if (!remote_.valid() || !is_unreachable(err)) return;
  unreachable_ = unreachable_fault(err);
  worker_.schedule(Phase::client, *this);
}

// --- out ---------------------------------------------------------------------------------------------

UdpSent UdpSocket::send(const Datagrams& out) noexcept {
  if (!poll_.is_open()) return UdpSent::dropped;
  Datagrams rest = out;
  if (rest.segment == 0) rest.segment = rest.octets.size();
  if (queue_.empty())
    while (!rest.octets.empty() && send_some(rest) != Gave::again) {
    }
  if (rest.octets.empty()) return UdpSent::sent;
  if (queue_octets_ + rest.octets.size() > options_.queue) {
    counters_.queue_drops += rest.count();
    return UdpSent::dropped;
  }
  counters_.queued += rest.count();
  queue_octets_ += rest.octets.size();
  queue_.push_back({{rest.octets.begin(), rest.octets.end()}, 0, rest});
  return UdpSent::queued;
}

void UdpSocket::flush_queue() noexcept {
  if (queue_.empty()) return;
  while (!queue_.empty()) {
    Waiting& w = queue_.front();
    Datagrams rest = w.how;
    rest.octets = std::span<const std::byte>(w.octets).subspan(w.at);
    while (!rest.octets.empty()) {
      if (send_some(rest) != Gave::again) continue;
      w.at = w.octets.size() - rest.octets.size();
      return;
    }
    queue_octets_ -= w.octets.size();
    queue_.pop_front();
  }
  handler_.on_writable(*this);
}

// One call's worth from the front of `rest`, taken off when the kernel has it or will never have it.
UdpSocket::Gave UdpSocket::send_some(Datagrams& rest) noexcept {
  const std::size_t most = gso_ ? std::clamp<std::size_t>(kMostOctets / rest.segment, 1, kMostSegments) : 1;
  Datagrams part = rest;
  part.octets = rest.octets.first(std::min(rest.octets.size(), most * rest.segment));
  const std::size_t count = part.count();
  const int err = send_call(part);
  if (err == EAGAIN) return Gave::again;
  if (count > 1 && (err == EIO || err == EINVAL || err == EMSGSIZE)) {
    bool refused = false;
    if (err == EIO) gso_ = false;  // no checksum offload on this way, or IPsec
    if (send_one_by_one(rest, count, refused) == Gave::again) return Gave::again;
    // EINVAL: too large a segment for this path, which refuses them singly too; or no segmentation here at all.
    if (err == EINVAL && !refused) gso_ = false;
    return Gave::done;
  }
  rest.octets = rest.octets.subspan(part.octets.size());
  if (err != 0) counters_.send_errors += count;
  return Gave::done;
}

UdpSocket::Gave UdpSocket::send_one_by_one(Datagrams& rest, std::size_t most, bool& refused) noexcept {
  for (; most != 0; --most) {
    Datagrams one = rest;
    one.octets = rest.octets.first(std::min(rest.octets.size(), rest.segment));
    const int err = send_call(one);
    if (err == EAGAIN) return Gave::again;
    if (err != 0) {
      refused = true;
      ++counters_.send_errors;
    }
    rest.octets = rest.octets.subspan(one.octets.size());
  }
  return Gave::done;
}

// 0 or errno; EAGAIN: no room in the kernel now.
int UdpSocket::send_call(const Datagrams& out) noexcept {
  iovec piece{const_cast<std::byte*>(out.octets.data()), out.octets.size()};
  msghdr m{};
  m.msg_iov = &piece;
  m.msg_iovlen = 1;
  ControlWriter control;
  if (remote_.valid()) {
    // An option and no control message: one at the IP level would make the kernel look up the route each time.
    if (out.ecn != ecn_) set_ecn(out.ecn);
  } else {
    if (out.remote.family() != local_.family()) return EAFNOSUPPORT;
    m.msg_name = const_cast<sockaddr*>(out.remote.sa());
    m.msg_namelen = out.remote.length();
    if (wildcard_ && out.local.family() == local_.family() && !is_wildcard(out.local))
      add_source(control, out.local);
    const int bits = static_cast<int>(out.ecn);
    if (bits != 0 && local_.family() == AF_INET6) control.add(IPPROTO_IPV6, IPV6_TCLASS, bits);
    if (bits != 0 && local_.family() == AF_INET) control.add(IPPROTO_IP, IP_TOS, bits);
  }
  const std::size_t count = out.count();
  if (count > 1) control.add(SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(out.segment));
  control.attach(m);
  ssize_t n = 0;
  // A connected socket tells of an old ICMP message and sends nothing: once more then.
  for (unsigned tries = 0; tries < 2; ++tries) {
    do {
      ++counters_.calls_out;
      n = ::sendmsg(poll_.fd(), &m, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0 || !remote_.valid() || !is_unreachable(errno)) break;
    const int err = errno;
    unreachable(err);
    errno = err;
  }
  if (n < 0) return errno;
  counters_.datagrams_out += count;
  counters_.octets_out += out.octets.size();
  ++counters_.gso[size_class(count)];
  return 0;
}

void UdpSocket::set_ecn(Ecn ecn) noexcept {
  const int bits = static_cast<int>(ecn);
  if (local_.family() == AF_INET6)
    udp_flag(poll_.fd(), IPPROTO_IPV6, IPV6_TCLASS, bits);
  else
    udp_flag(poll_.fd(), IPPROTO_IP, IP_TOS, bits);
  ecn_ = ecn;
}

}  // namespace twp
