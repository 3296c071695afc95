#include "proxy/cluster.h"

namespace twp {

__extension__ typedef unsigned __int128 Wide;

Cluster::Member* Cluster::pick(const Member* avoid) noexcept {
  if (members_.size() == 1) return members_[0].weight != 0 ? &members_[0] : nullptr;
  for (const Who who : {Who::healthy, Who::any_but_avoided, Who::any})
    if (Member* m = pick_among(who, avoid)) return m;
  return nullptr;
}

Cluster::Member* Cluster::pick_among(Who who, const Member* avoid) noexcept {
  switch (balance_) {
    case config::Balance::random: return random(who, avoid, nullptr);
    case config::Balance::least_of_two: return least_of_two(who, avoid);
    case config::Balance::round_robin: break;
  }
  return round_robin(who, avoid);
}

/// Smooth weighted round robin: weights 5, 1, 1 give a a b a c a a, not a a a a a b c.
Cluster::Member* Cluster::round_robin(Who who, const Member* avoid) noexcept {
  Member* best = nullptr;
  std::int64_t total = 0;
  for (Member& m : members_) {
    if (!eligible(m, who, avoid)) continue;
    m.current += m.weight;
    total += m.weight;
    if (best == nullptr || m.current > best->current) best = &m;
  }
  if (best != nullptr) best->current -= total;
  return best;
}

Cluster::Member* Cluster::random(Who who, const Member* avoid, const Member* not_this) noexcept {
  std::uint64_t total = 0;
  for (const Member& m : members_)
    if (&m != not_this && eligible(m, who, avoid)) total += m.weight;
  if (total == 0) return nullptr;
  // The upper half of the product is uniform in [0, total) without a division.
  std::uint64_t at = static_cast<std::uint64_t>((static_cast<Wide>(draw()) * total) >> 64);
  for (Member& m : members_) {
    if (&m == not_this || !eligible(m, who, avoid)) continue;
    if (at < m.weight) return &m;
    at -= m.weight;
  }
  return nullptr;
}

/// Power of two choices: of two origins drawn at random, the one with less to do for its weight.
Cluster::Member* Cluster::least_of_two(Who who, const Member* avoid) noexcept {
  Member* a = random(who, avoid, nullptr);
  if (a == nullptr) return nullptr;
  Member* b = random(who, avoid, a);
  if (b == nullptr) return a;
  return b->pool->load() * a->weight < a->pool->load() * b->weight ? b : a;
}

std::uint64_t Cluster::draw() noexcept {
  // xorshift64*: enough to spread load; nothing secret depends on it.
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 2685821657736338717u;
}

}  // namespace twp
