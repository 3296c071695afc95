// Which page a request asks for: the path of the target taken apart.
#pragma once

#include <cstdint>
#include <string_view>

namespace twp::origin {

enum class PageKind : std::uint8_t {
  root, bytes, chunked, stream, delay, status, headers, echo, early, trailers, interim, ws, close, reset,
  unknown,  ///< 404
  bad,      ///< a known page with an argument that makes no sense: 400
};

inline constexpr std::uint64_t kMaxBody = std::uint64_t{1} << 50;  ///< octets of /bytes and /chunked
inline constexpr std::uint64_t kMaxDelayMs = 10 * 60 * 1000;
inline constexpr std::uint64_t kMaxStreamChunk = 1024 * 1024;
inline constexpr std::uint64_t kMaxStreamChunks = 1'000'000'000;

struct Page {
  PageKind kind = PageKind::unknown;
  std::uint64_t n = 0;            ///< bytes, chunked: octets; delay: ms; status: the code; stream: octets of a chunk
  std::uint64_t chunks = 0;       ///< stream
  std::uint64_t interval_ms = 0;  ///< stream
};

/// `target` is path and query as received. The query means something to /stream alone; elsewhere it is ignored, so that
/// a load can carry a distinguishing parameter.
Page parse_page(std::string_view target) noexcept;

}  // namespace twp::origin
