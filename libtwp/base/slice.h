// Slice: a run of octets inside a reference-counted block. The only currency for bytes in motion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/block.h"

namespace twp {

/// Move-only, 24 octets. Never crosses threads (its block does not).
class Slice {
 public:
  Slice() noexcept = default;
  /// Adopts one reference to `b`. [off, off+len) must be inside the block.
  Slice(Block* b, std::uint32_t off, std::uint32_t len) noexcept : block_(b), off_(off), len_(len) {}
  Slice(Slice&& o) noexcept
      : block_(std::exchange(o.block_, nullptr)), off_(o.off_), len_(std::exchange(o.len_, 0)),
        headroom_(o.headroom_), shared_(o.shared_) {}
  Slice& operator=(Slice&& o) noexcept {
    if (this != &o) {
      drop();
      block_ = std::exchange(o.block_, nullptr);
      off_ = o.off_;
      len_ = std::exchange(o.len_, 0);
      headroom_ = o.headroom_;
      shared_ = o.shared_;
    }
    return *this;
  }
  ~Slice() { drop(); }

  /// A copy of `from` in the thread's scratch block; `from` is at most kBlockSize octets.
  static Slice copy_of(std::span<const std::byte> from) noexcept;
  static Slice copy_of(std::string_view from) noexcept { return copy_of(std::as_bytes(std::span(from))); }

  std::span<const std::byte> bytes() const noexcept {
    return block_ == nullptr ? std::span<const std::byte>() : std::span<const std::byte>{block_->data + off_, len_};
  }
  std::string_view text() const noexcept {
    return block_ == nullptr ? std::string_view()
                             : std::string_view(reinterpret_cast<const char*>(block_->data) + off_, len_);
  }
  std::size_t size() const noexcept { return len_; }
  Block* block() const noexcept { return block_; }        ///< still held by the slice; null when it never had one
  std::uint32_t offset() const noexcept { return off_; }  ///< of the first octet, in the block
  bool empty() const noexcept { return len_ == 0; }

  /// Takes the first `n` (<= size()) octets off into a slice of their own; both share the block.
  Slice split(std::size_t n) noexcept;
  /// A second slice over the same octets. Neither takes a prepend() from then on: what one has parsed the
  /// other may still have to read.
  Slice share() const noexcept;
  /// Drops `n` (<= size()) octets from the front; they become headroom.
  void remove_prefix(std::size_t n) noexcept {
    off_ += static_cast<std::uint32_t>(n);
    len_ -= static_cast<std::uint32_t>(n);
    headroom_ += static_cast<std::uint32_t>(n);
  }
  void truncate(std::size_t n) noexcept { len_ = static_cast<std::uint32_t>(n); }

  /// Writes `header` into dead octets in front of the slice; false when there is no room.
  bool prepend(std::span<const std::byte> header) noexcept;

  /// Declares the `n` octets before the slice dead (parsed and used by nobody else).
  void set_headroom(std::uint32_t n) noexcept { headroom_ = n; }

  /// Octets that extend() can take.
  std::size_t room() const noexcept {
    if (block_ == nullptr || block_->immortal || off_ + len_ != block_->used) return 0;
    return block_->size - block_->used;
  }
  /// Appends `from` in place when the slice ends where its block's free room begins; false when it cannot.
  bool extend(std::span<const std::byte> from) noexcept;
  /// Takes in the `n` octets that were just written at `off` of `b`; false when they do not follow this slice.
  bool grow(const Block* b, std::uint32_t off, std::uint32_t n) noexcept {
    if (block_ != b || off_ + len_ != off) return false;
    len_ += n;
    return true;
  }

 private:
  void drop() noexcept {
    if (block_ != nullptr) BlockPool::release(block_);
    block_ = nullptr;
  }

  Block* block_ = nullptr;
  std::uint32_t off_ = 0;
  std::uint32_t len_ = 0;
  std::uint32_t headroom_ = 0;
  mutable bool shared_ = false;
};

}  // namespace twp
