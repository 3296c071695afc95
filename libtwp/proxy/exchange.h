// Exchange: two streams tied together. All of the proxy's policy for one request lives here.
//
// docs/closing-states.md lists every way in which an exchange comes to its end.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/chain.h"
#include "base/slab.h"
#include "event/worker.h"
#include "http/stream.h"
#include "proxy/counters.h"
#include "proxy/exchange_record.h"
#include "proxy/generation.h"
#include "proxy/splice_relay.h"

namespace twp {

class Exchange;

/// What the exchanges of one worker share.
struct ExchangeEnv {
  ExchangeEnv(Worker& w, Counters& c, ExchangeObserver* o) : worker(w), counters(c), observer(o) {}

  Worker& worker;
  Counters& counters;
  ExchangeObserver* observer;  ///< may be null
  DateCache dates;
  PipePool pipes;
  Slab<SpliceRelay> relays;
  Slab<Exchange> exchanges;    // last: exchanges use the rest
};

class Exchange final : public StreamEvents, PoolWaiter, Timer, SpliceOwner {
 public:
  /// For a new stream of a client. Lives in `env.exchanges` and gives itself back when both streams are gone.
  static Exchange& begin(ExchangeEnv& env, Generation& generation, Stream& client) noexcept;

  Exchange(ExchangeEnv& env, Generation& generation, Stream& client) noexcept;
  ~Exchange();

  /// How far the response is. Only ever moves down this list, but for `waiting` again on a replay.
  enum class Phase : std::uint8_t {
    reading,    ///< no request head yet
    waiting,    ///< for a connection to an origin; body octets are held, no credit is given for them
    requested,  ///< an origin has the request; no final response head yet
    relaying,   ///< the origin's final head has been passed on
    answered,   ///< the proxy has answered by itself
  };
  /// One direction of the exchange. The two are independent of each other.
  enum class Flow : std::uint8_t {
    open,      ///< more may come
    ended,     ///< whole: the end has been passed on
    draining,  ///< request only: nobody wants the rest, but it is short, so it is read and dropped
    cut,       ///< given up: the end will never be passed on
  };

 private:
  // StreamEvents
  void on_head(Stream&, Head&&, End) noexcept override;
  void on_body(Stream&, Slice, End) noexcept override;
  void on_trailers(Stream&, HeaderBlock&&) noexcept override;
  void on_sent(Stream&, std::size_t n) noexcept override;
  void on_gone(Stream&, Fault) noexcept override;
  // PoolWaiter
  void on_pool_stream(Stream& stream, bool reused) noexcept override;
  void on_pool_failed(Fault why, const std::string& detail) noexcept override;
  // Timer
  void on_timer() noexcept override;
  // SpliceOwner
  void on_splice_done(SpliceRelay&) noexcept override;
  void on_splice_broken(SpliceRelay&) noexcept override;

  bool from_client(const Stream& s) const noexcept { return &s == client_; }
  void touch() noexcept { last_activity_ = env_.worker.now(); }

  // Request side.
  void start_request(Head&& head, End end) noexcept;
  Fault admit() noexcept;
  bool answer_max_forwards() noexcept;
  void note_client() noexcept;
  void choose_origin(bool replay) noexcept;
  void send_request(Stream& origin, bool reused) noexcept;
  void send_held() noexcept;
  void give(Slice body, End end) noexcept;
  void request_body(Slice body, End end) noexcept;
  void request_ended() noexcept;
  void request_trailers(HeaderBlock&& trailers) noexcept;
  bool holding() const noexcept;

  // Response side.
  void came_back() noexcept;
  void interim(Head&& head) noexcept;
  void response_head(Head&& head, End end) noexcept;
  void begin_tunnel() noexcept;
  void refuse_tunnel() noexcept;
  bool refused_tunnel() const noexcept { return head_.is_connect() && !tunnel_ && response_ == Flow::ended; }
  void response_body(Slice body, End end) noexcept;
  void response_trailers(HeaderBlock&& trailers) noexcept;
  void response_ended() noexcept;

  // Ends.
  void client_gone(Fault why) noexcept;
  void origin_gone(Fault why) noexcept;
  void origin_failed(Fault why, std::string_view detail) noexcept;
  bool may_replay(Fault why) const noexcept;
  void take_back() noexcept;
  void answer(Fault why, std::string_view detail) noexcept;
  void send_answer(const Head& head, std::string_view body) noexcept;
  void cut_response(Fault why) noexcept;
  void settle_upload() noexcept;
  void note_fault(Fault why, std::string_view detail) noexcept;
  void finish_if_over() noexcept;
  void report() noexcept;

  // Time.
  Instant deadline() const noexcept;
  bool is_activity(std::uint64_t sent) noexcept;
  void arm() noexcept;
  void expire() noexcept;

  // Bulk bodies.
  void try_splice(SpliceRelay*& relay, Stream* source, Stream* sink, bool ended) noexcept;
  void stop_relay(SpliceRelay* relay, bool response, const Stream* gone) noexcept;
  void stop_relays(const Stream* gone) noexcept;
  void count_moved(SpliceRelay& relay, bool response) noexcept;

  ExchangeEnv& env_;
  Generation& generation_;
  Stream* client_;
  Stream* origin_ = nullptr;
  Phase phase_ = Phase::reading;
  Flow request_ = Flow::open;
  Flow response_ = Flow::open;
  Fault fault_ = Fault::none;
  bool tunnel_ = false;
  bool reused_ = false;
  bool came_back_ = false;     // the origin has sent something
  bool given_away_ = false;    // body octets have left this object for good
  bool keeps_body_ = false;    // what is given to the origin is also put by for a replay
  std::uint8_t replays_ = 0;
  bool wants_continue_ = false;  // Expect: 100-continue, and no 100 has been passed on
  bool has_held_trailers_ = false;
  bool over_ = false;
  bool request_bulk_ = false;  // large enough for splice(2)
  bool response_bulk_ = false;
  bool request_end_held_ = false;  // the end waits for a relay to empty its pipe
  bool response_end_held_ = false;

  Cluster* cluster_ = nullptr;
  Cluster::Member* member_ = nullptr;
  const RouteTarget* route_ = nullptr;
  Head head_;                      // the request's, edited; kept for a replay and for the record
  Chain held_;                     // body that came before there was an origin
  HeaderBlock held_trailers_;
  Chain kept_;                     // body that the origin was given, while it may still say that it took none of it
  SpliceRelay* up_ = nullptr;      // client to origin
  SpliceRelay* down_ = nullptr;    // origin to client

  std::uint64_t request_octets_ = 0;
  std::uint64_t request_sent_ = 0;
  std::uint64_t credited_ = 0;     // of the octets that a replay sends again: credit for these was given
  std::uint64_t response_octets_ = 0;
  std::uint64_t response_sent_ = 0;
  std::uint64_t trickle_ = 0;      // of these: since they last counted as activity
  Instant last_activity_ = kNever;
  std::uint16_t status_ = 0;

  // For the record.
  Instant started_ = kNever;
  Instant sent_at_ = kNever;
  Instant response_at_ = kNever;
  Address client_address_, local_address_, origin_address_;
  HttpVersion origin_version_;
  std::string_view scheme_, authority_, detail_;
  struct ClientTls {
    bool on = false, resumed = false;
    std::string_view version, cipher, sni, subject;
  } client_tls_;
};

}  // namespace twp
