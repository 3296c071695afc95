#include "origin/grpc.h"

#include <algorithm>

#include "base/ascii.h"

namespace twp::grpc {

bool is_content_type(std::string_view value) noexcept {
  if (!istarts_with(value, kContentType)) return false;
  value.remove_prefix(kContentType.size());
  return value.empty() || value.front() == '+' || value.front() == ';' || is_ows(value.front());
}

std::array<std::byte, kPrefix> prefix(std::uint32_t length) noexcept {
  return {std::byte{0}, static_cast<std::byte>(length >> 24), static_cast<std::byte>(length >> 16),
          static_cast<std::byte>(length >> 8), static_cast<std::byte>(length)};
}

Status Reader::begin(std::uint64_t max) noexcept {
  have_ = 0;
  left_ = 0;
  for (const std::byte b : std::span(head_).subspan(1)) left_ = left_ << 8 | static_cast<std::uint64_t>(b);
  if (head_[0] == std::byte{1}) return Status::unimplemented;
  if (head_[0] != std::byte{0}) return Status::internal;
  if (left_ > max) return Status::resource_exhausted;
  in_message_ = true;
  return Status::ok;
}

Status Reader::feed(std::span<const std::byte> octets, ReaderEvents& events, std::uint64_t max) noexcept {
  while (failed_ == Status::ok && (!octets.empty() || (in_message_ && left_ == 0))) {
    if (!in_message_) {
      const std::size_t n = std::min(kPrefix - have_, octets.size());
      std::copy_n(octets.begin(), n, head_.begin() + static_cast<std::ptrdiff_t>(have_));
      have_ += n;
      octets = octets.subspan(n);
      if (have_ == kPrefix) failed_ = begin(max);
      continue;
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, octets.size()));
    left_ -= n;
    in_message_ = left_ != 0;
    if (!in_message_) ++messages_;
    events.on_message(octets.first(n), !in_message_);
    octets = octets.subspan(n);
  }
  return failed_;
}

}  // namespace twp::grpc
