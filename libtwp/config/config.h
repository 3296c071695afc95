// The configuration: plain values with their defaults. docs/configuration.md describes every key; a test
// holds the two against each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace twp::config {

struct Tls {                                 // [listener.tls]
  std::vector<std::string> cert, key;        ///< PEM files, same number; the first pair is the default
  std::string ca;                            ///< instead: issue a leaf for the listener's host from the CA in this directory
  std::string client_ca;                     ///< ask clients for a certificate signed by this
  bool client_cert_required = true;          ///< when client_ca is set
  std::string min_version = "1.2";
  std::string ciphers, ciphersuites, groups;

  friend bool operator==(const Tls&, const Tls&) = default;
};

struct Listener {                            // [[listener]]
  std::string url;                           ///< http://host:port or https://host:port
  std::optional<Tls> tls;
  bool http1 = true;                         ///< take HTTP/1
  bool http2 = true;                         ///< take HTTP/2: by ALPN, on cleartext by its preface

  friend bool operator==(const Listener&, const Listener&) = default;
};

enum class Balance : std::uint8_t { round_robin, random, least_of_two };

struct Origin {                              // [[cluster.origin]]
  std::string url;                           ///< http://host:port, https://host:port, h2c://host:port
  unsigned weight = 1;                       ///< 0..1000; 0 takes no new requests

  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Cluster {                             // [[cluster]]
  std::string name;
  std::vector<Origin> origins;
  Balance balance = Balance::round_robin;
  std::string http = "h1";                   ///< h1, h2, auto (what ALPN chooses; without TLS h1)
  std::string ca;                            ///< PEM bundle for verification; empty: system store
  bool insecure = false;                     ///< do not verify origin certificates
  std::string verify_name;                   ///< certificate must be for this name instead of the host
  std::string sni;                           ///< send this name instead of the host
  std::string cert, key;                     ///< client certificate for mTLS
  std::string source;                        ///< local address to connect from
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::seconds(60);       ///< an idle pooled connection closes after this
  Duration queue_timeout = std::chrono::seconds(5);       ///< wait for a connection at most this long -> 503
  Duration response_timeout = std::chrono::seconds(0);    ///< request sent to response head; 0: none (stream_idle applies)
  unsigned max_connections = 1024;           ///< per worker and origin; more requests queue
  unsigned max_queue = 1024;                 ///< per worker and origin -> 503
  unsigned max_idle = 256;                   ///< idle connections kept per worker and origin

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

struct HeaderMatch {
  std::string name;
  std::optional<std::string> value;          ///< exact; absent: the header is present

  friend bool operator==(const HeaderMatch&, const HeaderMatch&) = default;
};

struct Route {                               // [[route]], first match wins
  std::vector<std::string> hosts;            ///< "a.test", "*.a.test"; empty: any
  std::optional<std::string> path_exact, path_prefix;
  std::vector<std::string> methods;
  std::vector<HeaderMatch> headers;
  std::string cluster;
  bool preserve_host = true;                 ///< send the client's Host; false: the origin's

  friend bool operator==(const Route&, const Route&) = default;
};

enum class ForwardedStyle : std::uint8_t { none, x_forwarded, forwarded, both };

struct Forwarding {                          // [forwarding]
  ForwardedStyle style = ForwardedStyle::x_forwarded;
  std::vector<std::string> trusted;          ///< CIDRs whose X-Forwarded-*/Forwarded are kept and appended to
  std::string via = "twp";                   ///< pseudonym in Via; empty: no Via is added
  bool detect_loops = true;                  ///< own pseudonym + instance in Via -> 508

  friend bool operator==(const Forwarding&, const Forwarding&) = default;
};

struct Timeouts {                            // [timeouts]
  Duration tls_handshake = std::chrono::seconds(10);
  Duration head = std::chrono::seconds(15);
  Duration keep_alive = std::chrono::seconds(75);
  Duration stream_idle = std::chrono::minutes(5);
  Duration drain = std::chrono::seconds(30);

  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

struct Limits {                              // [limits]
  std::uint32_t max_target = 16 * 1024;
  std::uint32_t max_head = 64 * 1024;
  std::uint32_t max_response_head = 128 * 1024;
  std::uint32_t max_fields = 256;
  std::uint32_t max_trailer = 16 * 1024;
  std::uint64_t max_body = 0;
  std::uint32_t stream_window = 256 * 1024;
  std::uint32_t max_interim = 32;
  std::uint32_t min_body_rate = 240;
  std::uint32_t max_connections = 0;         ///< client connections per process; 0: RLIMIT_NOFILE decides
  std::uint32_t h2_max_streams = 100;
  std::uint32_t h2_connection_window = 1024 * 1024;
  std::uint32_t h2_glitch_burst = 100;
  std::uint32_t h2_glitch_rate = 1;

  friend bool operator==(const Limits&, const Limits&) = default;
};

struct AccessLog {                           // [access_log]
  std::string file;                          ///< "-" standard output; empty: off

  friend bool operator==(const AccessLog&, const AccessLog&) = default;
};

struct Tcp {                                 // [tcp]
  std::string congestion;                    ///< TCP_CONGESTION; empty: the system's
  int backlog = 4096;
  bool abort_on_close = false;               ///< a FIN of a client that waits for its response is a departure

  friend bool operator==(const Tcp&, const Tcp&) = default;
};

struct Dns {                                 // [dns]
  std::string servers;
  Duration timeout = std::chrono::seconds(2);
  unsigned tries = 3;

  friend bool operator==(const Dns&, const Dns&) = default;
};

struct Config {
  unsigned workers = 0;                      ///< 0: one per core
  std::string admin;                         ///< http://127.0.0.1:PORT; empty: off
  std::string key_log;                       ///< TLS secrets of both legs, NSS format
  std::string log_level = "info";
  std::string inspect = "none";              ///< none, lite, full
  std::vector<Listener> listeners;
  std::vector<Cluster> clusters;
  std::vector<Route> routes;
  Forwarding forwarding;
  Timeouts timeouts;
  Limits limits;
  AccessLog access_log;
  Tcp tcp;
  Dns dns;

  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace twp::config
