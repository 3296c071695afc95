// Reference-counted memory blocks and the per-thread pool they come from.
//
// A block belongs to the thread that took it and never leaves it, so its count is a plain integer. Bytes
// [0, used) are handed out, [used, size) are free: whoever needs room bumps `used` (see BlockPool::scratch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace twp {

inline constexpr std::size_t kBlockSize = 16 * 1024;  ///< octets of payload in a pooled block

struct Block {
  std::uint32_t refs;   ///< holders; 0 returns the block to the pool
  std::uint32_t used;   ///< octets handed out, from the start
  std::uint32_t size;   ///< octets of payload
  bool immortal;        ///< static payload (origin bodies): never counted, never freed
  std::byte* data;      ///< payload
  Block* next;          ///< free list link
};

/// Per-thread pool. Not thread-safe; `local()` is the calling thread's own.
class BlockPool {
 public:
  static BlockPool& local() noexcept;

  /// A block with one reference, `used` 0 and kBlockSize octets of payload. Aborts when memory is exhausted:
  /// every peer-controlled buffer is bounded before it gets here.
  Block* take() noexcept;
  static void release(Block* b) noexcept {
    if (!b->immortal && --b->refs == 0) local().put(b);
  }
  static Block* retain(Block* b) noexcept {
    if (!b->immortal) ++b->refs;
    return b;
  }

  /// The thread's current bump block with at least `min` (<= kBlockSize) free octets behind `used`. It is
  /// rewound when nobody else holds it, so steady traffic writes into the same warm memory for ever.
  Block* scratch(std::size_t min) noexcept {
    Block* b = scratch_;
    if (b != nullptr && b->refs == 1) b->used = 0;
    if (b == nullptr || b->size - b->used < min) b = next_scratch();
    return b;
  }
  /// As scratch(), but for incoming bytes, so that short-lived heads and long-lived bodies do not share.
  Block* inbox(std::size_t min) noexcept {
    Block* b = inbox_;
    if (b != nullptr && b->refs == 1) b->used = 0;
    if (b == nullptr || b->size - b->used < min) b = next_inbox();
    return b;
  }

  /// The block that scratch() returned last; used by Chain::commit.
  Block* current_scratch() const noexcept { return scratch_; }

  std::size_t live_blocks() const noexcept { return live_; }   ///< taken and not yet returned
  std::size_t free_blocks() const noexcept { return free_count_; }

  BlockPool() noexcept = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

 private:
  void put(Block* b) noexcept;
  Block* next_scratch() noexcept;
  Block* next_inbox() noexcept;

  Block* free_ = nullptr;
  Block* scratch_ = nullptr;
  Block* inbox_ = nullptr;
  std::size_t free_count_ = 0;
  std::size_t live_ = 0;
};

}  // namespace twp
