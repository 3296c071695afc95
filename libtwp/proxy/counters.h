// Counters of one worker: plain integers, written by the worker's thread only. Others read a copy that the
// worker made (Worker::post).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/fault.h"

namespace twp {

struct Counters {
  // Client side.
  std::uint64_t connections = 0;       ///< accepted
  std::uint64_t handshake_failures = 0;
  std::uint64_t requests = 0;          ///< heads that reached an exchange
  std::uint64_t rejected = 0;          ///< requests that the codec refused (never became an exchange)
  std::uint64_t exchanges_active = 0;  ///< gauge
  std::array<std::uint64_t, 6> responses{};  ///< by status class: [2] is 2xx; [0]: no status was sent
  std::array<std::uint64_t, static_cast<std::size_t>(Fault::count_)> faults{};  ///< how exchanges ended
  std::uint64_t tunnels = 0;           ///< exchanges that became a tunnel
  std::uint64_t slab_live_bytes = 0;   ///< gauge: octets of exchanges and their relays
  std::uint64_t slab_free_bytes = 0;   ///< gauge: octets kept for later ones

  // Octets of bodies, each way.
  std::uint64_t request_octets = 0;    ///< from clients
  std::uint64_t response_octets = 0;   ///< from origins
  std::uint64_t spliced_octets = 0;    ///< of these, moved below the codec

  // Origin side.
  std::uint64_t dials = 0;
  std::uint64_t dial_failures = 0;
  std::uint64_t reuses = 0;            ///< requests that found an open connection
  std::uint64_t replays = 0;
  std::uint64_t queue_timeouts = 0;
  std::uint64_t queue_full = 0;
  std::uint64_t origin_connections = 0;  ///< gauge: open or being opened
  std::uint64_t origin_idle = 0;         ///< gauge
  std::uint64_t waiting = 0;             ///< gauge: requests that wait for a connection

  void count(Fault f) noexcept { ++faults[static_cast<std::size_t>(f)]; }
};

}  // namespace twp
