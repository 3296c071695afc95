#include "net/address.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/ascii.h"

namespace twp {

std::optional<Address> Address::parse(std::string_view ip, std::uint16_t port) noexcept {
  char buf[INET6_ADDRSTRLEN + 1];
  // inet_pton would stop at a NUL and take what stands before it for the whole.
  if (ip.size() >= sizeof buf || ip.find('\0') != std::string_view::npos) return std::nullopt;
  buf[ip.copy(buf, ip.size())] = '\0';
  Address a;
  if (inet_pton(AF_INET, buf, &a.u_.v4.sin_addr) == 1) {
    a.u_.v4.sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, buf, &a.u_.v6.sin6_addr) == 1) {
    a.u_.v6.sin6_family = AF_INET6;
  } else {
    return std::nullopt;
  }
  a.set_port(port);
  return a;
}

Address Address::from_sockaddr(const sockaddr* sa) noexcept {
  Address a;
  if (sa->sa_family == AF_INET) std::memcpy(&a.u_.v4, sa, sizeof a.u_.v4);
  if (sa->sa_family == AF_INET6) std::memcpy(&a.u_.v6, sa, sizeof a.u_.v6);
  return a;
}

void Address::set_port(std::uint16_t port) noexcept {
  if (family() == AF_INET6)
    u_.v6.sin6_port = htons(port);
  else
    u_.v4.sin_port = htons(port);
}

bool Address::is_loopback() const noexcept {
  if (family() == AF_INET) return (ntohl(u_.v4.sin_addr.s_addr) >> 24) == 127;
  if (family() != AF_INET6) return false;
  if (IN6_IS_ADDR_V4MAPPED(&u_.v6.sin6_addr)) return u_.v6.sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&u_.v6.sin6_addr);
}

std::string_view Address::ip_octets() const noexcept {
  if (family() == AF_INET) return {reinterpret_cast<const char*>(&u_.v4.sin_addr), 4};
  if (family() == AF_INET6) return {reinterpret_cast<const char*>(&u_.v6.sin6_addr), 16};
  return {};
}

std::string Address::ip() const {
  char buf[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) inet_ntop(AF_INET, &u_.v4.sin_addr, buf, sizeof buf);
  if (family() == AF_INET6) inet_ntop(AF_INET6, &u_.v6.sin6_addr, buf, sizeof buf);
  return buf;
}

std::string Address::text() const {
  const std::string port_text = ":" + std::to_string(port());
  return family() == AF_INET6 ? "[" + ip() + "]" + port_text : ip() + port_text;
}

Result<Cidr> Cidr::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto a = Address::parse(text.substr(0, slash), 0);
  if (!a) return fail(Fault::bad_config, "'" + std::string(text) + "' is not an IP address or network (expected e.g. 10.0.0.0/8)");
  Cidr c;
  const auto octets = a->ip_octets();
  const unsigned full = static_cast<unsigned>(octets.size()) * 8;
  unsigned bits = full;
  if (slash != std::string_view::npos) {
    const auto v = parse_decimal(text.substr(slash + 1));
    if (!v || *v > full) return fail(Fault::bad_config, "'" + std::string(text) + "': prefix length must be 0 to " + std::to_string(full));
    bits = static_cast<unsigned>(*v);
  }
  if (octets.size() == 4) {
    c.prefix_[10] = c.prefix_[11] = 0xff;
    bits += 96;
  }
  std::memcpy(c.prefix_.data() + 16 - octets.size(), octets.data(), octets.size());
  c.bits_ = bits;
  return c;
}

bool Cidr::contains(const Address& a) const noexcept {
  std::array<std::uint8_t, 16> ip{};
  const auto octets = a.ip_octets();
  if (octets.empty()) return false;
  if (octets.size() == 4) ip[10] = ip[11] = 0xff;
  std::memcpy(ip.data() + 16 - octets.size(), octets.data(), octets.size());
  const unsigned whole = bits_ / 8;
  if (std::memcmp(ip.data(), prefix_.data(), whole) != 0) return false;
  if (bits_ % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - bits_ % 8));
  return (ip[whole] & mask) == (prefix_[whole] & mask);
}

Result<HostPort> parse_host_port(std::string_view text, std::uint16_t default_port) {
  const auto s = split_authority(text);
  if (!s) return fail(Fault::bad_config, "'" + std::string(text) + "' is not host:port (IPv6 literals go in brackets)");
  HostPort out{std::string(s->host), default_port, s->v6};
  if (s->has_port && !parse_port(s->port, out.port))
    return fail(Fault::bad_config, "'" + std::string(text) + "': port must be 0 to 65535");
  if (!s->has_port && default_port == 0)
    return fail(Fault::bad_config, "'" + std::string(text) + "': a port is missing (expected host:port)");
  return out;
}

}  // namespace twp
