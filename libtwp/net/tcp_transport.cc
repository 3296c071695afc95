#include "net/tcp_transport.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace twp {
namespace {

// IOV_MAX is 1024; a turn rarely has more than a few dozen slices for one connection.
constexpr std::size_t kMaxIov = 64;

Fault connect_fault(int err) noexcept {
  switch (err) {
    case ECONNREFUSED: return Fault::connect_refused;
    case ETIMEDOUT: return Fault::connect_timeout;
    case EMFILE:
    case ENFILE: return Fault::too_many_files;
    default: return Fault::connect_failed;
  }
}

void set_flag(int fd, int level, int option, int value) noexcept { setsockopt(fd, level, option, &value, sizeof value); }

}  // namespace

std::unique_ptr<TcpTransport> TcpTransport::accepted(Worker& worker, int fd, const Address& local,
                                                     const Address& remote) {
  std::unique_ptr<TcpTransport> t(new TcpTransport(worker, State::open));
  t->peer_.local = local;
  t->peer_.remote = remote;
  if (!t->poll_.open(worker, fd, *t)) return nullptr;
  return t;
}

std::unique_ptr<TcpTransport> TcpTransport::connect(Worker& worker, const Address& to, const TcpOptions& options) {
  std::unique_ptr<TcpTransport> t(new TcpTransport(worker, State::connecting));
  t->peer_.remote = to;
  t->readable_ = t->writable_ = false;
  const int fd = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    t->error_ = errno;
  } else {
    set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (!options.congestion.empty())
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.data(),
                 static_cast<socklen_t>(options.congestion.size()));
    if (options.source.valid()) {
      // The kernel chooses the port at connect(2), so that one address serves more than 64 Ki destinations.
      set_flag(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
      if (::bind(fd, options.source.sa(), options.source.length()) != 0) t->error_ = errno;
    }
    if (t->error_ == 0 && ::connect(fd, to.sa(), to.length()) != 0 && errno != EINPROGRESS) t->error_ = errno;
    if (!t->poll_.open(worker, fd, *t) && t->error_ == 0) t->error_ = EMFILE;
  }
  if (t->error_ != 0) {
    t->state_ = State::failed;
    worker.schedule(Phase::origin, *t);
  }
  return t;
}

TcpTransport::~TcpTransport() { close(Fault::none); }

void TcpTransport::run() noexcept { report_failure(); }

void TcpTransport::report_failure() noexcept {
  if (handler_ == nullptr) return;
  handler_->on_open_failed(*this, connect_fault(error_), peer_.remote.text() + ": " + errno_text(error_));
}

void TcpTransport::on_poll(Ready ready) noexcept {
  readable_ |= ready.readable;
  writable_ |= ready.writable;
  hangup_ |= ready.hangup;
  if (state_ == State::connecting) {
    if (ready.writable || ready.hangup) finish_connect();
    return;
  }
  if (state_ == State::open && handler_ != nullptr) handler_->on_ready(*this, ready.readable, ready.writable);
}

void TcpTransport::finish_connect() noexcept {
  socklen_t len = sizeof error_;
  if (getsockopt(poll_.fd(), SOL_SOCKET, SO_ERROR, &error_, &len) != 0) error_ = errno;
  if (error_ != 0) {
    state_ = State::failed;
    report_failure();
    return;
  }
  sockaddr_storage ss{};
  socklen_t n = sizeof ss;
  if (getsockname(poll_.fd(), reinterpret_cast<sockaddr*>(&ss), &n) == 0)
    peer_.local = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&ss));
  if (peer_.local == peer_.remote) {
    // Nobody listens, the kernel chose that very port for us, and TCP's simultaneous open met itself.
    error_ = ECONNREFUSED;
    state_ = State::failed;
    report_failure();
    return;
  }
  state_ = State::open;
  if (handler_ != nullptr) handler_->on_open(*this);
}

