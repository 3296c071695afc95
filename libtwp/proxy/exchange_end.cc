// How exchanges end, in order or not: docs/closing-states.md is the map of this file.
#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "http/session.h"
#include "proxy/exchange.h"
#include "proxy/generated_response.h"

namespace twp {
namespace {

// A rest of a request body up to this size is read and dropped to keep the client's connection; with more,
// closing it is cheaper for both.
constexpr std::uint64_t kDrainUpTo = 64 * 1024;

// How often a request is sent again that an origin has provably not processed.
constexpr std::uint8_t kMaxReplays = 2;

/// What a transport's fault means when it ends the client's stream.
Fault as_client_fault(Fault why) noexcept {
  switch (why) {
    case Fault::peer_closed: return Fault::client_closed;
    case Fault::peer_reset:
    case Fault::io_error: return Fault::client_reset;
    default: return why;
  }
}

/// The same for the origin's; `begun`: its response head has come.
Fault as_origin_fault(Fault why, bool begun) noexcept {
  switch (why) {
    case Fault::none:
    case Fault::peer_closed:
    case Fault::origin_closed: return begun ? Fault::origin_truncated : Fault::origin_closed;
    case Fault::peer_reset:
    case Fault::io_error: return Fault::origin_reset;
    case Fault::protocol_error: return Fault::origin_bad_framing;
    case Fault::idle_timeout: return Fault::origin_timeout;
    default: return why;
  }
}

}  // namespace

void Exchange::client_gone(Fault why) noexcept {
  stop_relays(client_);
  client_ = nullptr;
  // Our own words for "the rest of the request is not needed", about a response that is whole.
  const bool well = why == Fault::none || (why == Fault::early_response && refused_tunnel());
  if (!well) note_fault(as_client_fault(why), {});
  // The session has answered a request that it could not go on reading; the record says with what.
  const std::uint16_t refused_with = info(why).http_status;
  if (status_ == 0 && refused_with / 100 == 4 && refused_with != 499) status_ = refused_with;
  if (member_ != nullptr) member_->pool->cancel(*this);
  if (origin_ == nullptr) return;
  if (request_ == Flow::ended && response_ == Flow::ended) return;  // it ends by itself
  const bool early = response_ == Flow::ended;
  if (request_ != Flow::ended) request_ = Flow::cut;
  if (response_ != Flow::ended) response_ = Flow::cut;
  origin_->reset(early ? Fault::early_response : Fault::cancelled);
}

void Exchange::origin_gone(Fault why) noexcept {
  stop_relays(origin_);
  origin_ = nullptr;
  if (client_ == nullptr) return;
  if (phase_ == Phase::requested) {
    origin_failed(as_origin_fault(why, false), {});
  } else if (phase_ == Phase::relaying) {
    if (response_ == Flow::open)
      cut_response(as_origin_fault(why, true));  // a cut body must never look whole
    else if (response_ == Flow::ended)
      settle_upload();
  }
}

bool Exchange::may_replay(Fault why) const noexcept {
  if (came_back_ || given_away_ || client_ == nullptr || cluster_ == nullptr) return false;
  switch (info(why).retry) {
    // An origin that is being replaced may say it of a connection, and of the next one too.
    case Retry::always: return replays_ < kMaxReplays;
    case Retry::reused: return replays_ == 0 && reused_ && (is_idempotent(head_.method) || !head_.protocol.empty());
    case Retry::never: break;
  }
  return false;
}

/// No response head will come from the origin that was tried.
void Exchange::origin_failed(Fault why, std::string_view detail) noexcept {
  // A dial that failed has tried every address of its origin: only another origin can do better.
  const bool never_sent = phase_ == Phase::waiting;
  if (!may_replay(why) || (never_sent && !cluster_->has_another(*member_))) {
    answer(why, detail);
    return;
  }
  ++replays_;
  take_back();
  phase_ = Phase::waiting;
  ++env_.counters.replays;
  choose_origin(true);
}

/// The proxy's own answer in place of a response that will not come.
void Exchange::answer(Fault why, std::string_view detail) noexcept {
  note_fault(why, detail);
  if (info(why).http_status / 100 == 5 && member_ != nullptr)
    log_limited(LogLevel::warning, "origin " + member_->label + ": " + std::string(log_word(why)) +
                                       (detail.empty() ? "" : ": " + std::string(detail)) +
                                       (why == Fault::tls_verify ? " (trust its CA with --origin-ca or cluster.ca)" : ""));
  if (member_ != nullptr) member_->pool->cancel(*this);
  stop_relays(nullptr);  // what is in a pipe is for nobody now
  if (origin_ != nullptr) origin_->reset(why);
  phase_ = Phase::answered;
  if (info(why).http_status == 0) {
    cut_response(why);
    return;
  }
  const GeneratedResponse made = generate_response(why, head_);
  send_answer(made.head, made.body);
}

void Exchange::send_answer(const Head& made, std::string_view body) noexcept {
  Head head = made.clone();
  head.fields.add_view(HeaderId::date, "Date", env_.dates.at(env_.worker.wall()));
  status_ = head.status;
  response_at_ = last_activity_;
  response_ = Flow::ended;
  client_->send_head(head, body.empty() ? End::yes : End::no);
  if (!body.empty()) client_->send_body(Slice::copy_of(body), End::yes);
  response_octets_ += body.size();
  settle_upload();
}

void Exchange::cut_response(Fault why) noexcept {
  note_fault(why, {});
  if (member_ != nullptr && phase_ == Phase::relaying)
    log_limited(LogLevel::warning, "origin " + member_->label + ": " + std::string(log_word(why)) + " after " +
                                       std::to_string(response_octets_) + " octets of a response body, client reset");
  response_ = Flow::cut;
  if (request_ != Flow::ended) request_ = Flow::cut;
  if (client_ != nullptr) client_->reset(why);
}

/// The response is whole and nobody takes the rest of the request any more.
void Exchange::settle_upload() noexcept {
  held_.clear();
  if (request_ != Flow::open || client_ == nullptr) return;
  if (head_.is_connect()) {
    if (!tunnel_ && !head_.protocol.empty()) {
      request_ = Flow::ended;  // a refused handshake has no body, and its client need not say so
      client_->reset(Fault::early_response);
      return;
    }
  } else if (head_.body.is_exact() && head_.body.n - std::min(request_octets_, head_.body.n) <= kDrainUpTo &&
             !(wants_continue_ && request_octets_ == 0)) {
    request_ = Flow::draining;
    // Credit for what the origin never took, held octets among it, so that the rest can come.
    if (const std::uint64_t owed = request_octets_ - request_sent_; owed != 0) client_->consume(owed);
    return;
  }
  request_ = Flow::cut;
  client_->reset(Fault::early_response);
}

void Exchange::note_fault(Fault why, std::string_view detail) noexcept {
  if (fault_ != Fault::none || why == Fault::none) return;
  fault_ = why;
  if (!detail.empty()) detail_ = head_.fields.arena().copy(detail);
}

// ---- relays -------------------------------------------------------------------------------------------

/// `gone` must not be touched again. A relay whose source has given everything goes on without it.
void Exchange::stop_relays(const Stream* gone) noexcept {
  if (down_ != nullptr) stop_relay(down_, true, gone);
  if (up_ != nullptr) stop_relay(up_, false, gone);
}

void Exchange::stop_relay(SpliceRelay* relay, bool response, const Stream* gone) noexcept {
  if (!relay->active()) return;
  if (gone != nullptr) relay->forget(*gone);
  const bool end_held = response ? response_end_held_ : request_end_held_;
  const bool is_source = gone != nullptr && (response ? gone == origin_ : gone == client_);
  if (is_source && end_held) return;
  relay->stop();
  count_moved(*relay, response);
}

/// An origin may have answered before it stopped taking the upload, so it is heard first; a client that takes no
/// response has nothing to say.
void Exchange::on_splice_broken(SpliceRelay& relay) noexcept {
  if (&relay == down_) cut_response(Fault::client_reset);
}

// ---- time ---------------------------------------------------------------------------------------------

Instant Exchange::deadline() const noexcept {
  Duration after = generation_.stream_idle;
  if (phase_ == Phase::requested && request_ == Flow::ended && cluster_->response_timeout > Duration::zero())
    after = std::min(after, cluster_->response_timeout);
  return last_activity_ + static_cast<Instant>(after.count());
}

/// Octets of the response that left count when no more wait, or when they are as many as the slowest reader takes in the
/// time in which nothing may happen. Who opens its window octet by octet is as idle as who does not open it at all.
bool Exchange::is_activity(std::uint64_t sent) noexcept {
  response_sent_ += sent;
  trickle_ += sent;
  if (response_sent_ != response_octets_ && trickle_ < generation_.least_activity) return false;
  trickle_ = 0;
  return true;
}

void Exchange::arm() noexcept { env_.worker.arm_at(*this, deadline()); }

/// Activity does not move the timer; what it missed is seen here.
void Exchange::on_timer() noexcept {
  for (SpliceRelay* relay : {down_, up_}) {
    if (relay == nullptr || !relay->active()) continue;
    count_moved(*relay, relay == down_);
    if (relay->last_move() != kNever) last_activity_ = std::max(last_activity_, relay->last_move());
  }
  if (env_.worker.now() < deadline())
    arm();
  else
    expire();
}

void Exchange::expire() noexcept {
  if (client_ != nullptr && (phase_ == Phase::waiting || phase_ == Phase::requested)) {
    // Who is late? The client, when the origin has taken all that there was.
    const bool in_pipe = up_ != nullptr && up_->active() && up_->in_pipe() != 0;
    const bool client_late = request_ == Flow::open && request_sent_ == request_octets_ && held_.empty() && credited_ == 0 &&
                             !in_pipe;
    answer(client_late ? Fault::body_timeout : Fault::origin_timeout, {});
    arm();
    return;
  }
  note_fault(Fault::idle_timeout, {});
  stop_relays(nullptr);
  if (request_ != Flow::ended) request_ = Flow::cut;
  if (response_ != Flow::ended) response_ = Flow::cut;
  if (origin_ != nullptr) origin_->reset(Fault::idle_timeout);
  if (client_ != nullptr) client_->reset(Fault::idle_timeout);
}

// ---- the very end -------------------------------------------------------------------------------------

void Exchange::finish_if_over() noexcept {
  if (client_ != nullptr || origin_ != nullptr || over_) return;
  over_ = true;
  Timer::cancel();
  stop_relays(nullptr);
  if (phase_ != Phase::reading) {
    ++env_.counters.responses[std::min<std::size_t>(status_ / 100, 5)];
    env_.counters.count(fault_);
    if (env_.observer != nullptr) report();
  }
  env_.worker.retire(this, [](void* p) noexcept {
    auto* e = static_cast<Exchange*>(p);
    e->env_.exchanges.destroy(e);
  });
}

void Exchange::report() noexcept {
  ExchangeRecord r;
  const Instant now = env_.worker.now();
  r.wall = env_.worker.wall() - (now - started_);
  r.started = started_;
  r.request_sent = sent_at_;
  r.response = response_at_;
  r.ended = now;
  r.client = &client_address_;
  r.local = &local_address_;
  r.tls = client_tls_.on;
  r.tls_resumed = client_tls_.resumed;
  r.tls_version = client_tls_.version;
  r.cipher = client_tls_.cipher;
  r.sni = client_tls_.sni;
  r.client_subject = client_tls_.subject;
  r.client_version = head_.version;
  r.method = head_.method_name;
  r.scheme = scheme_;
  r.authority = authority_;
  r.path = head_.path;
  r.protocol = head_.protocol;
  r.user_agent = head_.fields.get(HeaderId::user_agent);
  r.referer = head_.fields.get(HeaderId::referer);
  r.status = status_;
  r.fault = fault_;
  r.generated = phase_ == Phase::answered;
  r.detail = detail_;
  r.request_octets = request_octets_;
  r.response_octets = response_octets_;
  r.tunnel = tunnel_;
  if (cluster_ != nullptr) r.cluster = cluster_->name();
  if (member_ != nullptr) r.origin = member_->label;
  if (origin_address_.valid()) {
    r.origin_address = &origin_address_;
    r.origin_version = origin_version_;
  }
  r.reused = reused_;
  r.replayed = replays_ != 0;
  env_.observer->on_exchange_done(r);
}

}  // namespace twp
