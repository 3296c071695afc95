// Writing a text to a file, pipe or terminal: the loop that every write(2) needs.
#pragma once

#include <string_view>

namespace twp {

/// Writes all of `octets`, in as many pieces as the kernel wants; blocks. 0, or the errno of what went wrong.
int write_all(int fd, std::string_view octets) noexcept;

}  // namespace twp
