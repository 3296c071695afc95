#include "http/method.h"

#include <array>

namespace twp {
namespace {

constexpr std::array<std::string_view, 10> kText{"GET",     "HEAD",    "POST",  "PUT",   "DELETE",
                                                 "CONNECT", "OPTIONS", "TRACE", "PATCH", ""};

}  // namespace

Method method_from(std::string_view text) noexcept {
  if (text == "GET") return Method::get;  // most of the traffic
  for (std::size_t i = 1; i + 1 < kText.size(); ++i)
    if (text == kText[i]) return static_cast<Method>(i);
  return Method::other;
}

std::string_view method_text(Method m) noexcept { return kText[static_cast<std::size_t>(m)]; }

}  // namespace twp
