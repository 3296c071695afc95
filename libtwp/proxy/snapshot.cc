#include "proxy/snapshot.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <utility>

#include "base/ascii.h"
#include "config/url.h"

namespace twp {
namespace {

std::unexpected<Error> at_key(const std::string& key, Error error) {
  error.what = key + ": " + error.what;
  return std::unexpected(std::move(error));
}

/// Path and state of a file: a reload notices that a certificate was renewed under the same name.
std::string file_stamp(const std::string& path) {
  if (path.empty()) return "-;";
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return path + "?;";
  return path + ':' + std::to_string(st.st_ino) + ':' + std::to_string(st.st_size) + ':' +
         std::to_string(st.st_mtim.tv_sec) + '.' + std::to_string(st.st_mtim.tv_nsec) + ';';
}

Result<Snapshot::Listener> prepare_listener(const config::Listener& from, std::shared_ptr<const TlsIdentity> issued) {
  const auto url = config::parse_listen_url(from.url);
  if (!url) return std::unexpected(url.error());
  Snapshot::Listener out;
  out.at = config::listen_address(*url);
  if (!out.at.valid()) return fail(Fault::bad_config, from.url + ": expected an IP address or localhost");
  out.tls = url->encrypted();
  if (issued != nullptr) out.identities.push_back(std::move(issued));
  if (!from.tls) return out;
  for (std::size_t i = 0; i < from.tls->cert.size(); ++i) {
    if (i >= from.tls->key.size()) return fail(Fault::bad_config, "tls: fewer keys than certificates");
    auto identity = TlsIdentity::load(from.tls->cert[i], from.tls->key[i]);
    if (!identity) return std::unexpected(identity.error());
    out.identities.push_back(std::move(*identity));
  }
  return out;
}

Result<Snapshot::Cluster> prepare_cluster(const config::Cluster& from) {
  Snapshot::Cluster out;
  for (const config::Origin& o : from.origins) {
    const auto url = config::parse_origin_url(o.url);
    if (!url) return std::unexpected(url.error());
    Snapshot::Origin origin;
    origin.host = url->host;
    origin.port = url->port;
    origin.tls = url->encrypted();
    // The scheme is the origin's own word; without TLS nothing is there to choose by.
    const bool h2c = url->scheme == config::Scheme::h2c;
    origin.http = h2c ? "h2" : from.http == "auto" && !origin.tls ? "h1" : from.http;
    origin.weight = o.weight;
    origin.authority = url->authority();
    origin.label = (url->is_ipv6_literal ? '[' + url->host + ']' : url->host) + ':' + std::to_string(url->port);
    out.origins.push_back(std::move(origin));
  }
  if (!from.cert.empty()) {
    auto identity = TlsIdentity::load(from.cert, from.key);
    if (!identity) return std::unexpected(identity.error());
    out.identity = std::move(*identity);
  }
  if (!from.source.empty()) {
    const auto source = Address::parse(from.source, 0);
    if (!source) return fail(Fault::bad_config, "source: " + from.source + ": expected an IP address");
    out.source = *source;
  }
  out.tls_files = file_stamp(from.ca) + file_stamp(from.cert) + file_stamp(from.key);
  return out;
}

}  // namespace

ProcessSecrets ProcessSecrets::random() {
  ProcessSecrets out;
  out.ticket_keys = TlsTicketKeys::random();
  std::array<unsigned char, 4> octets{};
  // Only has to differ between processes; the call cannot fail for so few octets once the pool is ready.
  if (::getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    const std::uint64_t now = wall_now();
    for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<unsigned char>(now >> (8 * i));
  }
  static constexpr char kHex[] = "0123456789abcdef";
  for (const unsigned char o : octets) {
    out.instance += kHex[o >> 4];
    out.instance += kHex[o & 15];
  }
  return out;
}

Result<std::shared_ptr<const Snapshot>> Snapshot::prepare(config::Config config, const ProcessSecrets& secrets,
                                                          const std::vector<std::shared_ptr<const TlsIdentity>>& issued) {
  std::shared_ptr<Snapshot> s(new Snapshot);
  s->config_ = std::move(config);
  s->secrets_ = secrets;
  for (std::size_t i = 0; i < s->config_.listeners.size(); ++i) {
    auto l = prepare_listener(s->config_.listeners[i], i < issued.size() ? issued[i] : nullptr);
    if (!l) return at_key("listener[" + std::to_string(i) + "]", std::move(l.error()));
    s->listeners_.push_back(std::move(*l));
  }
  for (const config::Cluster& c : s->config_.clusters) {
    auto prepared = prepare_cluster(c);
    if (!prepared) return at_key("cluster \"" + c.name + '"', std::move(prepared.error()));
    s->clusters_.push_back(std::move(*prepared));
  }
  s->router_ = std::make_unique<const Router>(s->config_);
  return s;
}

}  // namespace twp
