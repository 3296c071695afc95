#include "base/arena.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace twp {
namespace {

constexpr std::size_t kChunk = 2048;    // holds a browser's head with its field table
constexpr std::size_t kMaxFree = 512;   // 1 MiB kept per thread

struct FreeList {
  void* head = nullptr;
  std::size_t count = 0;
  ~FreeList() {
    while (head != nullptr) {
      void* p = head;
      head = *static_cast<void**>(p);
      std::free(p);
    }
  }
};
thread_local FreeList free_chunks;
thread_local std::size_t live_octets = 0;

void* take_chunk(std::size_t size) noexcept {
  live_octets += size;
  if (size == kChunk && free_chunks.head != nullptr) {
    void* p = free_chunks.head;
    free_chunks.head = *static_cast<void**>(p);
    --free_chunks.count;
    return p;
  }
  void* p = std::malloc(size);
  if (p == nullptr) {
    std::fputs("twp: out of memory\n", stderr);
    std::abort();
  }
  return p;
}

void give_chunk(void* p, std::size_t size) noexcept {
  live_octets -= size;
  if (size != kChunk || free_chunks.count >= kMaxFree) {
    std::free(p);
    return;
  }
  *static_cast<void**>(p) = free_chunks.head;
  free_chunks.head = p;
  ++free_chunks.count;
}

}  // namespace

void* Arena::allocate_slow(std::size_t n) noexcept {
  const std::size_t size = std::max(kChunk, n + sizeof(Chunk));
  auto* c = static_cast<Chunk*>(take_chunk(size));
  c->next = chunks_;
  c->size = size;
  chunks_ = c;
  reserved_ += size;
  char* begin = reinterpret_cast<char*>(c + 1);
  next_ = begin + n;
  end_ = reinterpret_cast<char*>(c) + size;
  return begin;
}

Arena::Memory Arena::memory() noexcept { return {live_octets, free_chunks.count * kChunk}; }

void Arena::reset() noexcept {
  while (chunks_ != nullptr) {
    Chunk* c = chunks_;
    chunks_ = c->next;
    give_chunk(c, c->size);
  }
  next_ = end_ = nullptr;
  reserved_ = 0;
}

}  // namespace twp
