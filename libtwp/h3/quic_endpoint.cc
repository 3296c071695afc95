#include "h3/quic_endpoint.h"

#include <cstring>

#include "h3/quic_impl.h"

namespace twp {
namespace {

constexpr Instant kTick = 1'000'000;                        // of the worker's wheel
constexpr Duration kBurialRound = std::chrono::seconds(1);  // how often closed connections are forgotten
constexpr std::size_t kMostClosed = 20'000;                 // then the oldest goes before its time
constexpr std::size_t kSmallPacket = 256;                   // octets: answers without state

std::uint64_t random_seed() noexcept {
  std::uint64_t v;
  QuicCallbacks::random(reinterpret_cast<std::uint8_t*>(&v), sizeof v);
  return v;
}

std::span<const std::uint8_t> octets(std::span<const std::byte> b) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(b.data()), b.size()};
}

/// The connection ID that a datagram is for; empty: it has none. `short_header` packets have one of ours.
std::span<const std::uint8_t> destination(std::span<const std::byte> datagram) noexcept {
  const auto p = octets(datagram);
  if (p.empty()) return {};
  if ((p[0] & 0x80) == 0)
    return p.size() <= kCidLength ? std::span<const std::uint8_t>() : p.subspan(1, kCidLength);
  // RFC 8999 §5.1: the same for all versions.
  if (p.size() < 6 || p[5] > QuicId::kMax || p.size() < std::size_t{6} + p[5]) return {};
  return p.subspan(6, p[5]);
}

}  // namespace

