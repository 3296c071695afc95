// FairQueue: who waits, served in turn by client: one that asks for a hundred things at once is not to keep others waiting.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "base/ilist.h"

namespace twp {

/// Round robin over clients; those of one client in the order they came. Holds nobody: who waits takes itself out before it
/// dies. Worker thread only.
class FairQueue {
  struct OrderTag {};
  struct RoundTag {};
  struct Client;

 public:
  /// Base of who waits.
  class Item : public IListHook<OrderTag> {
    friend class FairQueue;
    Client* client_ = nullptr;
  };

  /// `client` is only told apart from others; `item` does not wait yet.
  void push(Item& item, const void* client);
  /// Out of the queue, unserved: its client keeps its place in the round.
  void remove(Item& item) noexcept;
  /// Out of the queue, and its client is last in the round.
  void serve(Item& item) noexcept;

  /// The next one in the round for which `f(Item&)` is true; nullptr: none.
  template <class F>
  Item* find(F&& f) {
    Item* found = nullptr;
    round_.find([&](Client& c) { return (found = c.items.find(f)) != nullptr; });
    return found;
  }
  /// The next one; the queue is not empty.
  Item& front() noexcept { return round_.front().items.front(); }
  /// Calls `f(Item&)` for each one; it leaves the queue as it is.
  template <class F>
  void for_each(F&& f) {
    round_.for_each([&](Client& c) { c.items.for_each(f); });
  }
  bool empty() const noexcept { return round_.empty(); }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Client : IListHook<RoundTag> {
    explicit Client(const void* k) noexcept : key(k) {}
    const void* const key;
    IList<Item, OrderTag> items;
  };

  std::unordered_map<const void*, Client> clients_;  // that wait
  IList<Client, RoundTag> round_;
  std::size_t size_ = 0;
};

}  // namespace twp
