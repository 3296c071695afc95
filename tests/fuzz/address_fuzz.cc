// host:port texts, IP literals and networks. Oracle: what is accepted comes out the same when written and read again, and
// the two checks of an authority agree.
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool authority = twp::valid_authority(text);
  if (const auto r = twp::parse_host_port(text, 80)) {
    if (r->host.empty() || !authority) std::abort();
    const std::string again = (r->is_ipv6_literal ? "[" + r->host + "]" : r->host) + ":" + std::to_string(r->port);
    const auto second = twp::parse_host_port(again, 0);
    if (!second || second->host != r->host || second->port != r->port || second->is_ipv6_literal != r->is_ipv6_literal) std::abort();
  }
  if (const auto a = twp::Address::parse(text, 81)) {
    const auto b = twp::Address::parse(a->ip(), 81);
    if (!b || !(*a == *b) || a->port() != 81) std::abort();
    const auto c = twp::parse_host_port(a->text(), 0);
    if (!c || c->port != 81) std::abort();
    const auto net = twp::Cidr::parse(text);
    if (!net || !net->contains(*a)) std::abort();
  }
  (void)twp::Cidr::parse(text);
  return 0;
}
