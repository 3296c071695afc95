#include "cmd/cli_ready.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/write_all.h"

namespace twp::cli {
namespace {

std::string quoted(const std::string& text) {
  std::string out;
  out += '"';
  append_json_escaped(out, text);
  out += '"';
  return out;
}

}  // namespace

std::string ready_line(const Ready& ready) {
  // append() and not "literal" + string: inlined, g++ 12 takes the latter for an overflow (-Wstringop-overflow).
  std::string out(R"({"ready":true,"program":)");
  out.append(quoted(ready.program)).append(R"(,"listen":[)");
  for (std::size_t i = 0; i < ready.listen.size(); ++i) out.append(i != 0 ? "," : "").append(quoted(ready.listen[i]));
  out += ']';
  if (ready.admin) out.append(",\"admin\":").append(ready.admin->empty() ? std::string("null") : quoted(*ready.admin));
  return out.append(",\"pid\":").append(std::to_string(::getpid())).append("}");
}

Result<void> check_ready_fd(int ready_fd) {
  if (ready_fd == -1) return {};
  const int flags = ::fcntl(ready_fd, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return {};
  return fail(Fault::bad_config, "--ready-fd " + std::to_string(ready_fd) + ": not a descriptor that is open for writing");
}

Result<void> announce(const Ready& ready, int ready_fd, bool print) {
  const std::string line = ready_line(ready) + "\n";
  if (print)
    if (const int err = write_all(STDOUT_FILENO, line); err != 0)
      return fail(Fault::io_error, "cannot write to standard output: " + errno_text(err));
  if (ready_fd < 0) return {};
  const int err = write_all(ready_fd, line);
  if (ready_fd > STDERR_FILENO) ::close(ready_fd);
  if (err != 0) return fail(Fault::io_error, "cannot write to descriptor " + std::to_string(ready_fd) + ": " + errno_text(err));
  return {};
}

}  // namespace twp::cli
