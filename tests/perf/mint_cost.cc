// What one leaf costs that twp signs for a client's SNI: prints microseconds for each.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "certs/authority.h"
#include "certs/leaf.h"
#include "certs/name.h"

namespace {

double microseconds_each(const std::string& dir) {
  using namespace twp::certs;
  constexpr int kCalls = 5000;
  const auto ca = Authority::create(dir + "/ca", {}, Overwrite::no);
  if (!ca) return -1;
  const auto issuer = Issuer::create(*ca);
  const std::vector<std::string> texts{"www.example.test"};
  const auto names = parse_names(texts);
  if (!issuer || !names) return -1;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i)
    if (!issuer->issue(*names)) return -1;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / kCalls;
}

}  // namespace

int main() {
  std::string dir = (std::filesystem::temp_directory_path() / "twp-mint-XXXXXX").string();
  if (::mkdtemp(dir.data()) == nullptr) return 1;
  const double each = microseconds_each(dir);
  std::filesystem::remove_all(dir);
  if (each < 0) return 1;
  std::printf("%.1f\n", each);
  return 0;
}
