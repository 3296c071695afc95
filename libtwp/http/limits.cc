#include "http/limits.h"

namespace twp {

std::string refusal_text(std::string_view who, const LimitHit& hit) {
  const std::string key(hit.key);
  const bool minimum = key.starts_with("min_");
  return std::string(who) + " refused: limits." + key + " = " + std::to_string(hit.limit) + ", seen " +
         std::to_string(hit.observed) + (minimum ? " (lower limits." : " (raise limits.") + key + ")";
}

}  // namespace twp
