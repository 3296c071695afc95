// Chain: a queue of slices with a byte count. What a session has to send, in order.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/slice.h"

namespace twp {

/// A body slice up to this size is copied behind the octets before it, so that head and body leave in one
/// piece (one iovec entry, one TLS record); above it, sharing the block is cheaper than the copy.
inline constexpr std::size_t kCopyBelow = 512;

/// Many small slices are a burden: each holds its whole block. In a chain of more than kLooseSlices, a slice below
/// kPackBelow is copied into blocks that this chain alone fills, so that a chain of any octets in any pieces holds at most
/// a few times its size() in blocks.
inline constexpr std::size_t kLooseSlices = 8;
inline constexpr std::size_t kPackBelow = kBlockSize / 4;

class Chain {
 public:
  Chain() noexcept = default;
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  Chain(Chain&& o) noexcept;
  Chain& operator=(Chain&& o) noexcept;
  ~Chain();

  std::size_t size() const noexcept { return bytes_; }     ///< octets
  bool empty() const noexcept { return bytes_ == 0; }
  std::size_t slices() const noexcept { return count_; }

  /// Appends by reference. Small slices are copied when that keeps the tail contiguous.
  void append(Slice s) noexcept;
  /// Appends a copy of `from` (any size).
  void append_copy(std::span<const std::byte> from) noexcept;
  void append_copy(std::string_view from) noexcept { append_copy(std::as_bytes(std::span(from))); }
  /// Room for `n` (<= kBlockSize) octets to be written directly, then commit(m), m <= n, appends them. Nothing
  /// else may take scratch memory in between.
  char* prepare(std::size_t n) noexcept {
    Block* b = BlockPool::local().scratch(n);
    return reinterpret_cast<char*>(b->data) + b->used;
  }
  void commit(std::size_t m) noexcept;
  /// Moves all of `from` to the end.
  void append(Chain&& from) noexcept;

  /// Octets of the first slice; empty when the chain is.
  std::span<const std::byte> front() const noexcept {
    return count_ == 0 ? std::span<const std::byte>() : at(0).bytes();
  }
  /// Drops `n` (<= size()) octets from the front.
  void consume(std::size_t n) noexcept;
  /// Takes the first slice out.
  Slice pop_front() noexcept;
  /// Takes at most `max` octets out as one slice; empty when the chain or `max` is.
  Slice take_front(std::size_t max) noexcept;
  void clear() noexcept;

  /// Fills `out` with the first slices, ready for writev(2). Returns the number of entries.
  std::size_t iovecs(std::span<iovec> out) const noexcept;
  /// Copies up to `out.size()` octets from the front without consuming them; returns how many.
  std::size_t peek(std::span<std::byte> out) const noexcept;

 private:
  Slice& at(std::size_t i) noexcept { return slots()[(head_ + i) & mask()]; }
  const Slice& at(std::size_t i) const noexcept { return slots()[(head_ + i) & mask()]; }
  Slice* slots() noexcept { return heap_ ? heap_.get() : inline_; }
  const Slice* slots() const noexcept { return heap_ ? heap_.get() : inline_; }
  std::size_t mask() const noexcept { return cap_ - 1; }
  void push(Slice s) noexcept;
  void pack(std::span<const std::byte> from) noexcept;
  void grow() noexcept;

  Slice inline_[4];
  std::unique_ptr<Slice[]> heap_;
  std::uint32_t cap_ = 4;  // power of two
  std::uint32_t head_ = 0;
  std::uint32_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace twp
