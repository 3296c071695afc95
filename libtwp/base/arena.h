// Arena: bump allocation with stable addresses; everything goes at once. Chunks come from a per-thread
// free list, so a request's arena costs no malloc in steady state and an idle connection holds none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace twp {

class Arena {
 public:
  Arena() noexcept = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&& o) noexcept { swap(o); }
  Arena& operator=(Arena&& o) noexcept {
    if (this != &o) {
      reset();
      swap(o);
    }
    return *this;
  }
  ~Arena() { reset(); }

  /// `n` octets aligned to 8, uninitialised. Aborts when memory is exhausted.
  void* allocate(std::size_t n) noexcept {
    n = (n + 7) & ~std::size_t{7};
    if (static_cast<std::size_t>(end_ - next_) < n) return allocate_slow(n);
    char* p = next_;
    next_ += n;
    return p;
  }
  /// A copy of `text` that lives as long as the arena's contents.
  std::string_view copy(std::string_view text) noexcept {
    if (text.empty()) return {"", 0};  // memcpy from a null view is undefined
    char* p = static_cast<char*>(allocate(text.size()));
    std::memcpy(p, text.data(), text.size());
    return {p, text.size()};
  }
  /// Frees all memory; every pointer handed out dies.
  void reset() noexcept;
  std::size_t bytes_reserved() const noexcept { return reserved_; }  ///< octets held

  struct Memory {
    std::size_t live = 0;  ///< octets of chunks in arenas
    std::size_t free = 0;  ///< octets of chunks kept for later
  };
  /// Of all arenas of the calling thread. Arenas do not change threads.
  static Memory memory() noexcept;

 private:
  struct Chunk {
    Chunk* next;
    std::size_t size;
  };
  void* allocate_slow(std::size_t n) noexcept;
  void swap(Arena& o) noexcept {
    std::swap(chunks_, o.chunks_);
    std::swap(next_, o.next_);
    std::swap(end_, o.end_);
    std::swap(reserved_, o.reserved_);
  }

  Chunk* chunks_ = nullptr;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::size_t reserved_ = 0;
};

}  // namespace twp
