// The program's own messages: one line each on standard error. Not the access log (proxy/access_log.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twp {

enum class LogLevel : std::uint8_t { error, warning, info, debug };

/// Process-wide settings; call before threads start.
void set_log_level(LogLevel level) noexcept;
void set_log_program(std::string_view name);
LogLevel log_level() noexcept;

/// Writes "program: level: text\n" with one write(2). Thread-safe. Octets below 0x20 and above 0x7e in
/// `text` are escaped, so nothing a peer sends can forge a line.
void log(LogLevel level, std::string_view text);

/// A message a peer can provoke at will: at most 10 lines a second per thread, the rest counted and summed up.
void log_limited(LogLevel level, std::string_view text);

}  // namespace twp
