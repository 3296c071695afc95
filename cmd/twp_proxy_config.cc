#include "cmd/twp_proxy_config.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "certs/authority.h"
#include "certs/name.h"
#include "certs/pem.h"
#include "cmd/cli_congestion.h"
#include "cmd/cli_identity.h"
#include "config/load.h"
#include "config/url.h"
#include "config/validate.h"

namespace twp::cli {
namespace {

config::Config from_flags(const ProxyArguments& a) {
  config::Config c;
  for (const std::string& url : a.listen) {
    config::Listener& l = c.listeners.emplace_back();
    l.url = url;
    const auto parsed = config::parse_listen_url(url);
    if (!parsed || parsed->scheme == config::Scheme::http) continue;
    l.tls.emplace();
    l.tls->cert = a.cert;
    l.tls->key = a.key;
    l.tls->ca = a.ca;
  }
  config::Cluster& k = c.clusters.emplace_back();
  k.name = "origin";
  for (const std::string& url : a.to) k.origins.push_back({url, 1});
  c.routes.emplace_back().cluster = k.name;
  return c;
}

// Flags that `run` has too, as the keys they set.
std::vector<std::string> shared_flags(const ProxyArguments& a) {
  std::vector<std::string> out;
  const auto add = [&out](const char* key, const std::string& value) {
    if (!value.empty()) out.push_back(std::string(key) + "=" + value);
  };
  add("workers", a.workers);
  add("admin", a.admin);
  add("inspect", a.inspect);
  add("access_log.file", a.access_log);
  add("key_log", a.key_log);
  add("timeouts.drain", a.drain_timeout);
  add("tcp.congestion", a.congestion);
  add("cluster.http", a.origin_http);
  add("cluster.ca", a.origin_ca);
  if (a.origin_insecure) add("cluster.insecure", "true");
  out.insert(out.end(), a.sets.begin(), a.sets.end());
  return out;
}

/// The names a client may use for a listener: its address and, on loopback and on every interface, the local ones.
std::vector<std::string> leaf_names(const config::Url& url) {
  const Address at = config::listen_address(url);
  const bool any = at.ip() == "0.0.0.0" || at.ip() == "::";
  if (!any && !at.is_loopback()) return {at.ip()};
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  if (!any) names.push_back(at.ip());
  char host[256] = "";
  if (any && ::gethostname(host, sizeof host - 1) == 0 && certs::parse_name(host)) names.emplace_back(host);
  return names;
}

Result<std::shared_ptr<const TlsIdentity>> issue_leaf(const config::Listener& l) {
  auto authority = certs::Authority::load(l.tls->ca);
  if (!authority) return std::unexpected(authority.error());
  const auto url = config::parse_listen_url(l.url);
  return issue_identity(*authority, leaf_names(*url), l.tls->ca);
}

std::unexpected<Error> bad(const std::string& key, const Error& e) { return fail(Fault::bad_config, key + ": " + e.what); }

// config::validate() speaks of files that cannot be read.
bool readable(const std::string& file) { return !file.empty() && ::access(file.c_str(), R_OK) == 0; }

void check_bundle(std::vector<config::Problem>& out, const std::string& key, const std::string& file) {
  if (!readable(file)) return;
  if (auto chain = certs::load_chain(file); !chain) out.push_back({key, chain.error().what});
}

void check_identity(std::vector<config::Problem>& out, const std::string& table, const std::string& cert, const std::string& key) {
  if (!readable(cert) || !readable(key)) return;
  if (auto chain = certs::load_chain(cert); !chain) out.push_back({table + ".cert", chain.error().what});
  else if (auto both = TlsIdentity::load(cert, key); !both) out.push_back({table + ".key", both.error().what});
}

/// What only OpenSSL and the kernel can say about a configuration.
std::vector<config::Problem> machine_problems(const config::Config& c) {
  std::vector<config::Problem> out;
  if (std::string wrong = congestion_problem(c.tcp.congestion); !wrong.empty()) out.push_back({"tcp.congestion", std::move(wrong)});
  for (std::size_t i = 0; i < c.clusters.size(); ++i) {
    const std::string table = "cluster[" + std::to_string(i) + "]";
    check_bundle(out, table + ".ca", c.clusters[i].ca);
    check_identity(out, table, c.clusters[i].cert, c.clusters[i].key);
  }
  for (std::size_t i = 0; i < c.listeners.size(); ++i) {
    if (!c.listeners[i].tls) continue;
    const config::Tls& t = *c.listeners[i].tls;
    const std::string table = "listener[" + std::to_string(i) + "].tls";
    check_bundle(out, table + ".client_ca", t.client_ca);
    for (std::size_t k = 0; k < std::min(t.cert.size(), t.key.size()); ++k) check_identity(out, table, t.cert[k], t.key[k]);
    TlsServerOptions options;
    options.min_version = t.min_version;
    options.ciphers = t.ciphers;
    options.ciphersuites = t.ciphersuites;
    options.groups = t.groups;
    for (TlsOptionProblem& p : check_tls_options(options))
      out.push_back({table + "." + std::string(p.option), std::move(p.what)});
  }
  return out;
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ConfigOrErrors make_config(const ProxyArguments& a) {
  config::Loaded loaded;
  if (a.file.empty())
    loaded.config = from_flags(a);
  else
    loaded = config::load_file(a.file, machine_problems);
  if (!loaded.ok()) return std::unexpected(loaded.errors);
  std::vector<std::string> errors;
  for (const std::string& assignment : shared_flags(a))
    if (std::string wrong = config::set(loaded.config, assignment); !wrong.empty()) errors.push_back(std::move(wrong));
  if (!errors.empty()) return std::unexpected(errors);
  std::vector<config::Problem> problems = config::validate(loaded.config);
  std::ranges::move(machine_problems(loaded.config), std::back_inserter(problems));
  for (const config::Problem& p : problems)
    errors.push_back(p.path.empty() ? p.what : p.path + ": " + p.what);
  if (!errors.empty()) return std::unexpected(errors);
  return std::move(loaded.config);
}

Result<std::shared_ptr<const Snapshot>> prepare(config::Config config, const ProcessSecrets& secrets) {
  if (config.workers == 0) config.workers = usable_cores();
  std::vector<std::shared_ptr<const TlsIdentity>> issued(config.listeners.size());
  for (std::size_t i = 0; i < config.listeners.size(); ++i) {
    const config::Listener& l = config.listeners[i];
    if (!l.tls || l.tls->ca.empty()) continue;
    auto identity = issue_leaf(l);
    if (!identity) return bad("listener[" + std::to_string(i) + "].tls.ca", identity.error());
    issued[i] = std::move(*identity);
  }
  auto snapshot = Snapshot::prepare(std::move(config), secrets, issued);
  if (!snapshot) return fail(Fault::bad_config, snapshot.error().what);
  return snapshot;
}

}  // namespace twp::cli
