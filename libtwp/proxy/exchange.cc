// The way of a request and its response. How exchanges end: exchange_end.cc.
#include "proxy/exchange.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "http/session.h"
#include "net/transport.h"

namespace twp {
namespace {

// A tunnel is worth a pipe once it has shown that it moves bulk data, not messages.
constexpr std::uint64_t kTunnelBulkAfter = 256 * 1024;
constexpr std::size_t kTunnelBulkSlice = 8 * 1024;

// The part of a body that is put by for a replay: a message of an RPC fits, an upload does not.
constexpr std::size_t kKeepBody = 16 * 1024;

bool is_bulk(const BodySize& body) noexcept { return body.is_exact() && body.n >= kSpliceFrom; }

/// RFC 9110 §6.5.1: nothing that frames, routes or authenticates comes behind a body.
void filter_trailers(HeaderBlock& trailers) noexcept {
  constexpr std::uint16_t kNever = header_flag::no_trailer | header_flag::hop;
  trailers.remove_if([](const Field& f) { return (header_flags(f.id) & kNever) != 0; });
}

}  // namespace

Exchange& Exchange::begin(ExchangeEnv& env, Generation& generation, Stream& client) noexcept {
  return *env.exchanges.make(env, generation, client);
}

Exchange::Exchange(ExchangeEnv& env, Generation& generation, Stream& client) noexcept
    : env_(env), generation_(generation), client_(&client) {
  generation_.retain();
  ++env_.counters.exchanges_active;
}

Exchange::~Exchange() {
  if (up_ != nullptr) env_.relays.destroy(up_);
  if (down_ != nullptr) env_.relays.destroy(down_);
  --env_.counters.exchanges_active;
  generation_.release();
}

// ---- from the streams ---------------------------------------------------------------------------------

void Exchange::on_head(Stream& s, Head&& head, End end) noexcept {
  touch();
  if (from_client(s)) {
    start_request(std::move(head), end);
  } else if (&s == origin_) {
    if (head.is_interim())
      interim(std::move(head));
    else
      response_head(std::move(head), end);
  }
}

void Exchange::on_body(Stream& s, Slice body, End end) noexcept {
  // What joins a queue is no activity: a reader that takes an octet now and then lets as much in.
  if (&s != origin_ || response_sent_ == response_octets_) touch();
  if (from_client(s))
    request_body(std::move(body), end);
  else if (&s == origin_)
    response_body(std::move(body), end);
}

void Exchange::on_trailers(Stream& s, HeaderBlock&& trailers) noexcept {
  touch();
  filter_trailers(trailers);
  if (from_client(s))
    request_trailers(std::move(trailers));
  else if (&s == origin_)
    response_trailers(std::move(trailers));
}

void Exchange::on_sent(Stream& s, std::size_t n) noexcept {
  if (!from_client(s) || is_activity(n)) touch();
  if (from_client(s)) {
    if (origin_ == nullptr) return;
    origin_->consume(n);
    if (response_bulk_) try_splice(down_, origin_, client_, response_ != Flow::open);
  } else if (&s == origin_) {
    const std::uint64_t again = std::min<std::uint64_t>(n, credited_);
    credited_ -= again;
    n -= static_cast<std::size_t>(again);
    request_sent_ += n;
    if (client_ == nullptr || n == 0) return;
    client_->consume(n);
    if (request_bulk_) try_splice(up_, client_, origin_, request_ != Flow::open);
  }
}

void Exchange::on_gone(Stream& s, Fault why) noexcept {
  if (from_client(s))
    client_gone(why);
  else if (&s == origin_)
    origin_gone(why);
  finish_if_over();
}

// ---- request ------------------------------------------------------------------------------------------

void Exchange::start_request(Head&& head, End end) noexcept {
  head_ = std::move(head);
  phase_ = Phase::waiting;
  if (end == End::yes) request_ = Flow::ended;
  ++env_.counters.requests;
  started_ = last_activity_;
  authority_ = head_.authority;
  scheme_ = head_.scheme;
  note_client();
  arm();
  if (const Fault refused = admit(); refused != Fault::none) {
    answer(refused, {});
    return;
  }
  if (head_.fields.has(HeaderId::max_forwards) && answer_max_forwards()) return;
  cluster_ = &generation_.clusters[route_->cluster];
  generation_.forwarding.edit_request(head_, client_->session().peer());
  request_bulk_ = is_bulk(head_.body);
  wants_continue_ = head_.fields.has(HeaderId::expect) && request_ == Flow::open;
  choose_origin(false);
}

Fault Exchange::admit() noexcept {
  if (generation_.forwarding.is_loop(head_)) return Fault::loop_detected;
  // A tunnel to anywhere is a forward proxy's business.
  if (head_.is_connect() && head_.protocol.empty()) return Fault::method_not_allowed;
  route_ = generation_.snapshot->router().find(head_);
  return route_ == nullptr ? Fault::not_found : Fault::none;
}

/// RFC 9110 §7.6.2: TRACE and OPTIONS count their hops; at 0 we are the final recipient.
bool Exchange::answer_max_forwards() noexcept {
  if (head_.method != Method::trace && head_.method != Method::options) return false;
  const auto hops = parse_decimal(head_.fields.get(HeaderId::max_forwards));
  if (!hops) return false;
  if (*hops != 0) {
    char text[20];
    head_.fields.set(HeaderId::max_forwards, {text, write_decimal(text, *hops - 1)});
    return false;
  }
  phase_ = Phase::answered;
  if (head_.method == Method::trace) {
    answer(Fault::method_not_allowed, {});  // echoing what a client sent helps nobody but an attacker
    return true;
  }
  Head ok = Head::response(200);
  ok.fields.add_view(HeaderId::content_length, "Content-Length", "0");
  ok.body = BodySize::exactly(0);
  send_answer(ok, {});
  return true;
}

/// What the record says of the client: its session may be gone before the exchange is.
void Exchange::note_client() noexcept {
  if (env_.observer == nullptr) return;
  const PeerInfo& peer = client_->session().peer();
  client_address_ = peer.remote;
  local_address_ = peer.local;
  if (!peer.tls) return;
  Arena& arena = head_.fields.arena();
  client_tls_ = {true,
                 peer.tls_resumed,
                 arena.copy(peer.tls_version),
                 arena.copy(peer.cipher),
                 arena.copy(peer.sni),
                 arena.copy(peer.subject)};
}

void Exchange::choose_origin(bool replay) noexcept {
  // Another origin is better for a replay when there is one.
  member_ = cluster_->pick(replay ? member_ : nullptr);
  if (member_ == nullptr) {
    answer(Fault::no_origin, "every origin of the cluster has weight 0");
    return;
  }
  if (!route_->preserve_host || authority_.empty()) head_.authority = member_->authority;
  // Of this leg: what the client came with is told by X-Forwarded-Proto or Forwarded.
  head_.scheme = member_->pool->target().tls ? "https" : "http";
  const auto got = member_->pool->acquire(*this, *this, replay ? OriginPool::Reuse::no : OriginPool::Reuse::yes,
                                          &client_->session());
  if (got.stream != nullptr)
    send_request(*got.stream, got.reused);
  else if (got.fault != Fault::none)
    origin_failed(got.fault, {});
}

void Exchange::on_pool_stream(Stream& stream, bool reused) noexcept { send_request(stream, reused); }

void Exchange::on_pool_failed(Fault why, const std::string& detail) noexcept { origin_failed(why, detail); }

void Exchange::send_request(Stream& origin, bool reused) noexcept {
  touch();
  origin_ = &origin;
  reused_ = reused;
  phase_ = Phase::requested;
  sent_at_ = last_activity_;
  if (env_.observer != nullptr) {
    origin_address_ = origin.session().peer().remote;
    origin_version_ = origin.session().version();
  }
  if (cluster_->response_timeout > Duration::zero()) arm();
  // Only a connection with several streams can say that it took no notice of one.
  const Session& session = origin.session();
  const bool refusable = !session.settled() || std::uint64_t{session.capacity()} + session.active() > 1;
  keeps_body_ = refusable && !given_away_ && !head_.is_connect() && !(head_.body.is_exact() && head_.body.n > kKeepBody);
  const bool whole = request_ == Flow::ended && held_.empty() && !has_held_trailers_;
  origin.send_head(head_, whole ? End::yes : End::no);
  // What a client sends before its tunnel is granted stays here until then.
  if (!whole && !head_.is_connect()) send_held();
}

/// Everything that came while there was nowhere to send it.
void Exchange::send_held() noexcept {
  const bool ends = request_ == Flow::ended && !has_held_trailers_;
  if (held_.empty() && ends) origin_->send_body({}, End::yes);
  while (!held_.empty()) {
    Slice s = held_.pop_front();
    give(std::move(s), ends && held_.empty() ? End::yes : End::no);
  }
  if (has_held_trailers_) origin_->send_trailers(held_trailers_);
}

void Exchange::give(Slice body, End end) noexcept {
  if (keeps_body_ && kept_.size() + body.size() <= kKeepBody) {
    if (!body.empty()) kept_.append(body.share());
  } else if (!body.empty()) {
    given_away_ = true;
    keeps_body_ = false;
    kept_.clear();
  }
  origin_->send_body(std::move(body), end);
}

/// The origin has taken none of it: everything is held again.
void Exchange::take_back() noexcept {
  credited_ = request_sent_;
  kept_.append(std::move(held_));
  held_ = std::move(kept_);
}

bool Exchange::holding() const noexcept {
  return phase_ == Phase::waiting || (phase_ == Phase::requested && head_.is_connect());
}

void Exchange::request_body(Slice body, End end) noexcept {
  const std::size_t n = body.size();
  request_octets_ += n;
  env_.counters.request_octets += n;
  if (request_ == Flow::draining) {
    client_->consume(n);
    if (end == End::yes) request_ = Flow::ended;
    return;
  }
  if (request_ != Flow::open) return;
  if (end == End::yes) request_ended();
  if (holding()) {
    held_.append(std::move(body));
    return;
  }
  if (origin_ == nullptr) return;
  if (end == End::yes && up_ != nullptr && up_->active()) {
    request_end_held_ = true;
    return;
  }
  if (tunnel_ && n >= kTunnelBulkSlice && request_octets_ > kTunnelBulkAfter) request_bulk_ = true;
  give(std::move(body), end);
}

/// From here on the origin's answer is what is waited for.
void Exchange::request_ended() noexcept {
  request_ = Flow::ended;
  if (phase_ == Phase::requested && cluster_->response_timeout > Duration::zero()) arm();
}

void Exchange::request_trailers(HeaderBlock&& trailers) noexcept {
  if (request_ == Flow::draining) request_ = Flow::ended;
  if (request_ != Flow::open) return;
  request_ended();
  held_trailers_ = std::move(trailers);
  has_held_trailers_ = true;
  if (!holding() && origin_ != nullptr) origin_->send_trailers(held_trailers_);
}

// ---- response -----------------------------------------------------------------------------------------

void Exchange::interim(Head&& head) noexcept {
  came_back();
  if (phase_ != Phase::requested || client_ == nullptr || response_ != Flow::open) return;
  if (head.status == 100) wants_continue_ = false;
  // HTTP/1.0 has no interim responses (RFC 9110 §15.2).
  if (head_.version.major == 1 && head_.version.minor == 0) return;
  generation_.forwarding.edit_response(head, env_.dates, env_.worker.wall());
  client_->send_head(head, End::no);
}

/// No replay from here on.
void Exchange::came_back() noexcept {
  came_back_ = true;
  keeps_body_ = false;
  kept_.clear();
}

void Exchange::response_head(Head&& head, End end) noexcept {
  came_back();
  if (phase_ != Phase::requested || client_ == nullptr || response_ != Flow::open) return;
  const bool granted = head_.is_connect() && head.is_connect() && head.status / 100 == 2;
  if (head_.is_connect() && !granted && head.status / 100 == 2 && head_.version.major > 1) {
    // Where there is no 101, a 2xx that grants nothing would be taken for the tunnel (RFC 8441 §5).
    answer(Fault::origin_no_tunnel, "the origin answered the handshake with " + std::to_string(head.status));
    return;
  }
  phase_ = Phase::relaying;
  status_ = head.status;
  response_at_ = last_activity_;
  generation_.forwarding.edit_response(head, env_.dates, env_.worker.wall());
  response_bulk_ = end == End::no && is_bulk(head.body);
  client_->send_head(head, end);
  if (head_.is_connect()) {
    if (granted)
      begin_tunnel();
    else
      refuse_tunnel();
  }
  if (end == End::yes) {
    response_ = Flow::ended;
    response_ended();
  }
}

void Exchange::begin_tunnel() noexcept {
  tunnel_ = true;
  ++env_.counters.tunnels;
  if (request_ == Flow::ended || !held_.empty()) send_held();
}

/// The request was nothing but its head; what the client sent in the hope of a tunnel is meant for nobody.
void Exchange::refuse_tunnel() noexcept {
  held_.clear();
  has_held_trailers_ = false;
  request_ = Flow::ended;
  if (origin_->send_state() == SendState::body) origin_->send_body({}, End::yes);
}

void Exchange::response_body(Slice body, End end) noexcept {
  const std::size_t n = body.size();
  response_octets_ += n;
  env_.counters.response_octets += n;
  if (response_ != Flow::open || phase_ != Phase::relaying || client_ == nullptr) return;
  if (end == End::yes) response_ = Flow::ended;
  if (end == End::yes && down_ != nullptr && down_->active()) {
    response_end_held_ = true;
    return;
  }
  if (tunnel_ && n >= kTunnelBulkSlice && response_octets_ > kTunnelBulkAfter) response_bulk_ = true;
  client_->send_body(std::move(body), end);
  if (end == End::yes) response_ended();
}

void Exchange::response_trailers(HeaderBlock&& trailers) noexcept {
  if (response_ != Flow::open || phase_ != Phase::relaying || client_ == nullptr) return;
  response_ = Flow::ended;
  client_->send_trailers(trailers);
  response_ended();
}

/// The client has its whole response. The upload, if it still goes on, goes on by itself.
void Exchange::response_ended() noexcept {
  // Nothing comes of the request any more, whether or not the client ends its side.
  if (refused_tunnel()) client_->reset(Fault::early_response);
  if (request_ != Flow::open || tunnel_) return;
  if (wants_continue_ && request_octets_ == 0) {
    // The client waits for a 100 that will not come and owes nobody its body (RFC 9110 §10.1.1).
    request_ = Flow::cut;
    if (origin_ != nullptr) origin_->reset(Fault::early_response);
    client_->reset(Fault::early_response);
  } else if (origin_ == nullptr) {
    settle_upload();
  }
}

// ---- bulk bodies --------------------------------------------------------------------------------------

void Exchange::try_splice(SpliceRelay*& relay, Stream* source, Stream* sink, bool ended) noexcept {
  // An upload may use the sockets as soon as the origin has the head, a response when its head has been passed on.
  const bool begun = phase_ == Phase::relaying || (phase_ == Phase::requested && &relay == &up_);
  if (ended || !begun || (relay != nullptr && relay->active())) return;
  if (relay == nullptr) {
    // Asking is cheap, a relay is not: most bodies are in our hands before their socket is free.
    RawPort* const port = source->raw_port();
    if (port == nullptr || port->source().remaining < kSpliceFrom || port->source().fd < 0) return;
    relay = env_.relays.make(env_.worker, env_.pipes, static_cast<SpliceOwner&>(*this));
  }
  relay->start(*source, *sink, kSpliceFrom);
}

void Exchange::on_splice_done(SpliceRelay& relay) noexcept {
  touch();
  const bool response = &relay == down_;
  count_moved(relay, response);
  if (response && std::exchange(response_end_held_, false) && client_ != nullptr) {
    client_->send_body({}, End::yes);
    response_ended();
  } else if (!response && std::exchange(request_end_held_, false) && origin_ != nullptr) {
    origin_->send_body({}, End::yes);
  }
}

void Exchange::count_moved(SpliceRelay& relay, bool response) noexcept {
  const std::uint64_t n = relay.take_moved();
  env_.counters.spliced_octets += n;
  if (response) {
    response_octets_ += n;
    response_sent_ += n;
    env_.counters.response_octets += n;
  } else {
    request_octets_ += n;
    request_sent_ += n;
    env_.counters.request_octets += n;
  }
}

}  // namespace twp
