// Blocks, slices, chains, arenas, slabs and lists.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <memory>
#include <random>
#include <string>

#include "base/arena.h"
#include "base/chain.h"
#include "base/ilist.h"
#include "base/slab.h"

using namespace twp;

namespace {

std::string text_of(const Chain& c) {
  std::string s(c.size(), '\0');
  BOOST_REQUIRE(c.peek(std::as_writable_bytes(std::span(s))) == s.size());
  return s;
}

std::span<const std::byte> raw(std::string_view s) { return std::as_bytes(std::span(s)); }

Slice own_block(std::string_view s) {
  Block* b = BlockPool::local().take();
  std::memcpy(b->data, s.data(), s.size());
  b->used = static_cast<std::uint32_t>(s.size());
  return Slice(b, 0, static_cast<std::uint32_t>(s.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bytes)

BOOST_AUTO_TEST_CASE(blocks_return_to_the_pool_and_come_back) {
  auto& pool = BlockPool::local();
  const std::size_t live = pool.live_blocks();
  Block* b = pool.take();
  BOOST_TEST(pool.live_blocks() == live + 1);
  BlockPool::retain(b);
  BlockPool::release(b);
  BOOST_TEST(pool.live_blocks() == live + 1);
  BlockPool::release(b);
  BOOST_TEST(pool.live_blocks() == live);
  BOOST_TEST(pool.take() == b);
  BlockPool::release(b);
}

BOOST_AUTO_TEST_CASE(a_burst_of_blocks_does_not_stay) {
  auto& pool = BlockPool::local();
  std::vector<Block*> many;
  for (int i = 0; i < 500; ++i) many.push_back(pool.take());
  for (Block* b : many) BlockPool::release(b);
  BOOST_TEST(pool.free_blocks() <= 64u);
}

BOOST_AUTO_TEST_CASE(scratch_is_rewound_only_when_nobody_holds_it) {
  auto& pool = BlockPool::local();
  Block* first = pool.scratch(100);
  {
    const Slice s = Slice::copy_of("hello");
    Block* b = pool.scratch(100);
    BOOST_TEST(b == first);
    BOOST_TEST(b->used >= 5u);
    std::memset(b->data + b->used, 'x', 100);
    BOOST_TEST(s.text() == "hello");
  }
  BOOST_TEST(pool.scratch(100)->used == 0u);
  const Slice holds = Slice::copy_of("holds");
  Block* big = pool.scratch(kBlockSize);
  BOOST_TEST(big->used == 0u);  // another block: the first has no such room
  BOOST_TEST(holds.text() == "holds");
  BOOST_TEST(pool.inbox(1) != pool.scratch(1));
}

BOOST_AUTO_TEST_CASE(immortal_blocks_are_neither_counted_nor_written) {
  std::string payload = "static";
  Block b{1, 6, 100, true, reinterpret_cast<std::byte*>(payload.data()), nullptr};
  {
    Slice s(&b, 0, 6);
    Slice t = s.share();
    s.remove_prefix(3);
    BOOST_TEST(!s.prepend(raw("x")));
    BOOST_TEST(!t.extend(raw("x")));
    BOOST_TEST(t.room() == 0u);
  }
  BOOST_TEST(b.refs == 1u);
  BOOST_TEST(payload == "static");
}

BOOST_AUTO_TEST_CASE(split_prefix_and_headroom) {
  Slice s = own_block("HEADbody");
  Slice head = s.split(4);
  BOOST_TEST(head.text() == "HEAD");
  BOOST_TEST(s.text() == "body");
  BOOST_TEST(!s.prepend(raw("x")));  // the head is alive in front of it
  s.remove_prefix(2);
  BOOST_TEST(s.prepend(raw("ab")));
  BOOST_TEST(s.text() == "abdy");
  BOOST_TEST(!s.prepend(raw("c")));
  BOOST_TEST(head.text() == "HEAD");
}

BOOST_AUTO_TEST_CASE(a_shared_slice_takes_no_prepend) {
  Slice s = own_block("0123456789");
  Slice twin = s.share();
  s.remove_prefix(5);
  BOOST_TEST(!s.prepend(raw("abc")));
  BOOST_TEST(twin.text() == "0123456789");
  twin.remove_prefix(5);
  BOOST_TEST(!twin.prepend(raw("abc")));
  Slice part = s.split(2);
  part.remove_prefix(1);
  BOOST_TEST(!part.prepend(raw("z")));
  Slice moved = std::move(s);
  moved.remove_prefix(1);
  BOOST_TEST(!moved.prepend(raw("z")));
}

BOOST_AUTO_TEST_CASE(extend_only_at_the_end_of_what_is_used) {
  Slice s = own_block("abc");
  Slice head = s.split(1);
  BOOST_TEST(!head.extend(raw("x")));
  BOOST_TEST(s.extend(raw("de")));
  BOOST_TEST(s.text() == "bcde");
  BOOST_TEST(!s.extend(raw(std::string(kBlockSize, 'x'))));
  BOOST_TEST(s.extend(raw("")));
  Slice twin = s.share();
  BOOST_TEST(twin.extend(raw("1")));
  BOOST_TEST(!s.extend(raw("2")));  // the room is the twin's now
  BOOST_TEST(twin.text() == "bcde1");
  BOOST_TEST(s.text() == "bcde");
}

BOOST_AUTO_TEST_CASE(empty_slices_and_views) {
  Slice none;
  BOOST_TEST(none.empty());
  BOOST_TEST(none.text() == "");
  BOOST_TEST(none.split(0).empty());
  BOOST_TEST(none.share().empty());
  BOOST_TEST(Slice::copy_of(std::string_view()).empty());
  Arena a;
  BOOST_TEST(a.copy(std::string_view()) == "");
}

BOOST_AUTO_TEST_CASE(chain_against_a_string) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 rng(seed);
    Chain c;
    std::string model;
    for (int step = 0; step < 2000; ++step) {
      switch (rng() % 7) {
        case 0:
        case 1: {
          std::string s(rng() % 3 == 0 ? rng() % 40000 : rng() % 300, static_cast<char>('a' + rng() % 26));
          c.append_copy(s);
          model += s;
          break;
        }
        case 2: {
          std::string s(rng() % 2000, static_cast<char>('A' + rng() % 26));
          c.append(own_block(s));
          model += s;
          break;
        }
        case 3:
        case 4: {
          const std::size_t n = model.empty() ? 0 : rng() % (model.size() + 1);
          c.consume(n);
          model.erase(0, n);
          break;
        }
        case 5:
          if (!c.empty()) {
            const Slice s = c.pop_front();
            BOOST_REQUIRE(s.text() == model.substr(0, s.size()));
            model.erase(0, s.size());
          }
          break;
        default: {
          Chain other;
          other.append_copy("moved");
          other.append(std::move(c));
          c = std::move(other);
          model = "moved" + model;
        }
      }
      BOOST_REQUIRE(c.size() == model.size());
      BOOST_REQUIRE(c.empty() == model.empty());
    }
    BOOST_REQUIRE(text_of(c) == model);
    iovec v[4096];
    const std::size_t n = c.iovecs(v);
    BOOST_REQUIRE(n == c.slices());
    std::string joined;
    for (std::size_t i = 0; i < n; ++i) joined.append(static_cast<const char*>(v[i].iov_base), v[i].iov_len);
    BOOST_REQUIRE(joined == model);
  }
}

BOOST_AUTO_TEST_CASE(chain_keeps_small_things_together_and_fills_blocks) {
  Chain c;
  for (int i = 0; i < 100; ++i) c.append_copy("0123456789");
  BOOST_TEST(c.slices() == 1u);
  c.append(own_block("small body"));
  BOOST_TEST(c.slices() == 1u);
  c.append(own_block(std::string(600, 'B')));
  BOOST_TEST(c.slices() == 2u);
  const std::size_t live = BlockPool::local().live_blocks();
  Chain records;
  for (int i = 0; i < 8; ++i) records.append_copy(std::string(16406, 'r'));
  BOOST_TEST(records.slices() <= 10u);
  BOOST_TEST(BlockPool::local().live_blocks() - live <= 10u);
}

BOOST_AUTO_TEST_CASE(arena_memory_is_stable_aligned_and_goes_at_once) {
  Arena a;
  std::vector<std::pair<std::string_view, std::string>> all;
  std::mt19937 rng(5);
  for (int i = 0; i < 2000; ++i) {
    std::string s(rng() % (i % 100 == 0 ? 10000 : 100), static_cast<char>('a' + rng() % 26));
    all.emplace_back(a.copy(s), s);
    BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(a.allocate(rng() % 33 + 1)) % 8 == 0);
  }
  for (const auto& [view, s] : all) BOOST_REQUIRE(view == s);
  Arena b = std::move(a);
  for (const auto& [view, s] : all) BOOST_REQUIRE(view == s);
  BOOST_TEST(a.bytes_reserved() == 0u);
  b.reset();
  BOOST_TEST(b.bytes_reserved() == 0u);
}

