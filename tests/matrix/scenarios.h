// A scenario is played on every pair of wires.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "matrix/pair_rig.h"

namespace twp::test {

struct Scenario {
  const char* name;
  void (*play)(PairRig& rig);
};
inline std::ostream& operator<<(std::ostream& o, const Scenario& s) { return o << s.name; }

/// Octets that tell where they belong.
inline std::string pattern(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>('a' + (i * 7 + i / 1000) % 26);
  return s;
}

inline bool ended_well(PairRig& rig, Recorder& r) {
  return rig.until([&] { return r.gone; }) && r.ended && r.fault == Fault::none;
}

/// What versions of HTTP do differently and a proxy between two of them must make whole (cross_scenarios.cc).
std::span<const Scenario> cross_scenarios();

}  // namespace twp::test
