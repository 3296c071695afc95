#include "config/url.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"

namespace twp::config {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  return fail(Fault::bad_config, quoted(text) + ": " + std::string(why));
}

std::optional<Scheme> scheme_from(std::string_view text) noexcept {
  for (const Scheme s : {Scheme::http, Scheme::https, Scheme::h2c, Scheme::h3})
    if (iequals(text, scheme_text(s))) return s;
  return std::nullopt;
}

bool valid_target(std::string_view t) noexcept { return std::ranges::all_of(t, is_target_char); }

// Digits and dots only: meant as an IPv4 address, so "127.0.0.300" is a mistake and not a name.
bool looks_like_ipv4(std::string_view host) noexcept {
  return std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
}

}  // namespace

std::string_view scheme_text(Scheme s) noexcept {
  switch (s) {
    case Scheme::http: return "http";
    case Scheme::https: return "https";
    case Scheme::h2c: return "h2c";
    case Scheme::h3: return "h3";
  }
  return "?";
}

std::string Url::authority() const {
  std::string out = is_ipv6_literal ? "[" + host + "]" : host;
  if (port != default_port()) out += ":" + std::to_string(port);
  return out;
}

std::string Url::text() const {
  const std::string h = is_ipv6_literal ? "[" + host + "]" : host;
  return std::string(scheme_text(scheme)) + "://" + h + ":" + std::to_string(port);
}

namespace {

Result<Url> parse_any_port(std::string_view text) {
  const auto colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0)
    return wrong(text, "expected a URL such as http://127.0.0.1:8080");
  const auto scheme = scheme_from(text.substr(0, colon));
  if (!scheme)
    return wrong(text, "unknown scheme " + quoted(text.substr(0, colon)) + " (expected http, https, h2c or h3)");
  Url url;
  url.scheme = *scheme;
  const std::string_view rest = text.substr(colon + 3);
  const auto end = rest.find_first_of("/?#");
  const std::string_view authority = rest.substr(0, end);
  if (authority.empty()) return wrong(text, "a host is missing");
  if (authority.find('@') != std::string_view::npos) return wrong(text, "user and password do not belong into this URL");
  if (authority.ends_with(':')) return wrong(text, "a port is missing after ':'");
  auto hp = parse_host_port(authority, url.default_port());
  if (!hp) return wrong(text, hp.error().what);
  url.host = lower(hp->host);
  url.is_ipv6_literal = hp->is_ipv6_literal;
  url.port = hp->port;
  if (!url.is_ipv6_literal && looks_like_ipv4(url.host) && !Address::parse(url.host, 0))
    return wrong(text, quoted(url.host) + " is not an IPv4 address");
  if (!url.is_ipv6_literal && !fits_dns(url.host))
    return wrong(text, "no host name is like this: labels have 1 to 63 characters, a name at most 253");
  if (end != std::string_view::npos) {
    const std::string_view target = rest.substr(end);
    if (target.find('#') != std::string_view::npos) return wrong(text, "a fragment ('#') is never sent: remove it");
    if (!valid_target(target)) return wrong(text, "blanks and control characters must be percent-encoded");
    url.target = target.front() == '?' ? "/" + std::string(target) : std::string(target);
  }
  return url;
}

}  // namespace

bool fits_dns(std::string_view host) noexcept {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() > 253) return false;
  for (;;) {
    const std::size_t dot = host.find('.');
    if (std::min(dot, host.size()) == 0 || std::min(dot, host.size()) > 63) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

Result<Url> parse_url(std::string_view text) {
  auto url = parse_any_port(text);
  if (url && url->port == 0) return wrong(text, "port must be 1 to 65535");
  return url;
}

Result<Url> parse_listen_url(std::string_view text) {
  auto url = parse_any_port(text);
  if (!url) return url;
  if (url->scheme == Scheme::h2c)
    return wrong(text, "a listener is http, https or h3 (http takes HTTP/1.1 and h2c on one port)");
  if (url->target != "/") return wrong(text, "a listener has no path");
  if (!listen_address(*url).valid())
    return wrong(text, "a listener needs an IP address or localhost (all interfaces: 0.0.0.0 or [::])");
  return url;
}

Result<Url> parse_origin_url(std::string_view text) {
  auto url = parse_url(text);
  if (url && url->target != "/") return wrong(text, "an origin has no path: the request's own is sent");
  return url;
}

Address listen_address(const Url& url) noexcept {
  const std::string_view ip = url.host == "localhost" ? std::string_view("127.0.0.1") : std::string_view(url.host);
  return Address::parse(ip, url.port).value_or(Address());
}

}  // namespace twp::config
