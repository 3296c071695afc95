#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace twp {

int write_all(int fd, std::string_view octets) noexcept {
  while (!octets.empty()) {
    const ssize_t n = ::write(fd, octets.data(), octets.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;  // not for a length above 0, but never a loop
    octets.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace twp
