// What one step of a run measured: the counters of the workers merged, and the row that is made of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "loadgen/histogram.h"
#include "loadgen/plan.h"
#include "loadgen/sampler.h"

namespace twp::load {

/// A step's requests in flight, dealt out to its connections.
struct Spread {
  unsigned lanes = 1;        ///< of all connections together, at least one each
  unsigned connections = 1;
  /// Lanes of connection `i`, 0..connections-1.
  unsigned of(unsigned i) const noexcept { return lanes / connections + (i < lanes % connections ? 1 : 0); }
  unsigned most() const noexcept { return of(0); }
};

/// Why a request counts as an error.
enum class Failure : std::uint8_t {
  status, length, body,
  transport,  ///< the connection failed under the request
  timeout, connect,
  refused,    ///< the server has not processed it: REFUSED_STREAM, or GOAWAY with a lower number
  reset,      ///< the server reset the stream
  grpc,       ///< another grpc-status than 0, or a message that is none
  stray,      ///< octets after the end of the response: the connection is not in step
  count_
};
std::string_view failure_name(Failure f) noexcept;

/// Counters of one worker; merge() adds those of another.
struct Counters {
  Histogram latency;    ///< of right answers; open loop: from the intended start
  Histogram service;    ///< open loop: from the actual start
  Histogram connecting; ///< dial to open session, whole run
  std::uint64_t requests = 0;   ///< answered in the window, right or wrong, and timeouts
  std::uint64_t octets = 0;     ///< of response bodies
  std::uint64_t unfinished = 0; ///< open loop: due in the window and without an answer at its end
  std::uint64_t early = 0;      ///< final heads that came before the upload was complete
  std::uint64_t connect_retries = 0;  ///< failed dials, whole run
  unsigned allowed_streams = 0;       ///< fewest that the server takes at a time on a connection, when more were to be; else 0
  std::array<std::uint64_t, static_cast<std::size_t>(Failure::count_)> failures{};
  std::string first_error;      ///< what the first error was, for the person

  std::uint64_t errors() const noexcept;
  void note_allowed(unsigned streams) noexcept {
    if (streams != 0 && (allowed_streams == 0 || streams < allowed_streams)) allowed_streams = streams;
  }
  void fail(Failure f) noexcept { ++failures[static_cast<std::size_t>(f)]; }
  void merge(const Counters& other);
};

struct Step {
  unsigned concurrency = 0;
  unsigned connections = 0;
  unsigned threads = 0;
  double warmup_s = 0;
  double duration_s = 0;          ///< as measured
  Counters counters;
  std::uint64_t own_cpu_ns = 0;
  double busiest_thread = 0;      ///< share of a core that the busiest worker thread used, 0..1
  std::vector<Sampler::Usage> usage;
  std::string utc;                ///< start of the measurement
  bool interrupted = false;

  double rps() const noexcept;
  double error_rate() const noexcept;
  double goodput_mib_s() const noexcept;
  bool slo_met(const Slo& slo) const noexcept;
  /// The generator itself used more than 90 % of a thread: the numbers are its limit, not the target's.
  bool saturated() const noexcept { return busiest_thread > 0.9; }
  const Sampler::Usage* watched(std::string_view name) const noexcept;
  double per_request_us(std::uint64_t cpu_ns) const noexcept;
};

/// The columns of the CSV in order: the contract that scripts build on.
inline constexpr std::array<std::string_view, 34> kColumns{
    "run_id", "commit", "utc", "host", "cores", "arm", "mode", "client", "origin", "product", "version", "repeat",
    "concurrency", "connections", "warmup_s", "duration_s", "requests", "errors", "error_rate", "rps", "goodput_mib_s",
    "p50_us", "p90_us", "p99_us", "p999_us", "max_us", "slo_p99_us", "slo_pass", "proxy_rss_peak_bytes",
    "proxy_cpu_avg_pct", "proxy_cpu_us_per_req", "origin_cpu_us_per_req", "loadgen_cpu_us_per_req", "limit_ratio"};

struct Cell {
  std::string text;      ///< empty: not measured
  bool number = false;   ///< JSON writes it without quotes
};
using Row = std::array<Cell, kColumns.size()>;

Row make_row(const Plan& plan, const Step& step);

/// "a,b,c\n" with RFC 4180 quoting where needed.
std::string csv_header();
std::string csv_line(const Row& row);
/// Appends the rows, and the header first when the file is new or empty. An existing file with another header is an error.
Result<void> append_csv(const std::string& path, const std::vector<Row>& rows);

/// One object: the row by column name, and under "detail" what the CSV has no column for.
std::string json_step(const Plan& plan, const Step& step);
/// {"steps": [...], "sustain_concurrency": ..., "peak_rps": ...}
std::string json_ramp(const Plan& plan, const std::vector<Step>& steps);

/// Last step whose SLO was met; nullptr when none was.
const Step* sustained(const Plan& plan, const std::vector<Step>& steps) noexcept;
const Step* peak(const std::vector<Step>& steps) noexcept;

/// What the program ends with: 3 when a step missed an SLO that was given, 1 when nothing was measured or nothing went
/// right, else 0. A step that was interrupted before its first answer has not been measured.
int exit_status(const Plan& plan, const std::vector<Step>& steps) noexcept;

}  // namespace twp::load
