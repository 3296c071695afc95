#include "base/result.h"

#include <cstring>

namespace twp {

std::string errno_text(int err) {
  // strerrordesc_np is thread-safe, unlike strerror, and needs no buffer.
  const char* text = strerrordesc_np(err);
  return text != nullptr ? std::string(text) : "errno " + std::to_string(err);
}

}  // namespace twp
