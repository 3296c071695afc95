// FairQueue: in turn by client.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <string>

#include "proxy/fair_queue.h"

namespace twp::test {
namespace {

struct Named : FairQueue::Item {
  explicit Named(char c) : name(c) {}
  char name;
};

struct Line {
  ~Line() {
    while (!queue.empty()) queue.remove(queue.front());
  }
  Named& push(char name, const void* client) {
    Named& n = items.emplace_back(name);
    queue.push(n, client);
    return n;
  }
  std::string serve_all() {
    std::string order;
    while (!queue.empty()) {
      auto& n = static_cast<Named&>(queue.front());
      queue.serve(n);
      order += n.name;
    }
    return order;
  }
  FairQueue queue;
  std::deque<Named> items;
};

const int kOne = 1, kTwo = 2, kThree = 3;

BOOST_AUTO_TEST_SUITE(fair_queue)

BOOST_AUTO_TEST_CASE(clients_are_served_in_turn) {
  Line line;
  for (const char c : {'a', 'b', 'c', 'd'}) line.push(c, &kOne);
  line.push('x', &kTwo);
  line.push('y', &kTwo);
  line.push('1', &kThree);
  BOOST_TEST(line.queue.size() == 7u);
  BOOST_TEST(line.serve_all() == "ax1bycd");
  BOOST_TEST(line.queue.size() == 0u);
}

BOOST_AUTO_TEST_CASE(who_leaves_does_not_cost_its_client_the_turn) {
  Line line;
  Named& a = line.push('a', &kOne);
  line.push('b', &kOne);
  line.push('x', &kTwo);
  line.queue.remove(a);
  BOOST_TEST(line.serve_all() == "bx");
  line.push('x', &kTwo);
  line.push('a', &kOne);
  BOOST_TEST(line.serve_all() == "xa");
}

BOOST_AUTO_TEST_CASE(a_search_goes_round_and_may_find_nothing) {
  Line line;
  line.push('a', &kOne);
  line.push('b', &kOne);
  line.push('x', &kTwo);
  const auto find = [&](char c) {
    auto* item = line.queue.find([&](const FairQueue::Item& i) { return static_cast<const Named&>(i).name == c; });
    return item == nullptr ? '-' : static_cast<Named*>(item)->name;
  };
  BOOST_TEST(find('x') == 'x');
  BOOST_TEST(find('b') == 'b');
  BOOST_TEST(find('z') == '-');
  int seen = 0;
  line.queue.for_each([&](FairQueue::Item&) { ++seen; });
  BOOST_TEST(seen == 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace twp::test
