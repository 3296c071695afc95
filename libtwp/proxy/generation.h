// Generation: one configuration as one worker uses it. An exchange keeps the generation it began with; a
// reload makes a new one, and the old one goes when its last exchange is over.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "proxy/cluster.h"
#include "proxy/forwarding.h"
#include "proxy/snapshot.h"

namespace twp {

class Generation;

class GenerationOwner {
 public:
  /// Nobody uses `g` any more. The owner retires it.
  virtual void on_generation_unused(Generation& g) noexcept = 0;

 protected:
  ~GenerationOwner() = default;
};

class Generation {
 public:
  /// One reference is held by the caller.
  Generation(std::shared_ptr<const Snapshot> s, GenerationOwner& owner)
      : snapshot(std::move(s)), forwarding(snapshot->config().forwarding, snapshot->secrets().instance),
        stream_idle(snapshot->config().timeouts.stream_idle),
        least_activity(static_cast<std::uint64_t>(snapshot->config().limits.min_body_rate *
                                                  std::chrono::duration<double>(stream_idle).count())),
        owner_(owner) {}
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  void retain() noexcept { ++refs_; }
  void release() noexcept {
    if (--refs_ == 0) owner_.on_generation_unused(*this);
  }

  const std::shared_ptr<const Snapshot> snapshot;
  const Forwarding forwarding;
  const Duration stream_idle;
  const std::uint64_t least_activity;  ///< octets of a response that waits, in stream_idle: fewer are none
  std::vector<Cluster> clusters;  ///< as Config::clusters

 private:
  GenerationOwner& owner_;
  std::uint32_t refs_ = 1;
};

}  // namespace twp
