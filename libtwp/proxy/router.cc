#include "proxy/router.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"

namespace twp {
namespace {

// The name or address that a request is for: without port, brackets and the dot at the end of an absolute name.
std::string_view bare_host(std::string_view authority) noexcept {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return authority.substr(1, end == std::string_view::npos ? end : end - 1);
  }
  authority = authority.substr(0, authority.find(':'));
  if (authority.ends_with('.')) authority.remove_suffix(1);
  return authority;
}

bool host_matches(std::string_view pattern, std::string_view host) noexcept {
  if (!pattern.starts_with('*')) return iequals(pattern, host);
  const std::string_view suffix = pattern.substr(1);  // ".a.test"
  return host.size() > suffix.size() && iequals(host.substr(host.size() - suffix.size()), suffix);
}

bool header_matches(const config::HeaderMatch& wanted, const HeaderBlock& fields) noexcept {
  for (std::size_t i = fields.find(wanted.name); i != HeaderBlock::npos; i = fields.find(wanted.name, i + 1))
    if (!wanted.value || fields[i].value == *wanted.value) return true;
  return false;
}

}  // namespace

struct Router::Table {
  struct Entry {
    RouteTarget target;
    std::vector<std::string> hosts;  // patterns without trailing dot and brackets
    const config::Route* route = nullptr;

    bool matches(const Head& request, std::string_view host, std::string_view path) const noexcept {
      const config::Route& r = *route;
      if (!hosts.empty() && std::ranges::none_of(hosts, [&](const std::string& h) { return host_matches(h, host); }))
        return false;
      if (r.path_exact && path != *r.path_exact) return false;
      if (r.path_prefix && !path.starts_with(*r.path_prefix)) return false;
      if (!r.methods.empty() && std::ranges::find(r.methods, request.method_name) == r.methods.end()) return false;
      return std::ranges::all_of(r.headers, [&](const auto& h) { return header_matches(h, request.fields); });
    }
  };
  std::vector<Entry> entries;
};

Router::Router(const config::Config& config) {
  auto table = std::make_unique<Table>();
  for (const config::Route& route : config.routes) {
    const auto cluster = std::ranges::find(config.clusters, route.cluster, &config::Cluster::name);
    Table::Entry& e = table->entries.emplace_back();
    e.target.cluster = static_cast<std::uint32_t>(cluster - config.clusters.begin());
    e.target.preserve_host = route.preserve_host;
    e.target.route = &route;
    e.route = &route;
    for (const std::string& h : route.hosts) e.hosts.emplace_back(bare_host(h));
  }
  table_ = std::move(table);
}

Router::~Router() = default;

const RouteTarget* Router::find(const Head& request) const noexcept {
  const std::string_view host = bare_host(request.authority);
  const std::string_view path = request.path.substr(0, request.path.find('?'));
  for (const Table::Entry& e : table_->entries)
    if (e.matches(request, host, path)) return &e.target;
  return nullptr;
}

}  // namespace twp
