// Files that hold keys and certificates: read whole, written whole or not at all.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace twp::certs {

/// The largest file read_file accepts, in bytes. The biggest chain seen in the wild is under 100 KiB.
inline constexpr std::size_t kMaxFileBytes = 1024 * 1024;

enum class Overwrite : bool { no, yes };

/// A file of at most kMaxFileBytes. Errors name the path and the cause.
Result<std::string> read_file(const std::string& path);

/// Writes `bytes` to a temporary file beside `path`, syncs it and renames it into place, so that a
/// reader sees the old contents or the new ones and a crash leaves no half file. The mode is exactly
/// `mode`, whatever the umask, from the first byte on. With Overwrite::no an existing `path`, even one
/// that appears meanwhile, is an error and stays untouched.
Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode, Overwrite);

/// Writes a private key (mode 0600) and its certificate (mode 0644): both, or neither when the
/// paths were free before.
Result<void> write_pair(const std::string& key_path, std::string_view key_pem, const std::string& cert_path,
                        std::string_view cert_pem, Overwrite);

/// Makes `path` and its missing parents; what is made has mode 0700. An existing directory keeps its
/// mode, and is refused when everybody may replace files in it (world-writable without sticky bit).
Result<void> make_private_dir(const std::string& path);

/// Whether anything stands at `path`; a dangling symbolic link counts.
bool exists(const std::string& path) noexcept;

/// Holds an advisory lock on a directory while it lives, so that two programs that start at the same
/// time do not both make a CA in it. Where the file system has no locks, holds nothing.
class DirLock {
 public:
  enum class Mode : bool { shared, exclusive };
  /// Waits for the lock. Blocks: not for an event loop.
  DirLock(const std::string& dir, Mode) noexcept;
  ~DirLock();
  DirLock(const DirLock&) = delete;
  DirLock& operator=(const DirLock&) = delete;

 private:
  int fd_;
};

/// `dir` + "/" + `name` without doubling the slash.
std::string join(std::string_view dir, std::string_view name);

}  // namespace twp::certs
