#include "proxy/forwarding.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/ascii.h"

namespace twp {
namespace {

/// Concatenation in the head's own memory.
std::string_view join(Arena& arena, std::initializer_list<std::string_view> parts) {
  std::size_t total = 0;
  for (const auto& p : parts) total += p.size();
  char* const out = static_cast<char*>(arena.allocate(total));
  char* at = out;
  for (const auto& p : parts) {
    if (p.empty()) continue;
    std::memcpy(at, p.data(), p.size());
    at += p.size();
  }
  return {out, total};
}

/// Puts `value` behind what the field lists already; several lines become one.
void append_to_list(HeaderBlock& fields, HeaderId id, std::string_view name, std::string_view value) {
  std::size_t i = fields.find(id);
  if (i == HeaderBlock::npos) {
    fields.add_view(id, name, value);
    return;
  }
  std::string_view list;
  for (; i != HeaderBlock::npos; i = fields.find(id, i + 1)) {
    if (fields[i].value.empty()) continue;
    list = list.empty() ? fields[i].value : join(fields.arena(), {list, ", ", fields[i].value});
  }
  fields.remove(id);
  fields.add_view(id, name, list.empty() ? value : join(fields.arena(), {list, ", ", value}));
}

/// A parameter value of RFC 7239 §4: token, or quoted-string when it is none.
std::string_view forwarded_value(Arena& arena, std::string_view text) {
  if (is_token(text)) return text;
  char* const out = static_cast<char*>(arena.allocate(text.size() * 2 + 2));
  std::size_t n = 0;
  out[n++] = '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out[n++] = '\\';
    out[n++] = c;
  }
  out[n++] = '"';
  return {out, n};
}

char* write_octet(char* out, unsigned v) noexcept {
  if (v >= 100) *out++ = static_cast<char>('0' + v / 100);
  if (v >= 10) *out++ = static_cast<char>('0' + v / 10 % 10);
  *out++ = static_cast<char>('0' + v % 10);
  return out;
}

bool is_v4_mapped(std::string_view octets) noexcept {
  static constexpr char kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '\xff', '\xff'};
  return octets.size() == 16 && std::memcmp(octets.data(), kPrefix, sizeof kPrefix) == 0;
}

}  // namespace

std::string_view write_ip(const Address& a, std::array<char, 64>& out) noexcept {
  std::string_view octets = a.ip_octets();
  if (is_v4_mapped(octets)) octets = octets.substr(12);
  if (octets.size() == 4) {
    char* at = out.data();
    for (std::size_t i = 0; i < 4; ++i) {
      if (i != 0) *at++ = '.';
      at = write_octet(at, static_cast<unsigned char>(octets[i]));
    }
    return {out.data(), static_cast<std::size_t>(at - out.data())};
  }
  if (octets.size() != 16 || inet_ntop(AF_INET6, octets.data(), out.data(), INET6_ADDRSTRLEN) == nullptr) return "unknown";
  return {out.data(), std::strlen(out.data())};
}

Forwarding::Forwarding(const config::Forwarding& config, std::string_view instance)
    : x_forwarded_(config.style == config::ForwardedStyle::x_forwarded || config.style == config::ForwardedStyle::both),
      forwarded_(config.style == config::ForwardedStyle::forwarded || config.style == config::ForwardedStyle::both),
      detect_loops_(config.detect_loops) {
  for (const std::string& text : config.trusted)
    if (auto cidr = Cidr::parse(text)) trusted_.push_back(*cidr);
  if (config.via.empty()) return;
  received_by_ = config.via + '-' + std::string(instance);
  via_ = {"1.0 " + received_by_, "1.1 " + received_by_, "2.0 " + received_by_, "3.0 " + received_by_};
}

bool Forwarding::is_loop(const Head& request) const noexcept {
  if (!detect_loops_ || received_by_.empty() || !request.fields.has(HeaderId::via)) return false;
  bool found = false;
  for (std::size_t i = request.fields.find(HeaderId::via); i != HeaderBlock::npos && !found;
       i = request.fields.find(HeaderId::via, i + 1)) {
    for_each_list_element(request.fields[i].value, [&](std::string_view element) {
      // received-protocol RWS received-by [ RWS comment ]
      const std::size_t space = element.find_first_of(" \t");
      if (space == std::string_view::npos) return true;
      std::string_view by = trim_ows(element.substr(space));
      by = by.substr(0, by.find_first_of(" \t"));
      found = iequals(by, received_by_);
      return !found;
    });
  }
  return found;
}

