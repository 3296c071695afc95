// What processes cost, read from /proc: CPU time and resident memory of a process and all its descendants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "loadgen/plan.h"

namespace twp::load {

/// One look at a process tree.
struct TreeUsage {
  std::uint64_t cpu_ns = 0;     ///< user + system, of the living and of children that they have waited for
  std::uint64_t rss_bytes = 0;  ///< resident, summed; pages that processes share count in each
  unsigned processes = 0;       ///< 0: the root is gone
};
TreeUsage tree_usage(int root);

/// CPU time of this process, ns.
std::uint64_t own_cpu_ns() noexcept;

/// Measures a set of processes over a window. Main thread only.
class Sampler {
 public:
  struct Usage {
    std::string name;
    std::uint64_t cpu_ns = 0;           ///< used in the window
    std::uint64_t rss_peak_bytes = 0;   ///< largest sample in the window
    bool lost = false;                  ///< it ended before the window did
  };

  /// Fails with one line when a process is not there.
  static Result<Sampler> create(const std::vector<Watched>& watched);

  void begin();
  void sample();  ///< every 100 ms or so: RSS peaks
  void end();     ///< fills usage()
  const std::vector<Usage>& usage() const noexcept { return usage_; }
  const Usage* find(std::string_view name) const noexcept;

 private:
  struct Start {
    int pid;
    std::uint64_t cpu_ns;
    std::uint64_t last_cpu_ns;
  };
  void look(std::size_t i, bool first);
  std::vector<Start> starts_;
  std::vector<Usage> usage_;
};

}  // namespace twp::load
