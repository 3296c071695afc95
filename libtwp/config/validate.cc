#include "config/validate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/ascii.h"
#include "config/url.h"

namespace twp::config {
namespace {

std::string quoted(const std::string& text) { return "'" + text + "'"; }

std::string element(std::string_view path, std::size_t i) { return std::string(path) + "[" + std::to_string(i) + "]"; }

class Checker {
 public:
  explicit Checker(const Config& config) : c_(config) {}

  std::vector<Problem> run() {
    globals();
    forwarding();
    limits();
    dns();
    listeners();
    clusters();
    routes();
    return std::move(problems_);
  }

 private:
  void wrong(std::string path, std::string what) { problems_.push_back({std::move(path), std::move(what)}); }

  void readable(const std::string& path, const std::string& file) {
    if (file.empty()) return;
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return wrong(path, quoted(file) + ": cannot read: " + errno_text(errno));
    struct stat st {};
    const bool directory = ::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    ::close(fd);
    if (directory) wrong(path, quoted(file) + ": is a directory");
  }
  void in_a_directory(const std::string& path, const std::string& file) {
    if (file.empty() || file == "-") return;
    struct stat st {};
    if (::stat(file.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return wrong(path, quoted(file) + ": is a directory");
    const auto slash = file.find_last_of('/');
    const std::string dir = slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
    if (::access(dir.c_str(), W_OK | X_OK) != 0 && ::access(file.c_str(), W_OK) != 0)
      wrong(path, quoted(file) + ": cannot write into " + quoted(dir) + ": " + errno_text(errno));
  }

  void globals() {
    if (!c_.admin.empty()) admin();
    in_a_directory("key_log", c_.key_log);
    in_a_directory("access_log.file", c_.access_log.file);
    if (c_.tcp.congestion.size() > 15 || !std::ranges::all_of(c_.tcp.congestion, is_token_char))
      wrong("tcp.congestion", quoted(c_.tcp.congestion) + " is not the name of a congestion control such as reno");
  }

  void admin() {
    const auto url = parse_listen_url(c_.admin);
    if (!url) return wrong("admin", url.error().what);
    if (url->scheme != Scheme::http) return wrong("admin", quoted(c_.admin) + ": expected http://127.0.0.1:PORT");
    if (!listen_address(*url).is_loopback())
      wrong("admin", quoted(c_.admin) + ": the admin listener must be on a loopback address (127.0.0.1 or [::1])");
  }

  void forwarding() {
    const Forwarding& f = c_.forwarding;
    for (std::size_t i = 0; i < f.trusted.size(); ++i)
      if (const auto cidr = Cidr::parse(f.trusted[i]); !cidr) wrong("forwarding.trusted", cidr.error().what);
    if (!f.via.empty() && !is_token(f.via))
      wrong("forwarding.via", quoted(f.via) + ": expected a word of letters, digits and -._ (RFC 9110 §7.6.3)");
    if (f.via.empty() && f.detect_loops)
      wrong("forwarding.via", "loops are detected by Via: set a name or detect_loops = false");
  }

  void limits() {
    const Limits& l = c_.limits;
    if (l.max_target > l.max_head)
      wrong("limits.max_head", "is smaller than limits.max_target (" + std::to_string(l.max_target) +
                                   "), which is a part of it");
  }

  void dns() {
    std::string_view list = c_.dns.servers;
    while (!list.empty()) {
      const auto comma = list.find(',');
      const std::string one(trim_ows(list.substr(0, comma)));
      const auto hp = parse_host_port(one.find(':') != one.rfind(':') && !one.starts_with('[') ? "[" + one + "]" : one, 53);
      if (!hp || !Address::parse(hp->host, hp->port))
        wrong("dns.servers", quoted(one) + " is not an IP address with an optional port (expected e.g. 127.0.0.1:53)");
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
  }

  void listeners() {
    if (c_.listeners.empty()) wrong("", "no [[listener]]: nothing would be served");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < c_.listeners.size(); ++i) {
      const Listener& l = c_.listeners[i];
      const std::string path = element("listener", i);
      const auto url = parse_listen_url(l.url);
      if (!url) {
        wrong(path + ".url", url.error().what);
        continue;
      }
      if (url->scheme == Scheme::h3) wrong(path + ".url", quoted(l.url) + ": expected http://host:port or https://host:port");
      if (!l.http1 && !l.http2) wrong(path + ".http2", "http1 and http2 are both false: the listener would speak nothing");
      const std::string at = listen_address(*url).text();
      if (url->port != 0 && !seen.insert(at).second) wrong(path + ".url", "another listener has " + at + " already");
      if (url->scheme == Scheme::http && l.tls) wrong(path + ".tls", "TLS settings on a listener without TLS (expected an https URL)");
      if (url->scheme == Scheme::https) server_tls(path, l);
    }
  }

  void server_tls(const std::string& listener, const Listener& l) {
    const std::string path = listener + ".tls";
    if (!l.tls || (l.tls->cert.empty() && l.tls->ca.empty()))
      return wrong(path, "an https listener needs a certificate: tls.cert and tls.key, or tls.ca");
    const Tls& t = *l.tls;
    if (!t.cert.empty() && !t.ca.empty()) wrong(path + ".ca", "expected either cert and key, or ca");
    if (t.cert.size() != t.key.size())
      wrong(path + ".key", "expected one key for each certificate: " + std::to_string(t.cert.size()) + " cert, " +
                               std::to_string(t.key.size()) + " key");
    for (const std::string& f : t.cert) readable(path + ".cert", f);
    for (const std::string& f : t.key) readable(path + ".key", f);
    if (!t.ca.empty()) {
      const std::size_t before = problems_.size();
      readable(path + ".ca", t.ca + "/ca.pem");
      if (problems_.size() == before) readable(path + ".ca", t.ca + "/ca-key.pem");
    }
    readable(path + ".client_ca", t.client_ca);
  }

  void clusters() {
    if (c_.clusters.empty()) wrong("", "no [[cluster]]: there is nowhere to forward to");
    std::set<std::string> names;
    for (std::size_t i = 0; i < c_.clusters.size(); ++i) {
      const Cluster& k = c_.clusters[i];
      const std::string path = element("cluster", i);
      if (k.name.empty()) wrong(path + ".name", "must not be empty");
      if (!names.insert(k.name).second) wrong(path + ".name", "another cluster is called " + quoted(k.name) + " already");
      origins(path, k);
      client_tls(path, k);
      if (!k.source.empty() && !Address::parse(k.source, 0))
        wrong(path + ".source", quoted(k.source) + " is not an IP address");
    }
  }

  void origins(const std::string& path, const Cluster& k) {
    if (k.origins.empty()) return wrong(path, "no [[cluster.origin]]: the cluster is empty");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < k.origins.size(); ++i) {
      const std::string key = element(path + ".origin", i) + ".url";
      const auto url = parse_origin_url(k.origins[i].url);
      if (!url)
        wrong(key, url.error().what);
      else if (url->scheme == Scheme::h3)
        wrong(key, quoted(k.origins[i].url) + ": expected http://host:port, https://host:port or h2c://host:port");
      else if (!seen.insert(url->text()).second)
        wrong(key, "the cluster has " + url->text() + " already (use weight)");
    }
    if (std::ranges::all_of(k.origins, [](const Origin& o) { return o.weight == 0; }))
      wrong(path, "every origin has weight 0: none would get a request");
  }

  void client_tls(const std::string& path, const Cluster& k) {
    readable(path + ".ca", k.ca);
    readable(path + ".cert", k.cert);
    readable(path + ".key", k.key);
    if (!k.cert.empty() && k.key.empty()) wrong(path + ".cert", "a client certificate needs its key");
    if (k.cert.empty() && !k.key.empty()) wrong(path + ".key", "a client key needs its certificate");
    for (const auto& [key, name] : {std::pair(".sni", &k.sni), std::pair(".verify_name", &k.verify_name)})
      if (!name->empty() && !valid_host(*name)) wrong(path + key, quoted(*name) + " is not a host name");
    if (!k.sni.empty() && Address::parse(k.sni, 0)) wrong(path + ".sni", "an IP address is never sent as SNI (RFC 6066 §3)");
  }

  static bool valid_host(std::string_view name) {
    const bool v6 = name.find(':') != std::string_view::npos;
    return v6 ? Address::parse(name, 0).has_value() : valid_authority(name) && fits_dns(name);
  }

  void routes() {
    if (c_.routes.empty() && !c_.clusters.empty()) wrong("", "no [[route]]: no request would find a cluster");
    for (std::size_t i = 0; i < c_.routes.size(); ++i) route(element("route", i), c_.routes[i]);
  }

  void route(const std::string& path, const Route& r) {
    if (std::ranges::none_of(c_.clusters, [&](const Cluster& k) { return k.name == r.cluster; }))
      wrong(path + ".cluster", "there is no cluster " + quoted(r.cluster));
    for (const std::string& h : r.hosts)
      if (!valid_pattern(h)) wrong(path + ".hosts", quoted(h) + ": expected a host name without port, or *.NAME");
    if (r.path_exact && r.path_prefix) wrong(path + ".path_prefix", "expected either path_exact or path_prefix");
    for (const auto& [key, value] : {std::pair(".path_exact", &r.path_exact), std::pair(".path_prefix", &r.path_prefix)})
      if (*value && !valid_path(**value)) wrong(path + key, quoted(**value) + ": expected a path that begins with '/', without '?'");
    for (const std::string& m : r.methods)
      if (!is_token(m)) wrong(path + ".methods", quoted(m) + " is not a method");
    for (std::size_t i = 0; i < r.headers.size(); ++i) {
      const HeaderMatch& h = r.headers[i];
      const std::string key = element(path + ".header", i);
      if (!is_token(h.name)) wrong(key + ".name", quoted(h.name) + " is not a field name");
      if (iequals(h.name, "host")) wrong(key + ".name", "match the host with hosts");
      if (h.value && (!is_field_value(*h.value) || trim_ows(*h.value) != *h.value))
        wrong(key + ".value", "is not a field value (no control characters, no blanks around it)");
    }
  }

  static bool valid_pattern(std::string_view h) {
    if (h.starts_with("*.")) h.remove_prefix(2);
    if (h.starts_with('[') && h.ends_with(']')) return Address::parse(h.substr(1, h.size() - 2), 0).has_value();
    return !h.empty() && h.find('*') == std::string_view::npos && h.find(':') == std::string_view::npos && valid_host(h);
  }
  static bool valid_path(std::string_view p) {
    return p.starts_with('/') && p.find('?') == std::string_view::npos && std::ranges::all_of(p, is_target_char);
  }

  const Config& c_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> validate(const Config& config) { return Checker(config).run(); }

}  // namespace twp::config