bool Forwarding::trusts(const Address& sender) const noexcept {
  return std::any_of(trusted_.begin(), trusted_.end(), [&](const Cidr& c) { return c.contains(sender); });
}

void Forwarding::add_via(Head& head) const {
  if (received_by_.empty()) return;
  const std::size_t i = head.version.major == 1 ? head.version.minor : head.version.major;
  // A line of its own: several lines are one list (RFC 9110 §5.3), and the order is kept.
  head.fields.add_view(HeaderId::via, "Via", via_[std::min<std::size_t>(i, 3)]);
}

void Forwarding::edit_request(Head& head, const PeerInfo& client) const {
  HeaderBlock& fields = head.fields;
  // Credentials for a proxy are for us, never for the origin (RFC 9110 §11.7.1).
  fields.remove(HeaderId::proxy_authorization);
  // HTTP/1.0 has no interim responses to ask for (RFC 9110 §10.1.1).
  if (head.version.major == 1 && head.version.minor == 0) fields.remove(HeaderId::expect);
  add_via(head);
  if (!x_forwarded_ && !forwarded_) return;

  if (trusted_.empty() || !trusts(client.remote)) {
    for (const HeaderId id : {HeaderId::x_forwarded_for, HeaderId::x_forwarded_proto, HeaderId::x_forwarded_host,
                              HeaderId::x_forwarded_port, HeaderId::forwarded, HeaderId::x_real_ip})
      fields.remove(id);
  }
  std::array<char, 64> buffer;
  const std::string_view ip = fields.arena().copy(write_ip(client.remote, buffer));
  if (x_forwarded_) add_x_forwarded(head, client, ip);
  if (forwarded_) add_forwarded(head, client, ip);
}

void Forwarding::add_x_forwarded(Head& head, const PeerInfo& client, std::string_view ip) const {
  HeaderBlock& fields = head.fields;
  append_to_list(fields, HeaderId::x_forwarded_for, "X-Forwarded-For", ip);
  // Set by the hop next to the client; a trusted hop in front of us knows better than we do.
  if (!fields.has(HeaderId::x_forwarded_proto))
    fields.add_view(HeaderId::x_forwarded_proto, "X-Forwarded-Proto", client.tls ? "https" : "http");
  if (!fields.has(HeaderId::x_forwarded_host) && !head.authority.empty())
    fields.add_view(HeaderId::x_forwarded_host, "X-Forwarded-Host", head.authority);
  if (!fields.has(HeaderId::x_forwarded_port)) {
    char* port = static_cast<char*>(fields.arena().allocate(8));
    fields.add_view(HeaderId::x_forwarded_port, "X-Forwarded-Port", {port, write_decimal(port, client.local.port())});
  }
}

void Forwarding::add_forwarded(Head& head, const PeerInfo& client, std::string_view ip) const {
  Arena& arena = head.fields.arena();
  const bool v6 = ip.find(':') != std::string_view::npos;
  const std::string_view proto = client.tls ? ";proto=https" : ";proto=http";
  const std::string_view open = v6 ? "for=\"[" : "for=";
  const std::string_view close = v6 ? "]\"" : "";
  const std::string_view element =
      head.authority.empty()
          ? join(arena, {open, ip, close, proto})
          : join(arena, {open, ip, close, ";host=", forwarded_value(arena, head.authority), proto});
  append_to_list(head.fields, HeaderId::forwarded, "Forwarded", element);
}

void Forwarding::edit_response(Head& head, DateCache& dates, std::uint64_t wall) const {
  add_via(head);
  if (head.is_interim()) return;
  HeaderBlock& fields = head.fields;
  const std::size_t first = fields.find(HeaderId::date);
  if (first == HeaderBlock::npos) {
    fields.add_view(HeaderId::date, "Date", dates.at(wall));
  } else if (fields.find(HeaderId::date, first + 1) != HeaderBlock::npos) {
    const Field* keep = &fields[first];
    fields.remove_if([&](const Field& f) { return f.id == HeaderId::date && &f != keep; });
  }
}

}  // namespace twp
