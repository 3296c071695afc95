#include "support/quic_rig.h"

#include <ngtcp2/ngtcp2.h>

#include <algorithm>

namespace twp::test {
namespace {

std::string key(std::span<const std::uint8_t> id) { return {id.begin(), id.end()}; }

}  // namespace

void QuicWorld::settle() {
  // An event becomes work within two turns: input, a flush that asks for another one, retirement.
  for (int i = 0; i < 4; ++i) worker.turn(Duration::zero());
}

bool QuicWorld::until(const std::function<bool()>& done, Duration limit) {
  const Instant end = link.now() + static_cast<Instant>(limit.count());
  for (;;) {
    settle();
    if (done()) return true;
    Instant at = end;
    if (const auto next = link.next()) at = std::min(at, *next);
    if (const Instant next = wheel_.next(); next != kNever) at = std::min(at, std::max(next, link.now()));
    if (at >= end) {
      link.advance_to(end);
      return false;
    }
    link.advance_to(at);
    wheel_.advance(link.now());
  }
}

QuicEnd::QuicEnd(QuicWorld& world, const char* ip, std::uint16_t port, bool server)
    : address(*Address::parse(ip, port)), world_(world), server_(server) {
  world_.link.attach(address, server, [this](const LinkDatagram& d) { take(d); });
}

QuicEnd::~QuicEnd() { world_.link.detach(address); }

void QuicEnd::move_to(const Address& to) {
  world_.link.detach(address);
  address = to;
  world_.link.attach(address, server_, [this](const LinkDatagram& d) { take(d); });
}

bool QuicEnd::send(QuicConnection&, const QuicPath& path, std::uint8_t ecn, std::span<const std::byte> octets,
                   std::size_t segment) noexcept {
  sent += octets.size();
  ++trains;
  while (!octets.empty()) {
    const auto d = octets.first(std::min(segment, octets.size()));
    octets = octets.subspan(d.size());
    ++datagrams;
    largest = std::max(largest, d.size());
    world_.link.send({{d.begin(), d.end()}, path.local, path.remote, static_cast<Ecn>(ecn)});
  }
  return !full;
}

QuicId QuicEnd::new_id(QuicConnection& c, QuicResetToken& reset) noexcept {
  QuicId id;
  id.size = 18;
  ++made_;
  for (std::size_t i = 0; i < 8; ++i) id.octets[i] = static_cast<std::uint8_t>(made_ >> (8 * i));
  id.octets[8] = server_ ? 's' : 'c';
  reset.fill(static_cast<std::uint8_t>(made_));
  ids_[key(id.bytes())] = &c;
  return id;
}

void QuicEnd::drop_id(QuicConnection&, const QuicId& id) noexcept { ids_.erase(key(id.bytes())); }

void QuicEnd::on_over(QuicConnection& c, QuicFarewell&& farewell) noexcept {
  std::erase_if(ids_, [&](const auto& e) { return e.second == &c; });
  farewells.push_back(std::move(farewell));
}

void QuicEnd::take(const LinkDatagram& d) {
  received += d.octets.size();
  const auto* data = reinterpret_cast<const std::uint8_t*>(d.octets.data());
  ngtcp2_version_cid head;
  if (ngtcp2_pkt_decode_version_cid(&head, data, d.octets.size(), 18) != 0) return;
  const QuicPath path{d.to, d.from};
  const auto known = ids_.find(key({head.dcid, head.dcidlen}));
  QuicConnection* c = known == ids_.end() ? nullptr : known->second;
  if (c == nullptr && server_ && on_initial) {
    ngtcp2_pkt_hd hd;
    if (ngtcp2_accept(&hd, data, d.octets.size()) != 0) return;
    QuicInitial initial;
    initial.version = hd.version;
    initial.dcid = QuicId({hd.dcid.data, hd.dcid.datalen});
    initial.scid = QuicId({hd.scid.data, hd.scid.datalen});
    c = on_initial(initial, path);
    if (c != nullptr) ids_[key(initial.dcid.bytes())] = c;
  }
  if (c != nullptr) c->receive(path, static_cast<std::uint8_t>(d.ecn), d.octets, d.octets.size());
}

}  // namespace twp::test
