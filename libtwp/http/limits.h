// What a peer may make us hold or count. Values have configuration keys of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"

namespace twp {

inline constexpr std::size_t kMaxMethod = 64;  ///< octets; the longest registered one has 17 -> 501

struct HttpLimits {
  std::uint32_t max_target = 16 * 1024;            ///< octets of a request target -> 414
  std::uint32_t max_head = 64 * 1024;              ///< octets of a request head -> 431
  std::uint32_t max_response_head = 128 * 1024;    ///< octets of a response head -> 502
  std::uint32_t max_fields = 256;                  ///< field lines of a head or trailer section -> 431 / 502
  std::uint32_t max_trailer = 16 * 1024;           ///< octets of a trailer section
  std::uint64_t max_body = 0;                      ///< octets of a request body -> 413; 0: no limit
  std::uint32_t stream_window = 256 * 1024;        ///< octets received and not yet passed on, per stream
  std::uint32_t max_interim = 32;                  ///< 1xx heads before a final one
  Duration head_timeout = std::chrono::seconds(15);         ///< first octet to end of a request head -> 408
  Duration keep_alive_timeout = std::chrono::seconds(75);   ///< idle between requests
  Duration stream_idle_timeout = std::chrono::minutes(5);   ///< nothing moved in either direction
  std::uint32_t min_body_rate = 240;               ///< octets a second of a request body after 10 s -> 408; 0: off
  std::uint32_t h2_max_streams = 100;              ///< requests at a time on one HTTP/2 connection, both roles
  std::uint32_t h2_connection_window = 1024 * 1024;  ///< octets on their way on one HTTP/2 connection, at least 65535
  std::uint32_t h2_glitch_burst = 100;             ///< suspicious events at once on one HTTP/2 connection -> GOAWAY
  std::uint32_t h2_glitch_rate = 1;                ///< suspicious events a second that are forgiven
  bool abort_on_close = false;                     ///< a client's FIN ends an exchange that has no whole response yet
  Duration body_rate_window = std::chrono::seconds(10);     ///< what min_body_rate is measured over
  Duration h2_detached_timeout = std::chrono::seconds(15);  ///< to take a response that nobody waits for any more
  Duration h2_settings_timeout = std::chrono::seconds(10);  ///< for a peer to acknowledge our SETTINGS
};

/// A limit that was passed: what the log line names.
struct LimitHit {
  std::string_view key;        ///< configuration key that raises it
  std::uint64_t observed = 0;  ///< at least this much was seen; of a minimum ("min_..."): only this much
  std::uint64_t limit = 0;
};

/// The line for the log: what `who` sent ("request from 192.0.2.1:4711") was refused, by which limit, and which key
/// changes that.
std::string refusal_text(std::string_view who, const LimitHit& hit);

}  // namespace twp
