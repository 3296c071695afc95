// URLs of options and configuration. Oracle: what is accepted comes out the same when written and read again, and the
// narrower kinds of URL are URLs.
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/url.h"

namespace {

using twp::config::Url;

bool same(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.host == b.host && a.is_ipv6_literal == b.is_ipv6_literal && a.port == b.port && a.target == b.target;
}

void check(const Url& url) {
  if (url.host.empty() || url.target.empty() || url.target.front() != '/' || url.target.find('#') != std::string::npos) std::abort();
  if (!twp::valid_authority(url.authority())) std::abort();
  const auto host_port = twp::parse_host_port(url.authority(), url.default_port());
  if (!host_port || host_port->host != url.host || host_port->port != url.port) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto url = twp::config::parse_url(text);
  if (url) {
    check(*url);
    if (url->port == 0) std::abort();
    const auto again = twp::config::parse_url(url->text() + url->target);
    if (!again || !same(*url, *again)) std::abort();
  } else if (url.error().what.empty()) {
    std::abort();
  }
  if (const auto listen = twp::config::parse_listen_url(text)) {
    check(*listen);
    if (listen->target != "/" || listen_address(*listen).port() != listen->port) std::abort();
    const auto again = twp::config::parse_listen_url(listen->text());
    if (!again || !same(*listen, *again)) std::abort();
    if (listen->port != 0 && !url) std::abort();
  }
  if (const auto origin = twp::config::parse_origin_url(text)) {
    if (!url || !same(*origin, *url) || origin->target != "/") std::abort();
  }
  return 0;
}
