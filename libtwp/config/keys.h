// The one table of configuration keys. Everything that goes over keys (loading, saving, --set, the check of the
// documentation) is a visitor `v` with
//
//   v.value(const Spec&, T& field)               a key
//   v.table(name, Struct& sub)                   [name]
//   v.optional_table(name, std::optional<Struct>&)
//   v.array(name, std::vector<Struct>&)          [[name]]
//
// and calls keys(v, sub) for what is inside. The order here is the order of `twp-proxy config`.
#pragma once

#include <chrono>
#include <limits>

#include "config/config.h"
#include "config/value.h"

namespace twp::config {

namespace keys_detail {
using namespace std::chrono_literals;

inline constexpr std::uint64_t kKi = 1024, kMi = kKi * kKi, kGi = kMi * kKi;
inline constexpr std::uint64_t kMaxOctets = std::uint64_t{1} << 50;

constexpr Spec text(std::string_view name) { return {.name = name, .kind = Kind::text}; }
constexpr Spec boolean(std::string_view name) { return {.name = name, .kind = Kind::boolean}; }
constexpr Spec list(std::string_view name) { return {.name = name, .kind = Kind::list}; }
constexpr Spec integer(std::string_view name, std::uint64_t min, std::uint64_t max) {
  return {.name = name, .kind = Kind::integer, .min = min, .max = max};
}
constexpr Spec size(std::string_view name, std::uint64_t min, std::uint64_t max) {
  return {.name = name, .kind = Kind::size, .min = min, .max = max};
}
constexpr Spec duration(std::string_view name, Duration min, Duration max) {
  return {.name = name,
          .kind = Kind::duration,
          .min = static_cast<std::uint64_t>(min.count()),
          .max = static_cast<std::uint64_t>(max.count())};
}
constexpr Spec choice(std::string_view name, std::span<const std::string_view> words) {
  return {.name = name, .kind = Kind::choice, .choices = words};
}
constexpr Spec required(Spec s) {
  s.required = true;
  return s;
}

inline constexpr std::string_view kTlsVersions[] = {"1.2", "1.3"};
inline constexpr std::string_view kBalances[] = {"round-robin", "random", "least-of-two"};
inline constexpr std::string_view kOriginHttp[] = {"h1", "h2", "auto"};
inline constexpr std::string_view kStyles[] = {"none", "x-forwarded", "forwarded", "both"};
inline constexpr std::string_view kLevels[] = {"error", "warning", "info", "debug"};
inline constexpr std::string_view kInspect[] = {"none"};
}  // namespace keys_detail

template <class V>
void keys(V& v, Tls& t) {
  namespace k = keys_detail;
  v.value(k::list("cert"), t.cert);
  v.value(k::list("key"), t.key);
  v.value(k::text("ca"), t.ca);
  v.value(k::text("client_ca"), t.client_ca);
  v.value(k::boolean("client_cert_required"), t.client_cert_required);
  v.value(k::choice("min_version", k::kTlsVersions), t.min_version);
  v.value(k::text("ciphers"), t.ciphers);
  v.value(k::text("ciphersuites"), t.ciphersuites);
  v.value(k::text("groups"), t.groups);
}

template <class V>
void keys(V& v, Listener& l) {
  namespace k = keys_detail;
  v.value(k::required(k::text("url")), l.url);
  v.value(k::boolean("http1"), l.http1);
  v.value(k::boolean("http2"), l.http2);
  v.optional_table("tls", l.tls);
}

template <class V>
void keys(V& v, Origin& o) {
  namespace k = keys_detail;
  v.value(k::required(k::text("url")), o.url);
  v.value(k::integer("weight", 0, 1000), o.weight);
}

template <class V>
void keys(V& v, Cluster& c) {
  namespace k = keys_detail;
  using namespace std::chrono_literals;
  v.value(k::required(k::text("name")), c.name);
  v.value(k::choice("balance", k::kBalances), c.balance);
  v.value(k::choice("http", k::kOriginHttp), c.http);
  v.value(k::text("ca"), c.ca);
  v.value(k::boolean("insecure"), c.insecure);
  v.value(k::text("verify_name"), c.verify_name);
  v.value(k::text("sni"), c.sni);
  v.value(k::text("cert"), c.cert);
  v.value(k::text("key"), c.key);
  v.value(k::text("source"), c.source);
  v.value(k::duration("connect_timeout", 1ms, 1h), c.connect_timeout);
  v.value(k::duration("idle_timeout", 1ms, 24h), c.idle_timeout);
  v.value(k::duration("queue_timeout", 1ms, 1h), c.queue_timeout);
  v.value(k::duration("response_timeout", 0s, 24h), c.response_timeout);
  v.value(k::integer("max_connections", 1, 1'000'000), c.max_connections);
  v.value(k::integer("max_queue", 0, 1'000'000), c.max_queue);
  v.value(k::integer("max_idle", 0, 1'000'000), c.max_idle);
  v.array("origin", c.origins);
}

template <class V>
void keys(V& v, HeaderMatch& h) {
  namespace k = keys_detail;
  v.value(k::required(k::text("name")), h.name);
  v.value(k::text("value"), h.value);
}

template <class V>
void keys(V& v, Route& r) {
  namespace k = keys_detail;
  v.value(k::required(k::text("cluster")), r.cluster);
  v.value(k::list("hosts"), r.hosts);
  v.value(k::text("path_exact"), r.path_exact);
  v.value(k::text("path_prefix"), r.path_prefix);
  v.value(k::list("methods"), r.methods);
  v.value(k::boolean("preserve_host"), r.preserve_host);
  v.array("header", r.headers);
}

template <class V>
void keys(V& v, Forwarding& f) {
  namespace k = keys_detail;
  v.value(k::choice("style", k::kStyles), f.style);
  v.value(k::list("trusted"), f.trusted);
  v.value(k::text("via"), f.via);
  v.value(k::boolean("detect_loops"), f.detect_loops);
}

template <class V>
void keys(V& v, Timeouts& t) {
  namespace k = keys_detail;
  using namespace std::chrono_literals;
  v.value(k::duration("tls_handshake", 1ms, 1h), t.tls_handshake);
  v.value(k::duration("head", 1ms, 1h), t.head);
  v.value(k::duration("keep_alive", 1ms, 24h), t.keep_alive);
  v.value(k::duration("stream_idle", 1ms, 24h), t.stream_idle);
  v.value(k::duration("drain", 0s, 24h), t.drain);
}

template <class V>
void keys(V& v, Limits& l) {
  namespace k = keys_detail;
  v.value(k::size("max_target", 64, k::kMi), l.max_target);
  v.value(k::size("max_head", 256, 16 * k::kMi), l.max_head);
  v.value(k::size("max_response_head", 256, 16 * k::kMi), l.max_response_head);
  v.value(k::integer("max_fields", 1, 65535), l.max_fields);
  v.value(k::size("max_trailer", 0, 16 * k::kMi), l.max_trailer);
  v.value(k::size("max_body", 0, k::kMaxOctets), l.max_body);
  v.value(k::size("stream_window", 4 * k::kKi, k::kGi), l.stream_window);
  v.value(k::integer("max_interim", 0, 1024), l.max_interim);
  v.value(k::size("min_body_rate", 0, k::kGi), l.min_body_rate);
  v.value(k::integer("max_connections", 0, 10'000'000), l.max_connections);
  v.value(k::integer("h2_max_streams", 1, 65535), l.h2_max_streams);
  v.value(k::size("h2_connection_window", 64 * k::kKi, k::kGi), l.h2_connection_window);
  v.value(k::integer("h2_glitch_burst", 1, 1'000'000), l.h2_glitch_burst);
  v.value(k::integer("h2_glitch_rate", 0, 1'000'000), l.h2_glitch_rate);
}

template <class V>
void keys(V& v, AccessLog& a) {
  v.value(keys_detail::text("file"), a.file);
}

template <class V>
void keys(V& v, Tcp& t) {
  namespace k = keys_detail;
  v.value(k::text("congestion"), t.congestion);
  v.value(k::boolean("abort_on_close"), t.abort_on_close);
  v.value(k::integer("backlog", 1, 65535), t.backlog);
}

template <class V>
void keys(V& v, Dns& d) {
  namespace k = keys_detail;
  using namespace std::chrono_literals;
  v.value(k::text("servers"), d.servers);
  v.value(k::duration("timeout", 10ms, 1min), d.timeout);
  v.value(k::integer("tries", 1, 10), d.tries);
}

template <class V>
void keys(V& v, Config& c) {
  namespace k = keys_detail;
  v.value(k::integer("workers", 0, 1024), c.workers);
  v.value(k::text("admin"), c.admin);
  v.value(k::text("key_log"), c.key_log);
  v.value(k::choice("log_level", k::kLevels), c.log_level);
  v.value(k::choice("inspect", k::kInspect), c.inspect);
  v.table("forwarding", c.forwarding);
  v.table("timeouts", c.timeouts);
  v.table("limits", c.limits);
  v.table("access_log", c.access_log);
  v.table("tcp", c.tcp);
  v.table("dns", c.dns);
  v.array("listener", c.listeners);
  v.array("cluster", c.clusters);
  v.array("route", c.routes);
}

}  // namespace twp::config
