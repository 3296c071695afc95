// A pool whose dials end as the test says, and requests for it.
#pragma once

#include <boost/test/unit_test.hpp>

#include <deque>

#include "proxy/origin_pool.h"
#include "support/fake_stream.h"

namespace twp::test {

struct PoolClient final : StreamEvents, PoolWaiter {
  void on_head(Stream&, Head&&, End) noexcept override {}
  void on_body(Stream&, Slice, End) noexcept override {}
  void on_trailers(Stream&, HeaderBlock&&) noexcept override {}
  void on_sent(Stream&, std::size_t) noexcept override {}
  void on_gone(Stream&, Fault) noexcept override { stream = nullptr; }
  void on_pool_stream(Stream& s, bool r) noexcept override {
    stream = &s;
    reused = r;
  }
  void on_pool_failed(Fault why, const std::string&) noexcept override { failed = why; }

  void ask(OriginPool& pool, OriginPool::Reuse reuse = OriginPool::Reuse::yes, const void* client = nullptr) {
    const auto got = pool.acquire(*this, *this, reuse, client);
    stream = got.stream;
    reused = got.reused;
    failed = got.fault;
  }
  /// A whole exchange on the stream.
  void finish(Worker& worker) {
    auto& s = static_cast<FakeStream&>(*stream);
    s.send_head(Head::request(Method::get, "http", "a", "/"), End::yes);
    s.deliver_head(Head::response(204), End::yes);
    worker.turn(Duration::zero());
  }
  Stream* stream = nullptr;
  Fault failed = Fault::none;
  bool reused = false;
};

struct PoolRig : PoolOwner {
  explicit PoolRig(PoolLimits l = {}, const std::string& http = "h1") : limits(l), target(to(http)) {}
  virtual ~PoolRig() { pool.close(); worker.turn(Duration::zero()); worker.turn(Duration::zero()); }
  void on_pool_empty(OriginPool&) noexcept override { ++empty; }

  static DialTarget to(const std::string& http) {
    DialTarget t;
    t.host = "o.test";
    t.http = http;
    return t;
  }

  Worker worker;
  Counters counters;
  PoolLimits limits;
  DialTarget target;
  FakeConnector connector{worker};
  OriginPool pool{worker, connector, target, limits, counters, this};
  std::deque<PoolClient> clients;
  int empty = 0;
  PoolClient& ask(OriginPool::Reuse reuse = OriginPool::Reuse::yes) {
    clients.emplace_back().ask(pool, reuse);
    worker.turn(Duration::zero());  // in its flush phase the pool dials
    return clients.back();
  }
};

template <class F>
bool wait_for(Worker& worker, F done) {
  const Instant until = monotonic_now() + 10'000'000'000u;
  while (!done()) {
    if (monotonic_now() > until) return false;
    worker.turn(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace twp::test
