// Request methods, RFC 9110 §9. Unknown but well-formed methods are forwarded by their text.
#pragma once

#include <cstdint>
#include <string_view>

namespace twp {

enum class Method : std::uint8_t { get, head, post, put, delete_, connect, options, trace, patch, other };

Method method_from(std::string_view text) noexcept;  ///< case-sensitive, as methods are
std::string_view method_text(Method m) noexcept;     ///< empty for Method::other

/// RFC 9110 §9.2.1: asks for nothing to change.
inline bool is_safe(Method m) noexcept {
  return m == Method::get || m == Method::head || m == Method::options || m == Method::trace;
}
/// RFC 9110 §9.2.2: sending it twice is like sending it once.
inline bool is_idempotent(Method m) noexcept { return is_safe(m) || m == Method::put || m == Method::delete_; }

}  // namespace twp
