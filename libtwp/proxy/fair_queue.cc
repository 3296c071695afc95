#include "proxy/fair_queue.h"

namespace twp {

void FairQueue::push(Item& item, const void* client) {
  Client& c = clients_.try_emplace(client, client).first->second;
  if (c.items.empty()) round_.push_back(c);
  c.items.push_back(item);
  item.client_ = &c;
  ++size_;
}

void FairQueue::remove(Item& item) noexcept {
  Client& c = *item.client_;
  item.client_ = nullptr;
  item.unlink();
  --size_;
  if (c.items.empty()) clients_.erase(c.key);  // its hook takes it off the round
}

void FairQueue::serve(Item& item) noexcept {
  Client& c = *item.client_;
  c.unlink();
  round_.push_back(c);
  remove(item);
}

}  // namespace twp
