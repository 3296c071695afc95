#include "base/block.h"

#include <cstdio>
#include <cstdlib>
#include <new>

namespace twp {
namespace {

// Blocks kept for reuse per thread: 1 MiB. More goes back to the allocator so that a burst does not stay in RSS.
constexpr std::size_t kMaxFree = 64;

}  // namespace

BlockPool& BlockPool::local() noexcept {
  static thread_local BlockPool pool;
  return pool;
}

BlockPool::~BlockPool() {
  if (scratch_ != nullptr && --scratch_->refs == 0) std::free(scratch_);
  if (inbox_ != nullptr && --inbox_->refs == 0) std::free(inbox_);
  while (free_ != nullptr) {
    Block* b = free_;
    free_ = b->next;
    std::free(b);
  }
}

Block* BlockPool::take() noexcept {
  Block* b = free_;
  if (b != nullptr) {
    free_ = b->next;
    --free_count_;
  } else {
    void* raw = std::malloc(sizeof(Block) + kBlockSize);
    if (raw == nullptr) {
      std::fputs("twp: out of memory\n", stderr);
      std::abort();
    }
    b = new (raw) Block;
    b->size = kBlockSize;
    b->immortal = false;
    b->data = reinterpret_cast<std::byte*>(b + 1);
  }
  b->refs = 1;
  b->used = 0;
  b->next = nullptr;
  ++live_;
  return b;
}

void BlockPool::put(Block* b) noexcept {
  --live_;
  if (free_count_ >= kMaxFree) {
    std::free(b);
    return;
  }
  b->next = free_;
  free_ = b;
  ++free_count_;
}

Block* BlockPool::next_scratch() noexcept {
  if (scratch_ != nullptr) release(scratch_);
  return scratch_ = take();
}

Block* BlockPool::next_inbox() noexcept {
  if (inbox_ != nullptr) release(inbox_);
  return inbox_ = take();
}

}  // namespace twp
