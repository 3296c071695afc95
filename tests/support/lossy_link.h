// LossyLink: a datagram network without a kernel and without real time. Everything that happens to a datagram on its way
// follows from the conditions, the script and a seed, so a failure repeats with its seed.
//
// Knows nothing of QUIC: moves octets with addresses and ECN. A test owns the clock: it asks for the next thing that is due,
// here or in its own timers, and advances to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/address.h"
#include "net/udp_socket.h"

namespace twp::test {

struct LinkDatagram {
  std::vector<std::byte> octets;
  Address from;
  Address to;
  Ecn ecn = Ecn::none;
};

/// From clients to servers, or back.
enum class Way : std::uint8_t { up, down };

/// What a way does to its datagrams. Probabilities are 0 to 1. Checked in the order in which they stand here.
struct Conditions {
  std::size_t mtu = 65535;          ///< octets of payload that pass; larger ones vanish without a word
  double loss = 0;                  ///< each datagram on its own
  double burst_begin = 0;           ///< Gilbert-Elliott: everything is lost from a datagram on ...
  double burst_end = 1;             ///< ... until one ends the burst; 1 / burst_end datagrams on average
  double corrupt = 0;               ///< one bit of it turns over
  double duplicate = 0;             ///< a second copy, with jitter of its own
  double congested = 0;             ///< ECT becomes CE (RFC 3168 §5)
  bool bleach = false;              ///< a router clears the ECN bits
  std::uint64_t bandwidth = 0;      ///< octets a second; 0: no limit
  std::size_t buffer = 256 * 1024;  ///< octets that wait for the bandwidth; more are lost
  Duration delay{};                 ///< one way
  Duration jitter{};                ///< up to so much more, evenly: datagrams overtake each other
};

/// What became of the datagrams of one way. offered + duplicated == delivered + lost + too_large + overflow + filtered +
/// dark + astray + those under way.
struct WayTotals {
  std::uint64_t offered = 0, octets_offered = 0;
  std::uint64_t delivered = 0, octets_delivered = 0;
  std::uint64_t lost = 0, too_large = 0, overflow = 0;
  std::uint64_t filtered = 0;  ///< by the filter
  std::uint64_t dark = 0;      ///< in a blackout
  std::uint64_t astray = 0;    ///< nobody has that address (any more)
  std::uint64_t corrupted = 0, duplicated = 0, marked = 0;
};

class LossyLink {
 public:
  using Sink = std::function<void(const LinkDatagram&)>;
  /// Sees every datagram before anything else does, with its number on its way (from 1); false drops it.
  using Filter = std::function<bool(Way, std::uint64_t number, const LinkDatagram&)>;

  explicit LossyLink(std::uint64_t seed, Instant start = 1'000'000'000u) : random_(seed), now_(start) {}

  /// `sink` gets what is sent to `at`. Whoever is no server is a client. Called from advance_to() only, and may send().
  void attach(const Address& at, bool server, Sink sink);
  void detach(const Address& at);
  /// From now on what `client` sends leaves as `outside`, and what comes for `outside` is its; what is still under way
  /// to where it was before goes astray. The client is not told: its NAT has forgotten it (RFC 9000 §9.3).
  void rebind(const Address& client, const Address& outside);

  Conditions& conditions(Way way) noexcept { return ways_[static_cast<unsigned>(way)].conditions; }
  void both_ways(const Conditions& c) { conditions(Way::up) = conditions(Way::down) = c; }
  void set_filter(Filter filter) { filter_ = std::move(filter); }
  /// Nothing that is sent from `from` until `until` arrives.
  void blackout(Way way, Instant from, Instant until);
  /// Calls `f` when the clock is at `when`: the script of a scenario.
  void at(Instant when, std::function<void()> f);

  void send(LinkDatagram d);
  /// When the next datagram arrives or the next line of the script is due; nothing: nothing is under way.
  std::optional<Instant> next() const;
  /// Moves the clock to `when`, and delivers and calls in order of time what is due on the way there.
  void advance_to(Instant when);
  Instant now() const noexcept { return now_; }

  const WayTotals& totals(Way way) const noexcept { return ways_[static_cast<unsigned>(way)].totals; }
  /// A hash of every arrival: time, addresses, ECN, octets. Equal runs have equal ones.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t order;  // equal times: first come, first served
    Way way;
    LinkDatagram datagram;
    std::function<void()> call;  // or this
    bool operator<(const Event& o) const noexcept { return when != o.when ? when > o.when : order > o.order; }
  };
  struct WayState {
    Conditions conditions;
    WayTotals totals;
    std::vector<std::pair<Instant, Instant>> blackouts;
    Instant busy_until = 0;  // the last octet of what is queued leaves then
    bool burst = false;
  };
  struct End {
    bool server;
    Sink sink;
  };

  bool chance(double p);
  Duration random_up_to(Duration most);
  bool survives(WayState& way, Way which, LinkDatagram& d);
  bool lost(WayState& way);
  void damage(WayState& way, LinkDatagram& d);
  std::optional<Instant> departure(WayState& way, std::size_t octets);
  void deliver(Event event);
  void note(const LinkDatagram& d);

  std::mt19937_64 random_;
  Instant now_;
  std::array<WayState, 2> ways_;
  std::map<std::string, End> ends_;         // by Address::text()
  std::map<std::string, Address> outside_;  // client -> what the world sees
  std::map<std::string, Address> inside_;   // and back
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint64_t fingerprint_ = 14695981039346656037u;
  Filter filter_;
};

}  // namespace twp::test
