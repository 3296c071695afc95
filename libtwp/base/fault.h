// The one table of failures: fault.def gives each its HTTP status, HTTP/2 and HTTP/3 codes, retry rule
// and log word. Code elsewhere compares Fault values and never invents a status of its own.
#pragma once

#include <cstdint>
#include <string_view>

namespace twp {

/// When a failed request may be sent once more on another connection (RFC 9110 §9.2.2).
enum class Retry : std::uint8_t { never, reused, always };

enum class Fault : std::uint8_t {
#define FAULT(name, status, h2, h3, retry, word) name,
#include "base/fault.def"
#undef FAULT
  count_,
};

struct FaultInfo {
  std::string_view name;      ///< identifier in fault.def
  std::string_view log_word;  ///< stable word for logs and metrics
  std::uint16_t http_status;  ///< 0: nothing can be answered
  std::uint16_t h2_code;      ///< RFC 9113 §7
  std::uint16_t h3_code;      ///< RFC 9114 §8.1
  Retry retry;
};

/// The row of `f`. Thread-safe, never fails.
const FaultInfo& info(Fault f) noexcept;

inline std::string_view log_word(Fault f) noexcept { return info(f).log_word; }

}  // namespace twp
