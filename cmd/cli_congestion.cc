#include "cmd/cli_congestion.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "certs/file.h"

namespace twp::cli {
namespace {

std::string contents(const char* file) {
  std::string text = certs::read_file(file).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return " " + text + " ";
}

}  // namespace

std::string congestion_problem(const std::string& name) {
  if (name.empty()) return {};
  // The kernel lists what it has, and loads more for root only.
  const bool root = ::geteuid() == 0;
  const std::string file = std::string("/proc/sys/net/ipv4/tcp_") + (root ? "available" : "allowed") + "_congestion_control";
  const std::string known = contents(file.c_str());
  if (known.size() <= 2 || known.find(" " + name + " ") != std::string::npos) return {};
  utsname kernel{};
  if (root && ::uname(&kernel) == 0) {
    const std::string modules = contents(("/lib/modules/" + std::string(kernel.release) + "/modules.dep").c_str());
    if (modules.find("/tcp_" + name + ".ko") != std::string::npos) return {};
  }
  return "unknown congestion control '" + name + "' (this kernel " + (root ? "has" : "allows") + ":" +
         known.substr(0, known.size() - 1) + ")";
}

}  // namespace twp::cli
