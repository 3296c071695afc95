// Socket addresses and host:port texts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/authority.h"
#include "base/result.h"

namespace twp {

/// An IPv4 or IPv6 socket address. 28 octets, trivially copyable.
class Address {
 public:
  Address() noexcept = default;

  /// From an IP literal without brackets ("127.0.0.1", "::1", "fe80::1%eth0" is refused) and a port.
  static std::optional<Address> parse(std::string_view ip, std::uint16_t port) noexcept;
  static Address from_sockaddr(const sockaddr* sa) noexcept;

  const sockaddr* sa() const noexcept { return reinterpret_cast<const sockaddr*>(&u_); }
  socklen_t length() const noexcept { return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  int family() const noexcept { return u_.v4.sin_family; }
  bool valid() const noexcept { return family() == AF_INET || family() == AF_INET6; }
  std::uint16_t port() const noexcept { return ntohs(family() == AF_INET6 ? u_.v6.sin6_port : u_.v4.sin_port); }
  void set_port(std::uint16_t port) noexcept;

  bool is_loopback() const noexcept;  ///< 127.0.0.0/8, ::1, and ::ffff:127.0.0.0/104
  /// Network-order octets of the IP: 4 or 16.
  std::string_view ip_octets() const noexcept;
  std::string ip() const;    ///< "127.0.0.1", "::1"
  std::string text() const;  ///< "127.0.0.1:80", "[::1]:80"

  friend bool operator==(const Address& a, const Address& b) noexcept {
    return a.family() == b.family() && a.port() == b.port() && a.ip_octets() == b.ip_octets();
  }

 private:
  union {
    sockaddr_in v4;
    sockaddr_in6 v6;
  } u_{};
};

/// A network in CIDR notation ("10.0.0.0/8", "::1/128", a bare address is one host).
class Cidr {
 public:
  static Result<Cidr> parse(std::string_view text);
  /// IPv4-mapped IPv6 addresses match IPv4 networks.
  bool contains(const Address& a) const noexcept;

 private:
  std::array<std::uint8_t, 16> prefix_{};  // IPv4 as ::ffff:a.b.c.d
  unsigned bits_ = 128;
};

/// A host (name, IPv4 literal, or IPv6 literal without its brackets) and a port.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  bool is_ipv6_literal = false;
};

/// Parses "host", "host:port", "[v6]" and "[v6]:port" (RFC 3986 §3.2). `default_port` 0 demands a port.
Result<HostPort> parse_host_port(std::string_view text, std::uint16_t default_port);

}  // namespace twp
