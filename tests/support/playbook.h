// Playbook: an Exchange between a scripted client and a scripted origin.
//
//   Playbook play;
//   play.get("/x");
//   play.connect();                       // the dial of the pool succeeds
//   play.origin().head.path == "/x"
//   play.respond(200, "hello");
//   play.client().body == "hello"
//
// A Playbook outlives nothing that it made: settle() runs turns until the exchange has let go.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/exchange.h"
#include "proxy/pool_set.h"
#include "support/fake_stream.h"

namespace twp::test {

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

/// One cluster with `origins` origins and one route to it.
config::Config one_cluster(unsigned origins = 1);

class Playbook final : GenerationOwner, ExchangeObserver {
 public:
  explicit Playbook(config::Config config = one_cluster());
  ~Playbook();

  // The client.
  FakeStream& request(Head&& head, End end = End::yes);
  FakeStream& get(std::string_view path = "/", const Fields& fields = {});
  /// A request whose body follows with client().deliver_body().
  FakeStream& upload(std::string_view method, BodySize size, const Fields& fields = {});
  FakeStream& websocket();
  FakeStream& client() { return *client_; }

  // The origin.
  FakeSession& connect(unsigned streams = 1) { return connector.succeed(streams); }
  /// The stream that carries the request now.
  FakeStream& origin();
  /// A final head; `body` whole and ended when it is not null.
  void respond(std::uint16_t status, const char* body = nullptr, const Fields& fields = {});
  void respond_unended(std::uint16_t status, BodySize size, const Fields& fields = {});
  void interim(std::uint16_t status);

  /// All octets leave on both sides and everything that is told later is told. True when the exchange is over.
  bool settle();
  /// As settle(), but nothing leaves.
  void turn() { worker.turn(Duration::zero()); }
  bool over() const noexcept { return env.exchanges.live() == 0; }

  Worker worker;
  FakeConnector connector{worker};
  Counters counters;
  HttpLimits limits;

  /// What the observer was told last.
  struct Done {
    unsigned times = 0;
    std::uint16_t status = 0;
    Fault fault = Fault::none;
    bool replayed = false, reused = false, tunnel = false, generated = false;
    std::uint64_t request_octets = 0, response_octets = 0;
    std::string detail, origin, path, scheme;
  } done;

  ExchangeEnv env{worker, counters, this};
  PoolSet pools{worker, connector, limits, counters};
  std::unique_ptr<Generation> generation;
  OriginPool& pool(std::size_t i = 0) { return *generation->clusters[0].members()[i].pool; }
  FakeSession client_session{worker, nullptr};

 private:
  void on_generation_unused(Generation&) noexcept override {}
  void on_exchange_done(const ExchangeRecord& r) noexcept override;
  void on_rejected(const PeerInfo&, Fault) noexcept override {}

  FakeStream* client_ = nullptr;
  PoolSet::Lease lease_;
};

/// A request head with a body that follows or not.
Head request_head(std::string_view method, std::string_view path, BodySize body = BodySize::none(),
                  const Fields& fields = {}, HttpVersion version = {1, 1});

}  // namespace twp::test
