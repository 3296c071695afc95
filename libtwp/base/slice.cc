#include "base/slice.h"

namespace twp {

Slice Slice::copy_of(std::span<const std::byte> from) noexcept {
  Block* b = BlockPool::local().scratch(from.size());
  const std::uint32_t off = b->used;
  if (!from.empty()) std::memcpy(b->data + off, from.data(), from.size());
  b->used += static_cast<std::uint32_t>(from.size());
  return Slice(BlockPool::retain(b), off, static_cast<std::uint32_t>(from.size()));
}

Slice Slice::split(std::size_t n) noexcept {
  Slice head;
  if (block_ == nullptr) return head;
  head.block_ = BlockPool::retain(block_);
  head.off_ = off_;
  head.len_ = static_cast<std::uint32_t>(n);
  head.headroom_ = headroom_;
  head.shared_ = shared_;
  off_ += static_cast<std::uint32_t>(n);
  len_ -= static_cast<std::uint32_t>(n);
  headroom_ = 0;  // the octets in front are alive in `head`
  return head;
}

Slice Slice::share() const noexcept {
  if (block_ == nullptr) return Slice();
  Slice twin(BlockPool::retain(block_), off_, len_);
  shared_ = twin.shared_ = true;
  return twin;
}

bool Slice::prepend(std::span<const std::byte> header) noexcept {
  // An immortal block is shared by all threads and must stay as it is.
  if (block_ == nullptr || block_->immortal || shared_ || headroom_ < header.size()) return false;
  off_ -= static_cast<std::uint32_t>(header.size());
  len_ += static_cast<std::uint32_t>(header.size());
  headroom_ -= static_cast<std::uint32_t>(header.size());
  std::memcpy(block_->data + off_, header.data(), header.size());
  return true;
}

bool Slice::extend(std::span<const std::byte> from) noexcept {
  if (room() < from.size()) return false;
  if (from.empty()) return true;
  std::memcpy(block_->data + block_->used, from.data(), from.size());
  block_->used += static_cast<std::uint32_t>(from.size());
  len_ += static_cast<std::uint32_t>(from.size());
  return true;
}

}  // namespace twp
