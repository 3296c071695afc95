// Slab<T>: a per-owner free list for objects that come and go with every request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace twp {

/// Not thread-safe. Memory is kept until the slab dies, at most `kMaxFree` objects of it unused.
template <class T, std::size_t kMaxFree = 1024>
class Slab {
 public:
  Slab() noexcept = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    while (free_ != nullptr) {
      Node* n = free_;
      free_ = n->next;
      ::operator delete(n, std::align_val_t{alignof(Node)});
    }
  }

  template <class... Args>
  T* make(Args&&... args) {
    Node* n = free_;
    if (n != nullptr) {
      free_ = n->next;
      --free_count_;
    } else {
      n = static_cast<Node*>(::operator new(sizeof(Node), std::align_val_t{alignof(Node)}));
    }
    ++live_;
    return new (&n->storage) T(std::forward<Args>(args)...);
  }
  void destroy(T* t) noexcept {
    t->~T();
    --live_;
    Node* n = reinterpret_cast<Node*>(t);
    if (free_count_ >= kMaxFree) {
      ::operator delete(n, std::align_val_t{alignof(Node)});
      return;
    }
    n->next = free_;
    free_ = n;
    ++free_count_;
  }
  std::size_t live() const noexcept { return live_; }
  std::size_t live_bytes() const noexcept { return live_ * sizeof(Node); }        ///< octets of objects in use
  std::size_t free_bytes() const noexcept { return free_count_ * sizeof(Node); }  ///< octets kept for later

 private:
  union Node {
    Node* next;
    alignas(T) std::byte storage[sizeof(T)];
  };
  Node* free_ = nullptr;
  std::size_t free_count_ = 0;
  std::size_t live_ = 0;
};

}  // namespace twp
