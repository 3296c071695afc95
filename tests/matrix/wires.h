// The table of wires: every pair of client and origin wire as one row, from the first day on. This is the only place that
// names a pair; scenarios are written once for all of them.
#pragma once

#include <array>
#include <cstddef>
#include <ostream>
#include <string_view>

namespace twp::test {

struct Wire {
  std::string_view name;
  std::string_view http;  ///< Cluster::http and DialTarget::http
  bool tls;
  bool supported;         ///< on either leg; false: the row is reported, not run
};

inline constexpr Wire kH1c{"h1c", "h1", false, true};
inline constexpr Wire kH1{"h1", "h1", true, true};
inline constexpr Wire kH2c{"h2c", "h2", false, true};
inline constexpr Wire kH2{"h2", "h2", true, true};
inline constexpr Wire kH3{"h3", "h3", true, false};

struct Pair {
  const Wire& client;
  const Wire& origin;
  bool supported() const noexcept { return client.supported && origin.supported; }
};
inline std::ostream& operator<<(std::ostream& o, const Pair& p) { return o << p.client.name << "->" << p.origin.name; }

inline constexpr std::array<Pair, 25> kMatrix{{
    {kH1c, kH1c}, {kH1c, kH1}, {kH1c, kH2c}, {kH1c, kH2}, {kH1c, kH3},
    {kH1, kH1c},  {kH1, kH1},  {kH1, kH2c},  {kH1, kH2},  {kH1, kH3},
    {kH2c, kH1c}, {kH2c, kH1}, {kH2c, kH2c}, {kH2c, kH2}, {kH2c, kH3},
    {kH2, kH1c},  {kH2, kH1},  {kH2, kH2c},  {kH2, kH2},  {kH2, kH3},
    {kH3, kH1c},  {kH3, kH1},  {kH3, kH2c},  {kH3, kH2},  {kH3, kH3},
}};

}  // namespace twp::test
