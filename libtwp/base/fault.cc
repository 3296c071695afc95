#include "base/fault.h"

#include <array>
#include <cstddef>

namespace twp {
namespace {

constexpr std::array<FaultInfo, static_cast<std::size_t>(Fault::count_)> kTable{{
#define FAULT(name, status, h2, h3, retry, word) {#name, word, status, h2, h3, Retry::retry},
#include "base/fault.def"
#undef FAULT
}};

}  // namespace

const FaultInfo& info(Fault f) noexcept { return kTable[static_cast<std::size_t>(f)]; }

}  // namespace twp
