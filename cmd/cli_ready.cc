#include "cmd/cli_ready.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/ascii.h"

namespace twp::cli {

Result<void> announce(std::string_view program, const std::vector<std::string>& urls, int ready_fd, bool print) {
  std::string line = "{\"program\":\"" + std::string(program) + "\",\"pid\":" + std::to_string(::getpid()) + ",\"listen\":[";
  for (const std::string& url : urls) {
    line += &url == urls.data() ? "\"" : ",\"";
    append_json_escaped(line, url);
    line += '"';
  }
  line += "]}\n";
  if (print && (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0))
    return fail(Fault::io_error, "cannot write to standard output");
  if (ready_fd < 0) return {};
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(ready_fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Fault::bad_config, "--ready-fd " + std::to_string(ready_fd) + ": " + errno_text(errno));
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (ready_fd > 2) ::close(ready_fd);
  return {};
}

}  // namespace twp::cli
