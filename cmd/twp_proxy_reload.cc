#include "cmd/twp_proxy_reload.h"

#include <signal.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "base/ascii.h"
#include "certs/file.h"

namespace twp::cli {
namespace {

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

std::optional<int> parse_pid(std::string_view text) {
  const auto pid = parse_decimal(text);
  if (!pid || *pid == 0 || *pid > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*pid);
}

Result<int> pid_of(const ReloadArguments& a) {
  if (!a.pid.empty()) {
    if (const auto pid = parse_pid(a.pid)) return *pid;
    return fail(Fault::bad_config, "reload '" + a.pid + "': expected a process id");
  }
  if (a.pid_file.empty()) return fail(Fault::bad_config, "reload needs a process id or --pid-file; see twp-proxy --help");
  const auto text = certs::read_file(a.pid_file);
  if (!text) return fail(Fault::io_error, text.error().what);
  if (const auto pid = parse_pid(first_line(*text))) return *pid;
  return fail(Fault::bad_config, a.pid_file + ":1:1: expected a process id");
}

}  // namespace

Result<void> reload(const ReloadArguments& a) {
  const auto pid = pid_of(a);
  if (!pid) return std::unexpected(pid.error());
  const std::string who = "process " + std::to_string(*pid);
  // SIGHUP ends most programs: a stale file must not hit whoever has the number now.
  const auto name = certs::read_file("/proc/" + std::to_string(*pid) + "/comm");
  if (!name) return fail(Fault::io_error, who + ": there is no such process");
  if (first_line(*name) != "twp-proxy")
    return fail(Fault::io_error, who + " is '" + std::string(first_line(*name)) + "', not twp-proxy");
  if (::kill(*pid, SIGHUP) != 0) return fail(Fault::io_error, who + ": " + errno_text(errno));
  return {};
}

}  // namespace twp::cli
