#include "certs/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "certs/file.h"

extern char** environ;

namespace twp::certs {
namespace {

constexpr std::size_t kMaxOutput = 64 * 1024;

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Reads to the end, keeping the first kMaxOutput bytes: a tool must not block on a full pipe.
std::string drain(int fd) {
  std::string out;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    if (out.size() < kMaxOutput) out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string CommandOutput::last_line() const {
  std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no message";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, start == std::string::npos ? end + 1 : end - start);
}

Result<CommandOutput> run(const std::vector<std::string>& argv) {
  std::vector<char*> args;
  // posix_spawn takes char* for historical reasons and changes nothing.
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail(Fault::io_error, argv[0] + ": " + errno_text(errno));
  FileActions actions;
  ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDERR_FILENO);
  pid_t child = 0;
  const int err = ::posix_spawn(&child, argv[0].c_str(), actions.get(), nullptr, args.data(), environ);
  ::close(pipe[1]);
  CommandOutput out;
  if (err == 0) {
    out.text = drain(pipe[0]);
    out.status = wait_for(child);
  }
  ::close(pipe[0]);
  if (err != 0) return fail(Fault::io_error, argv[0] + ": cannot be started: " + errno_text(err));
  return out;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string dirs = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  dirs += ":/usr/sbin:/sbin";
  for (std::size_t at = 0; at <= dirs.size();) {
    const std::size_t colon = std::min(dirs.find(':', at), dirs.size());
    const std::string candidate = join(dirs.substr(at, colon - at), name);
    if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = colon + 1;
  }
  return {};
}

}  // namespace twp::certs