// A keyed mix: clients choose the IDs of their first packets and must not choose the bucket.
std::size_t QuicEndpoint::Hash::operator()(const QuicId& id) const noexcept {
  static const std::uint64_t seed = random_seed();
  std::uint64_t h = seed ^ id.size;
  for (std::size_t i = 0; i < QuicId::kMax; i += 4) {
    std::uint32_t part;
    std::memcpy(&part, id.octets.data() + i, 4);
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h * (seed | 1);
}

QuicEndpoint::QuicEndpoint(Worker& worker, TlsContext* tls, const QuicSecrets& secrets,
                           const QuicEndpointOptions& options, QuicAcceptor* acceptor)
    : worker_(worker), tls_(tls), acceptor_(acceptor), options_(options), ids_(worker.index(), secrets) {}

QuicEndpoint::~QuicEndpoint() = default;

Result<std::unique_ptr<QuicEndpoint>> QuicEndpoint::listen(Worker& worker, const Address& at, TlsContext& tls,
                                                           const QuicSecrets& secrets,
                                                           const QuicEndpointOptions& options,
                                                           QuicAcceptor& acceptor) {
  std::unique_ptr<QuicEndpoint> e(new QuicEndpoint(worker, &tls, secrets, options, &acceptor));
  auto socket = UdpSocket::open(worker, at, options.udp, *e);
  if (!socket) return std::unexpected(socket.error());
  e->socket_ = std::move(*socket);
  return e;
}

Result<std::unique_ptr<QuicConnection>> QuicEndpoint::connect(Worker& worker, const Address& to,
                                                              TlsContext& tls, const QuicTarget& target,
                                                              const QuicSecrets& secrets,
                                                              const QuicEndpointOptions& options) {
  std::unique_ptr<QuicEndpoint> e(new QuicEndpoint(worker, nullptr, secrets, options, nullptr));
  auto socket = UdpSocket::connect(worker, to, options.udp, *e);
  if (!socket) return std::unexpected(socket.error());
  e->socket_ = std::move(*socket);
  e->remote_ = to;
  auto c = QuicConnection::connect(worker, *e, tls, options.settings, target, {e->socket_->address(), to});
  if (c == nullptr) return fail(Fault::out_of_memory, "cannot make a QUIC connection");
  e->only_ = c.get();
  c->own_host(std::move(e));
  return c;
}

// --- datagrams --------------------------------------------------------------------------------------

/// What came together may be for several connections of one peer: it is taken apart where the ID changes.
void QuicEndpoint::take(Datagrams in, bool delivered) noexcept {
  while (!in.octets.empty()) {
    Datagrams run = in;
    const auto id = destination(in.next());
    while (!in.octets.empty()) {
      Datagrams rest = in;
      const auto next = destination(rest.next());
      if (!std::equal(id.begin(), id.end(), next.begin(), next.end())) break;
      in = rest;
    }
    run.octets = run.octets.first(run.octets.size() - in.octets.size());
    take_run(run, delivered);
  }
}

void QuicEndpoint::take_run(const Datagrams& run, bool delivered) noexcept {
  const auto ecn = static_cast<std::uint8_t>(run.ecn);
  if (only_ != nullptr) {
    // A connected socket: whatever comes is from that peer, and a stateless reset has no ID (RFC 9000 §10.3).
    only_->receive({run.local, remote_}, ecn, run.octets, run.segment);
    return;
  }
  Datagrams first = run;
  const auto route = by_id_.find(QuicId(destination(first.next())));
  if (route == by_id_.end())
    take_unknown(run, delivered);
  else if (route->second.closed != nullptr)
    answer_closed(*route->second.closed, run);
  else
    route->second.connection->receive({run.local, run.remote}, ecn, run.octets, run.segment);
}

/// RFC 9000 §10.2.1: the same last words, more and more rarely.
void QuicEndpoint::answer_closed(Closed& closed, const Datagrams& in) noexcept {
  closed.seen += in.count();
  if (closed.farewell.packet.empty() || (closed.seen & (closed.seen - 1)) != 0) return;
  reply(in, closed.farewell.packet);
}

void QuicEndpoint::reply(const Datagrams& to, std::span<const std::byte> packet) noexcept {
  if (packet.empty()) return;
  Datagrams out;
  out.octets = packet;
  out.segment = packet.size();
  out.local = to.local;
  out.remote = to.remote;
  socket_->send(out);
}

void QuicEndpoint::take_unknown(const Datagrams& in, bool delivered) noexcept {
  Datagrams rest = in;
  while (!rest.octets.empty()) {
    Datagrams one = rest;
    one.octets = rest.next();
    one.segment = one.octets.size();
    const DatagramHead head = read_head(one.octets, ids_);
    std::array<std::byte, 600> packet;
    std::size_t n = 0;
    if (acceptor_ == nullptr || head.kind == DatagramKind::junk) {
      ++counters_.dropped;
    } else if (!delivered && head.worker && *head.worker != worker_.index()) {
      ++counters_.strays;
      acceptor_->on_stray(*this, *head.worker, one);
    } else if (head.kind == DatagramKind::long_header) {
      begin(one);
    } else if (is_reflecting_port(in.remote.port())) {
      ++counters_.dropped;
    } else if (head.kind == DatagramKind::unsupported_version) {
      if (negotiations_.take(worker_.now())) n = write_version_negotiation(packet, head);
      counters_.version_negotiations += n != 0;
    } else if (resets_.take(worker_.now())) {
      n = write_stateless_reset(packet, head, one.octets.size(), ids_);
      counters_.stateless_resets += n != 0;
    }
    reply(one, std::span(packet).first(n));
  }
}

/// The first packet of a client, perhaps.
void QuicEndpoint::begin(const Datagrams& in) noexcept {
  ++counters_.dropped;
  if (draining_ || is_reflecting_port(in.remote.port()) || half_open_.size() >= options_.max_half_open)
    return;
  // A connection that began with the packet before it in the same train.
  const auto known = by_id_.find(QuicId(destination(in.octets)));
  if (known != by_id_.end() && known->second.connection != nullptr) {
    --counters_.dropped;
    known->second.connection->receive({in.local, in.remote}, static_cast<std::uint8_t>(in.ecn), in.octets,
                                      in.segment);
    return;
  }
  const auto head = read_initial(in.octets);
  if (!head) return;
  --counters_.dropped;
  const TokenCheck token = check_token(ids_.secrets(), *head, in.remote, worker_.wall());
  std::array<std::byte, kSmallPacket> packet;
  if (token.verdict == TokenVerdict::refuse) {
    ++counters_.bad_tokens;
    reply(in, std::span(packet).first(write_invalid_token_close(packet, *head)));
    return;
  }
  const bool proven = token.verdict != TokenVerdict::none;
  if (!proven && half_open_.size() >= options_.retry_above) {
    send_retry(in, *head);
    return;
  }
  QuicInitial initial;
  initial.version = head->version;
  initial.dcid = QuicId(head->dcid);
  initial.scid = QuicId(head->scid);
  if (proven) initial.token = head->token;
  if (token.verdict == TokenVerdict::retry) {
    initial.after_retry = true;
    initial.original_dcid = QuicId(token.odcid());
  }
  const QuicPath path{in.local, in.remote};
  auto made = QuicConnection::accept(worker_, *this, *tls_, options_.settings, initial, path);
  if (made == nullptr) return;
  ++counters_.accepted;
  QuicConnection& c = *made;
  half_open_.insert(&c);
  first_ids_[&c] = initial.dcid;
  by_id_[initial.dcid] = {&c, nullptr};
  acceptor_->on_quic_connection(*this, std::move(made));
  if (c.receive(path, static_cast<std::uint8_t>(in.ecn), in.octets, in.segment) ==
      QuicConnection::Received::retry)
    send_retry(in, *head);
}

void QuicEndpoint::send_retry(const Datagrams& in, const InitialHead& initial) noexcept {
  std::array<std::byte, kSmallPacket> packet;
  const std::size_t n = write_retry(packet, ids_.secrets(), initial, ids_.make(), in.remote, worker_.wall());
  counters_.retries += n != 0;
  reply(in, std::span(packet).first(n));
}

// --- QuicHost ---------------------------------------------------------------------------------------

bool QuicEndpoint::send(QuicConnection& c, const QuicPath& path, std::uint8_t ecn,
                        std::span<const std::byte> out, std::size_t segment) noexcept {
  Datagrams d;
  d.octets = out;
  d.segment = segment;
  d.local = path.local;
  d.remote = path.remote;
  d.ecn = static_cast<Ecn>(ecn);
  socket_->send(d);
  if (socket_->writable()) return true;
  waiting_.push_back(&c);
  return false;
}

void QuicEndpoint::on_writable(UdpSocket&) noexcept {
  std::vector<QuicConnection*> some;
  some.swap(waiting_);
  for (QuicConnection* c : some) c->sendable();
}

/// A burst on a fast path is followed by pauses of some ten microseconds, of which the wheel would make whole milliseconds.
void QuicEndpoint::arm(Timer& timer, Instant at) noexcept {
  if (at > worker_.now() + kTick) {
    worker_.arm_at(timer, at);
    return;
  }
  timer.cancel();
  soon_.push_back(timer);
  worker_.schedule(Phase::client, *this);
}

void QuicEndpoint::run() noexcept {
  IList<Timer, TimerTag> some;
  some.splice_back(soon_);
  while (!some.empty()) some.pop_front().on_timer();
}

QuicId QuicEndpoint::new_id(QuicConnection& c, QuicResetToken& token) noexcept {
  const QuicId id(ids_.make());
  if (const auto made = ids_.reset_token(id.bytes())) token = *made;
  by_id_[id] = {&c, nullptr};
  return id;
}

void QuicEndpoint::drop_id(QuicConnection&, const QuicId& id) noexcept { by_id_.erase(id); }

std::vector<std::uint8_t> QuicEndpoint::new_token(const Address& remote) noexcept {
  std::vector<std::uint8_t> token(kMaxNewToken);
  token.resize(make_new_token(token, ids_.secrets(), remote, worker_.wall()));
  return token;
}

void QuicEndpoint::on_open(QuicConnection& c) noexcept { half_open_.erase(&c); }

void QuicEndpoint::on_over(QuicConnection& c, QuicFarewell&& farewell) noexcept {
  half_open_.erase(&c);
  std::erase(waiting_, &c);
  if (only_ == &c) only_ = nullptr;
  for (const QuicId& id : farewell.ids) by_id_.erase(id);
  if (const auto first = first_ids_.find(&c); first != first_ids_.end()) {
    by_id_.erase(first->second);
    farewell.ids.push_back(first->second);
    first_ids_.erase(first);
  }
  if (farewell.keep > Duration::zero() && acceptor_ != nullptr) bury(std::move(farewell));
}

void QuicEndpoint::bury(QuicFarewell&& farewell) noexcept {
  if (closed_.size() >= kMostClosed) forget_oldest();
  auto& c = *closed_.emplace_back(std::make_unique<Closed>());
  c.until = worker_.now() + static_cast<Instant>(farewell.keep.count());
  c.farewell = std::move(farewell);
  for (const QuicId& id : c.farewell.ids) by_id_[id] = {nullptr, &c};
  if (!armed()) worker_.arm(*this, kBurialRound);
}

void QuicEndpoint::forget_oldest() noexcept {
  for (const QuicId& id : closed_.front()->farewell.ids) by_id_.erase(id);
  closed_.pop_front();
}

void QuicEndpoint::on_timer() noexcept {
  while (!closed_.empty() && closed_.front()->until <= worker_.now()) forget_oldest();
  if (!closed_.empty()) worker_.arm(*this, kBurialRound);
}

void QuicEndpoint::on_unreachable(UdpSocket&, Fault why) noexcept {
  // Anybody can forge it; a connection that works is not given up for it.
  if (only_ != nullptr && !only_->is_open())
    only_->give_up(
        why, why == Fault::connect_refused ? "nobody listens there (ICMP)" : "cannot be reached (ICMP)");
}

}  // namespace twp