IoResult TcpTransport::failed(int err) noexcept {
  writable_ = false;
  return {IoStatus::error, 0, err == ECONNRESET || err == EPIPE ? Fault::peer_reset : Fault::io_error};
}

IoResult TcpTransport::lost() noexcept {
  if (state_ != State::open) return {};
  // Not SO_ERROR: reading that clears it, and a later recv would call the reset an orderly end.
  pollfd look{poll_.fd(), 0, 0};
  if (::poll(&look, 1, 0) == 1 && (look.revents & POLLERR) != 0) return {IoStatus::error, 0, Fault::peer_reset};
  return {};
}

IoResult TcpTransport::read(std::span<std::byte> into) noexcept {
  if (into.empty()) return lost();
  // A reset that comes together with octets makes one edge, and the loop's flags do not tell it from octets alone: who
  // needs more than a short read gave may ask once more.
  if (!readable_ && !guessed_) return {};
  guessed_ = false;
  if (state_ != State::open) return {IoStatus::error, 0, Fault::io_error};
  ssize_t n = 0;
  do {
    n = ::recv(poll_.fd(), into.data(), into.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    worker_.charge(static_cast<std::size_t>(n));
    // A short read has emptied the socket; a FIN behind it makes another edge unless it was seen already.
    if (static_cast<std::size_t>(n) < into.size() && !hangup_) {
      readable_ = false;
      guessed_ = true;
    }
    return {IoStatus::ok, static_cast<std::size_t>(n), Fault::none};
  }
  if (n == 0) {
    readable_ = false;
    if (reset_) return failed(ECONNRESET);
    return {IoStatus::eof, 0, Fault::none};
  }
  if (errno == EAGAIN) {
    readable_ = false;
    return {};
  }
  readable_ = false;
  return failed(errno);
}

IoResult TcpTransport::write(Chain& from) noexcept {
  if (state_ != State::open) return {state_ == State::connecting ? IoStatus::again : IoStatus::error, 0, Fault::io_error};
  std::size_t total = 0;
  while (writable_ && !from.empty()) {
    ssize_t n = 0;
    std::size_t offered = 0;
    if (from.slices() == 1) {
      const auto b = from.front();
      offered = b.size();
      do {
        n = ::send(poll_.fd(), b.data(), b.size(), MSG_NOSIGNAL);
      } while (n < 0 && errno == EINTR);
    } else {
      iovec iov[kMaxIov];
      msghdr message{};
      message.msg_iov = iov;
      message.msg_iovlen = from.iovecs(iov);
      for (std::size_t i = 0; i < message.msg_iovlen; ++i) offered += iov[i].iov_len;
      do {
        n = ::sendmsg(poll_.fd(), &message, MSG_NOSIGNAL);
      } while (n < 0 && errno == EINTR);
    }
    if (n < 0) {
      if (errno != EAGAIN) {
        // What the peer said before it went is still in the socket, and no edge will tell of it or of its end.
        const int err = errno;
        readable_ = hangup_ = true;
        reset_ = err == ECONNRESET;  // told to this write, not to the read that comes to it
        return failed(err);
      }
      writable_ = false;
      break;
    }
    from.consume(static_cast<std::size_t>(n));
    total += static_cast<std::size_t>(n);
    if (static_cast<std::size_t>(n) < offered) writable_ = false;  // full: the next edge says when to go on
  }
  return {total != 0 || from.empty() ? IoStatus::ok : IoStatus::again, total, Fault::none};
}

void TcpTransport::shutdown_write() noexcept {
  if (state_ == State::open) ::shutdown(poll_.fd(), SHUT_WR);
}

void TcpTransport::close(Fault why) noexcept {
  if (poll_.is_open() && why != Fault::none) {
    const linger reset{1, 0};
    setsockopt(poll_.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  poll_.close();
  static_cast<Task&>(*this).unlink();  // a failure not yet reported stays unreported
  state_ = State::closed;
  readable_ = writable_ = false;
}

}  // namespace twp