BOOST_AUTO_TEST_CASE(arenas_and_slabs_know_what_they_hold) {
  const Arena::Memory before = Arena::memory();
  {
    Arena a;
    a.allocate(100);
    a.allocate(10'000);
    BOOST_TEST(Arena::memory().live - before.live == a.bytes_reserved());
  }
  BOOST_TEST(Arena::memory().live == before.live);
  BOOST_TEST(Arena::memory().free > 0u);
  Slab<std::uint64_t> slab;
  std::uint64_t* one = slab.make(1u);
  BOOST_TEST(slab.live_bytes() == 8u);
  BOOST_TEST(slab.free_bytes() == 0u);
  slab.destroy(one);
  BOOST_TEST(slab.live_bytes() == 0u);
  BOOST_TEST(slab.free_bytes() == 8u);
}

BOOST_AUTO_TEST_CASE(slab_reuses_and_destroys) {
  struct Thing {
    explicit Thing(int* n) : count(n) { ++*count; }
    ~Thing() { --*count; }
    int* count;
  };
  int alive = 0;
  Slab<Thing, 2> slab;
  Thing* a = slab.make(&alive);
  Thing* b = slab.make(&alive);
  Thing* c = slab.make(&alive);
  BOOST_TEST(alive == 3);
  BOOST_TEST(slab.live() == 3u);
  slab.destroy(a);
  BOOST_TEST(slab.make(&alive) == a);
  slab.destroy(a);
  slab.destroy(b);
  slab.destroy(c);
  BOOST_TEST(alive == 0);
  BOOST_TEST(slab.live() == 0u);
}

struct Node final : IListHook<> {
  explicit Node(int n) : v(n) {}
  int v;
};

BOOST_AUTO_TEST_CASE(list_elements_leave_when_they_die) {
  IList<Node> l;
  auto a = std::make_unique<Node>(1);
  Node b(2), c(3);
  l.push_back(b);
  l.push_front(*a);
  l.push_back(c);
  BOOST_TEST(l.size() == 3u);
  a.reset();
  BOOST_TEST(&l.front() == &b);
  BOOST_TEST(&l.back() == &c);
  b.unlink();
  b.unlink();
  BOOST_TEST(!b.linked());
  IList<Node> m;
  m.push_back(b);
  l.splice_back(m);
  BOOST_TEST(m.empty());
  std::string order;
  l.for_each([&](Node& n) {
    order += std::to_string(n.v);
    n.unlink();
  });
  BOOST_TEST(order == "32");
  BOOST_TEST(l.empty());
  {
    IList<Node> gone;
    gone.push_back(b);
  }
  BOOST_TEST(!b.linked());
}

BOOST_AUTO_TEST_CASE(a_chain_of_tiny_slices_does_not_hold_a_block_for_each) {
  const std::size_t live = BlockPool::local().live_blocks();
  for (const bool copied : {false, true}) {
    Chain c;
    std::string all;
    for (int i = 0; i < 3 * 16384; ++i) {
      const std::string one(1, static_cast<char>('a' + i % 26));
      all += one;
      if (copied) {
        c.append_copy(one);
        Slice::copy_of(std::string(kBlockSize, 'o'));  // somebody else's
      } else {
        c.append(own_block(one));
      }
    }
    BOOST_TEST(BlockPool::local().live_blocks() - live <= kLooseSlices + 6);
    BOOST_TEST(c.slices() <= kLooseSlices + 4);
    BOOST_TEST((text_of(c) == all));
  }
}

BOOST_AUTO_TEST_SUITE_END()
