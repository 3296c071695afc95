#include "base/authority.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/ascii.h"

namespace twp {
namespace {

// reg-name without percent-encoding surprises: letters, digits, sub-delims, '-', '.', '_', '~' and "%XX".
bool valid_reg_name(std::string_view host) noexcept {
  if (host.empty()) return false;
  for (const char c : host) {
    const bool ok = is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') ||
                    std::strchr("-._~%!$&'()*+,;=", c) != nullptr;
    if (!ok || c == '\0') return false;
  }
  return true;
}

bool valid_ipv6(std::string_view host) noexcept {
  char text[INET6_ADDRSTRLEN + 1];
  // inet_pton would stop at a NUL and take what stands before it for the whole.
  if (host.size() >= sizeof text || host.find('\0') != std::string_view::npos) return false;
  text[host.copy(text, host.size())] = '\0';
  in6_addr ignored;
  return inet_pton(AF_INET6, text, &ignored) == 1;
}

}  // namespace

bool parse_port(std::string_view text, std::uint16_t& port) noexcept {
  const auto v = parse_decimal(text);
  if (!v || *v > 65535 || text.size() > 5) return false;
  port = static_cast<std::uint16_t>(*v);
  return true;
}

std::optional<Authority> split_authority(std::string_view text) noexcept {
  Authority s;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    s.host = text.substr(1, end - 1);
    s.v6 = true;
    rest = text.substr(end + 1);
    if (!valid_ipv6(s.host)) return std::nullopt;
  } else {
    const auto colon = text.find(':');
    s.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
    if (!valid_reg_name(s.host)) return std::nullopt;
  }
  if (!rest.empty()) {
    if (rest.front() != ':') return std::nullopt;
    s.has_port = true;
    s.port = rest.substr(1);
  }
  return s;
}

bool valid_authority(std::string_view text) noexcept {
  const auto s = split_authority(text);
  if (!s) return false;
  std::uint16_t port = 0;
  return !s->has_port || s->port.empty() || parse_port(s->port, port);
}

}  // namespace twp
