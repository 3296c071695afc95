// Prometheus text and memory report, made from a copy of every worker's counters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/counters.h"

namespace twp {

/// What one worker says about itself.
struct WorkerSample {
  Counters counters;
  std::uint64_t client_connections = 0;
  std::uint64_t blocks_live = 0;  ///< of kBlockSize octets, in use
  std::uint64_t blocks_free = 0;  ///< kept for later
  std::uint64_t arena_live_bytes = 0;  ///< octets of heads
  std::uint64_t arena_free_bytes = 0;  ///< kept for later
  std::uint64_t turns = 0;
};

struct ProcessInfo {
  std::string version, commit;
  std::uint64_t start_wall = 0;  ///< ns since 1970
};

/// Text exposition format 0.0.4: twp_* summed over the workers, per fault and status class, and process_*.
std::string prometheus_text(const std::vector<WorkerSample>& workers, const ProcessInfo& process);

/// {"rss_bytes":..,"heap_bytes":..,"workers":[{"blocks_live":..},..]}: where the memory is.
std::string memory_json(const std::vector<WorkerSample>& workers);

/// A label's value: backslash, quote and newline escaped.
std::string prometheus_label(std::string_view value);

}  // namespace twp
