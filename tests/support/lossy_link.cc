#include "support/lossy_link.h"

#include <algorithm>
#include <utility>

namespace twp::test {
namespace {

Instant after(Instant t, Duration d) { return t + static_cast<Instant>(d.count()); }

}  // namespace

void LossyLink::attach(const Address& at, bool server, Sink sink) {
  ends_[at.text()] = {server, std::move(sink)};
}

void LossyLink::detach(const Address& at) { ends_.erase(at.text()); }

void LossyLink::rebind(const Address& client, const Address& outside) {
  if (const auto old = outside_.find(client.text()); old != outside_.end()) inside_.erase(old->second.text());
  outside_[client.text()] = outside;
  inside_[outside.text()] = client;
}

void LossyLink::blackout(Way way, Instant from, Instant until) {
  ways_[static_cast<unsigned>(way)].blackouts.emplace_back(from, until);
}

void LossyLink::at(Instant when, std::function<void()> f) {
  events_.push({std::max(when, now_), order_++, Way::up, {}, std::move(f)});
}

void LossyLink::send(LinkDatagram d) {
  const auto from = ends_.find(d.from.text());
  const Way which = from != ends_.end() && from->second.server ? Way::down : Way::up;
  WayState& way = ways_[static_cast<unsigned>(which)];
  ++way.totals.offered;
  way.totals.octets_offered += d.octets.size();
  if (const auto nat = outside_.find(d.from.text()); nat != outside_.end()) d.from = nat->second;
  if (!survives(way, which, d)) return;
  damage(way, d);
  const auto leaves = departure(way, d.octets.size());
  if (!leaves) {
    ++way.totals.overflow;
    return;
  }
  const Conditions& c = way.conditions;
  if (chance(c.duplicate)) {
    ++way.totals.duplicated;
    events_.push({after(after(*leaves, c.delay), random_up_to(c.jitter)), order_++, which, d, nullptr});
  }
  events_.push(
      {after(after(*leaves, c.delay), random_up_to(c.jitter)), order_++, which, std::move(d), nullptr});
}

bool LossyLink::survives(WayState& way, Way which, LinkDatagram& d) {
  WayTotals& t = way.totals;
  if (filter_ && !filter_(which, t.offered, d)) return ++t.filtered, false;
  for (const auto& [from, until] : way.blackouts)
    if (now_ >= from && now_ < until) return ++t.dark, false;
  if (d.octets.size() > way.conditions.mtu) return ++t.too_large, false;
  if (lost(way)) return ++t.lost, false;
  return true;
}

bool LossyLink::lost(WayState& way) {
  const Conditions& c = way.conditions;
  // Both dice are thrown for each datagram: one kind of loss does not shift the other's sequence.
  const bool alone = chance(c.loss);
  way.burst = way.burst ? !chance(c.burst_end) : chance(c.burst_begin);
  return alone || way.burst;
}

void LossyLink::damage(WayState& way, LinkDatagram& d) {
  const Conditions& c = way.conditions;
  if (chance(c.corrupt) && !d.octets.empty()) {
    const std::uint64_t bit = random_() % (d.octets.size() * 8);
    d.octets[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    ++way.totals.corrupted;
  }
  if (chance(c.congested) && (d.ecn == Ecn::ect0 || d.ecn == Ecn::ect1)) {
    d.ecn = Ecn::ce;
    ++way.totals.marked;
  }
  if (c.bleach) d.ecn = Ecn::none;
}

std::optional<Instant> LossyLink::departure(WayState& way, std::size_t octets) {
  const Conditions& c = way.conditions;
  if (c.bandwidth == 0) return now_;
  const double ns_per_octet = 1e9 / static_cast<double>(c.bandwidth);
  const Instant begins = std::max(now_, way.busy_until);
  if (static_cast<double>(begins - now_) / ns_per_octet + static_cast<double>(octets) >
      static_cast<double>(c.buffer))
    return std::nullopt;
  way.busy_until = begins + static_cast<Instant>(static_cast<double>(octets) * ns_per_octet);
  return way.busy_until;
}

std::optional<Instant> LossyLink::next() const {
  if (events_.empty()) return std::nullopt;
  return events_.top().when;
}

void LossyLink::advance_to(Instant when) {
  while (!events_.empty() && events_.top().when <= when) {
    Event e = events_.top();
    events_.pop();
    now_ = std::max(now_, e.when);
    if (e.call)
      e.call();
    else
      deliver(std::move(e));
  }
  now_ = std::max(now_, when);
}

void LossyLink::deliver(Event e) {
  LinkDatagram& d = e.datagram;
  WayTotals& t = ways_[static_cast<unsigned>(e.way)].totals;
  const std::string world = d.to.text();
  if (const auto nat = inside_.find(world); nat != inside_.end()) {
    d.to = nat->second;
  } else if (outside_.contains(world)) {
    ++t.astray;  // behind a NAT that no longer takes this address for its
    return;
  }
  const auto end = ends_.find(d.to.text());
  if (end == ends_.end()) {
    ++t.astray;
    return;
  }
  ++t.delivered;
  t.octets_delivered += d.octets.size();
  note(d);
  const Sink sink = end->second.sink;  // it may attach and detach
  sink(d);
}

void LossyLink::note(const LinkDatagram& d) {
  const auto mix = [this](std::uint64_t v) { fingerprint_ = (fingerprint_ ^ v) * 1099511628211u; };
  mix(now_);
  for (const char c : d.from.text() + '>' + d.to.text()) mix(static_cast<unsigned char>(c));
  mix(static_cast<std::uint64_t>(d.ecn));
  for (const std::byte b : d.octets) mix(static_cast<std::uint64_t>(b));
}

// Not the standard's distributions: they differ from library to library.
bool LossyLink::chance(double p) {
  if (p <= 0) return false;
  return static_cast<double>(random_() >> 11) * 0x1p-53 < p;
}

Duration LossyLink::random_up_to(Duration most) {
  if (most <= Duration::zero()) return {};
  return Duration(static_cast<Duration::rep>(random_() % (static_cast<std::uint64_t>(most.count()) + 1)));
}

}  // namespace twp::test
