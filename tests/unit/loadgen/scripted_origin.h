// An HTTP/1.1 origin on a thread of its own that answers by script, and only when it is let.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace twp::load {

/// Requests are numbered from 0 in the order they came, on whichever connection.
class ScriptedOrigin {
 public:
  struct Answer {
    std::string octets;
    bool close = false;
  };
  using Script = std::function<Answer(unsigned number)>;  ///< called on the origin's thread

  /// Answers requests below `most`; those after them wait for let().
  explicit ScriptedOrigin(Script script, unsigned most = ~0u) : script_(std::move(script)), most_(most) {
    BOOST_REQUIRE(wake_ >= 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    BOOST_REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&at), n) == 0 &&
                  ::listen(listener_, 64) == 0);
    BOOST_REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &n) == 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/";
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedOrigin() {
    ending_ = true;
    wake();
    thread_.join();
    for (auto& [fd, c] : connections_) ::close(fd);
    if (listener_ >= 0) ::close(listener_);
    ::close(wake_);
  }
  ScriptedOrigin(const ScriptedOrigin&) = delete;
  ScriptedOrigin& operator=(const ScriptedOrigin&) = delete;

  std::string url;
  unsigned received() const noexcept { return received_; }  ///< whole requests
  /// Requests below `most` are answered now.
  void let(unsigned most) {
    most_ = most;
    wake();
  }
  /// Closes every connection, and new ones are refused.
  void go_away() {
    leaving_ = true;
    wake();
  }

 private:
  struct Conn {
    std::string in;
    std::optional<unsigned> waiting;  // the request that is not answered yet
  };

  void wake() {
    const std::uint64_t one = 1;
    BOOST_REQUIRE(::write(wake_, &one, sizeof one) == sizeof one);
  }
  void serve() {
    while (!ending_) {
      std::vector<pollfd> fds{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (auto& [fd, c] : connections_) fds.push_back({fd, POLLIN, 0});
      ::poll(fds.data(), fds.size(), -1);
      std::uint64_t told;
      if (fds[0].revents != 0 && ::read(wake_, &told, sizeof told) > 0 && leaving_) leave();
      if (listener_ >= 0 && fds[1].revents != 0)
        connections_[::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)];
      for (std::size_t i = 2; i < fds.size(); ++i)
        if (fds[i].revents != 0) read(fds[i].fd);
      answer_who_waits();
    }
  }
  void leave() {
    ::close(std::exchange(listener_, -1));
    while (!connections_.empty()) drop(connections_.begin()->first);
  }
  void drop(int fd) {
    if (connections_.erase(fd) != 0) ::close(fd);
  }
  void read(int fd) {
    const auto c = connections_.find(fd);
    if (c == connections_.end()) return;
    char some[4096];
    const ssize_t n = ::recv(fd, some, sizeof some, 0);
    if (n <= 0) return drop(fd);
    c->second.in.append(some, static_cast<std::size_t>(n));
    const std::string_view in = c->second.in;
    const auto head = in.find("\r\n\r\n");
    if (head == in.npos) return;
    if (in.find("chunked") < head && !in.ends_with("\r\n0\r\n\r\n")) return;
    c->second.in.clear();
    c->second.waiting = received_++;
  }
  void answer_who_waits() {
    for (auto at = connections_.begin(); at != connections_.end();) {
      auto& [fd, c] = *at++;
      if (!c.waiting || *c.waiting >= most_) continue;
      const Answer a = script_(*std::exchange(c.waiting, std::nullopt));
      const bool sent =
          ::send(fd, a.octets.data(), a.octets.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(a.octets.size());
      if (a.close || !sent) drop(fd);
    }
  }

  const Script script_;
  std::atomic<unsigned> most_;
  std::atomic<unsigned> received_{0};
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};
  const int wake_ = ::eventfd(0, EFD_CLOEXEC);
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::map<int, Conn> connections_;
  std::thread thread_;
};

}  // namespace twp::load
