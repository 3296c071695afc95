// Intrusive doubly linked list. An object is on at most one list per hook; it unlinks itself when destroyed,
// so a list never holds a dangling element and removal needs no search.
#pragma once

#include <cstddef>

namespace twp {

template <class Tag = void>
class IListHook {
 public:
  IListHook() noexcept = default;
  IListHook(const IListHook&) = delete;
  IListHook& operator=(const IListHook&) = delete;
  ~IListHook() { unlink(); }

  bool linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class G>
  friend class IList;
  IListHook* next_ = nullptr;
  IListHook* prev_ = nullptr;
};

/// List of `T`, which derives from `IListHook<Tag>`. Owns nothing. All operations are O(1) but size().
template <class T, class Tag = void>
class IList {
 public:
  using Hook = IListHook<Tag>;

  IList() noexcept { clear_links(); }
  IList(const IList&) = delete;
  IList& operator=(const IList&) = delete;
  ~IList() {
    while (!empty()) pop_front();
    // The sentinel is a hook too; its destructor must not follow links to itself.
    root_.next_ = root_.prev_ = nullptr;
  }

  bool empty() const noexcept { return root_.next_ == &root_; }
  T& front() noexcept { return static_cast<T&>(*root_.next_); }
  T& back() noexcept { return static_cast<T&>(*root_.prev_); }

  void push_back(T& item) noexcept { insert_before(root_, item); }
  void push_front(T& item) noexcept { insert_before(*root_.next_, item); }

  T& pop_front() noexcept {
    T& item = front();
    static_cast<Hook&>(item).unlink();
    return item;
  }

  /// Moves every element of `other` to the end of this list.
  void splice_back(IList& other) noexcept {
    if (other.empty()) return;
    Hook* first = other.root_.next_;
    Hook* last = other.root_.prev_;
    other.clear_links();
    first->prev_ = root_.prev_;
    root_.prev_->next_ = first;
    last->next_ = &root_;
    root_.prev_ = last;
  }

  /// Calls `f(T&)` for each element; `f` may unlink the element it is given, and no other.
  template <class F>
  void for_each(F&& f) {
    for (Hook* h = root_.next_; h != &root_;) {
      Hook* next = h->next_;
      f(static_cast<T&>(*h));
      h = next;
    }
  }

  /// The first element for which `f(T&)` is true; nullptr: none.
  template <class F>
  T* find(F&& f) {
    for (Hook* h = root_.next_; h != &root_; h = h->next_)
      if (f(static_cast<T&>(*h))) return &static_cast<T&>(*h);
    return nullptr;
  }

  std::size_t size() const noexcept {
    std::size_t n = 0;
    for (const Hook* h = root_.next_; h != &root_; h = h->next_) ++n;
    return n;
  }

 private:
  static void insert_before(Hook& at, T& item) noexcept {
    Hook& h = item;
    h.next_ = &at;
    h.prev_ = at.prev_;
    at.prev_->next_ = &h;
    at.prev_ = &h;
  }
  void clear_links() noexcept { root_.next_ = root_.prev_ = &root_; }

  Hook root_;
};

}  // namespace twp
