// Plan: everything that a person asked for, in plain values. complete() checks them together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/url.h"
#include "http/method.h"

namespace twp::load {

enum class Workload : std::uint8_t {
  request,  ///< one request after the other: GET, POST ...
  early,    ///< a response that comes while the upload is still going on
  duplex,   ///< an upload that comes back as it is sent
  ws,       ///< WebSocket messages that come back
  grpc,     ///< unary calls whose message comes back
};

Result<Workload> parse_workload(std::string_view text);

/// What an SLO demands. Fractions and microseconds.
struct Slo {
  double errors = 0.001;
  std::uint64_t p99_us = 50'000;
  bool given = false;  ///< on the command line: missing it is exit status 3
  bool p99_given = false;  ///< else p99_us is what is usual for the version of HTTP

  bool met(double error_rate, std::uint64_t p99) const noexcept { return error_rate <= errors && p99 <= p99_us; }
};

/// A process whose use of the machine is reported, with all its descendants.
struct Watched {
  std::string name;  ///< "proxy", "origin"
  int pid = 0;
};
/// "proxy=1234".
Result<Watched> parse_watch(std::string_view text);

/// Range of status codes taken as right: "2xx", "200", "200-299".
struct StatusRange {
  std::uint16_t first = 200;
  std::uint16_t last = 299;
  bool holds(std::uint16_t s) const noexcept { return s >= first && s <= last; }
};
Result<StatusRange> parse_status(std::string_view text);

struct Plan {
  config::Url url;
  std::string host;        ///< Host and SNI instead of the URL's; empty: the URL's
  std::string connect_to;  ///< host:port to connect to instead of the URL's; empty: the URL's
  std::string ca_file;
  bool insecure = false;
  std::string http;        ///< "h1", "h2", "auto" (what ALPN chooses); empty: by the URL. complete() and negotiate() settle it

  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;
  std::uint64_t body_size = 0;   ///< octets of generated body
  std::string body_file;         ///< sent instead
  Workload workload = Workload::request;
  bool new_connection = false;
  bool resume = true;            ///< TLS sessions are resumed
  std::uint64_t read_rate = 0;   ///< octets a second and stream that are read of a response; 0: as fast as they come

  unsigned streams = 0;            ///< requests in flight per connection; 0: spread over connections_for()
  std::vector<unsigned> steps{1};  ///< concurrency: one for run, several for ramp
  Duration duration = std::chrono::seconds(8);
  Duration warmup = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(30);
  double rate = 0;                 ///< requests a second; 0: closed loop
  unsigned threads = 0;            ///< 0: by cores and concurrency

  StatusRange expect_status;
  std::int64_t expect_length = -1;  ///< octets of a response body; -1: as its head says
  bool verify_body = false;         ///< against verify_file, or against what the first good response had
  std::string verify_file;

  Slo slo;
  std::vector<Watched> watch;
  double limit_us = 0;              ///< microseconds of CPU that a perfect proxy needs a request; 0: not known

  // Columns of the report that only the caller knows.
  std::string run_id, arm, mode, client, origin, product, version, commit;
  unsigned repeat = 1;
  std::string csv_file, json_file;

  bool open_loop() const noexcept { return rate > 0; }
  bool http2() const noexcept { return http == "h2"; }
};

/// Checks what one value cannot show alone and fills in what was left open (version of HTTP, client wire, arm, the
/// workload's method and body). Error: one line for the person.
Result<void> complete(Plan& plan);
/// The version of HTTP is known: "h1" or "h2". Sets what depends on it; error as complete().
Result<void> settle_http(Plan& plan, std::string_view http);

/// Connections for one step: one for each request in flight with HTTP/1; with HTTP/2 as many as --streams asks for, else
/// min(concurrency, max(4 x cores, 16)), so that neither one connection nor one each is what is measured.
unsigned connections_for(const Plan& plan, unsigned concurrency, unsigned cores) noexcept;
/// Threads for one step: no more than connections, and no more than asked for.
unsigned threads_for(const Plan& plan, unsigned connections, unsigned cores) noexcept;

}  // namespace twp::load
