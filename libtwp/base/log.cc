#include "base/log.h"

#include <unistd.h>

#include "base/clock.h"

namespace twp {
namespace {

LogLevel max_level = LogLevel::info;
std::string program = "twp";

constexpr std::string_view kWord[] = {"error", "warning", "info", "debug"};

}  // namespace

void set_log_level(LogLevel level) noexcept { max_level = level; }
void set_log_program(std::string_view name) { program = name; }
LogLevel log_level() noexcept { return max_level; }

void log(LogLevel level, std::string_view text) {
  if (level > max_level) return;
  std::string line = program;
  line += ": ";
  line += kWord[static_cast<unsigned>(level)];
  line += ": ";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (u >= 0x20 && u <= 0x7e) {
      line.push_back(c);
    } else {
      line += "\\x";
      line.push_back("0123456789abcdef"[u >> 4]);
      line.push_back("0123456789abcdef"[u & 15]);
    }
  }
  line.push_back('\n');
  // One write keeps lines of several threads whole; there is nobody to tell when standard error is gone.
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
}

void log_limited(LogLevel level, std::string_view text) {
  if (level > max_level) return;
  constexpr unsigned kPerSecond = 10;
  thread_local std::uint64_t second = 0;
  thread_local unsigned written = 0;
  thread_local unsigned dropped = 0;
  const std::uint64_t now = monotonic_now() / 1'000'000'000u;
  if (now != second) {
    if (dropped != 0) log(level, std::to_string(dropped) + " similar messages not shown");
    second = now;
    written = dropped = 0;
  }
  if (written >= kPerSecond) {
    ++dropped;
    return;
  }
  ++written;
  log(level, text);
}

}  // namespace twp
