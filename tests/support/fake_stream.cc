#include "support/fake_stream.h"

#include <algorithm>
#include <utility>

namespace twp::test {

void FakeStream::begin(StreamEvents& events) noexcept {
  rearm(&events);
  active_ = true;
}

Session& FakeStream::session() const noexcept { return session_; }

void FakeStream::deliver_head(Head&& h, End end) {
  if (end == End::yes) received_ = true;
  if (active_ && reset_with == Fault::none) events().on_head(*this, std::move(h), end);
  settle();
}

void FakeStream::deliver_body(std::string_view octets, End end) {
  delivered_ += octets.size();
  if (end == End::yes) received_ = true;
  if (active_ && reset_with == Fault::none)
    events().on_body(*this, octets.empty() ? Slice() : Slice::copy_of(octets), end);
  settle();
}

void FakeStream::deliver_trailers(std::string_view name, std::string_view value) {
  received_ = true;
  HeaderBlock block;
  block.add(name, value);
  if (active_ && reset_with == Fault::none) events().on_trailers(*this, std::move(block));
  settle();
}

void FakeStream::fail(Fault why) { end_with(why); }

void FakeStream::leave(std::size_t n) {
  n = std::min(n, queued_);
  queued_ -= n;
  if (n != 0 && active_ && reset_with == Fault::none) events().on_sent(*this, n);
  settle();
}

void FakeStream::do_send_head(const Head& h, End end) {
  if (h.is_interim()) {
    interims.push_back(h.clone());
    return;
  }
  head = h.clone();
  has_head = true;
  if (end == End::yes) ended = true;
  settle();
}

void FakeStream::do_send_body(Slice b, End end) {
  body += b.text();
  queued_ += b.size();
  if (end == End::yes) ended = true;
  settle();
}

void FakeStream::do_send_trailers(const HeaderBlock& t) {
  for (const Field& f : t) trailers += std::string(f.name) + ": " + std::string(f.value) + "\n";
  ended = true;
  settle();
}

void FakeStream::do_consume(std::size_t n) noexcept { consumed_ += n; }

void FakeStream::do_reset(Fault why) {
  reset_with = why;
  session_.worker.schedule(Phase::flush, *this);
}

/// As in a codec, the end is told later, never from inside a call.
void FakeStream::settle() noexcept {
  if (active_ && received_ && ended && queued_ == 0) session_.worker.schedule(Phase::flush, *this);
}

void FakeStream::run() noexcept {
  if (reset_with != Fault::none)
    end_with(reset_with);
  else if (received_ && ended && queued_ == 0)
    end_with(Fault::none);
}

void FakeStream::end_with(Fault why) noexcept {
  if (!std::exchange(active_, false)) return;
  gone = true;
  events().on_gone(*this, why);
  session_.stream_over(*this, why);
}

Stream* FakeSession::open(StreamEvents& events) noexcept {
  if (refuse_open || capacity() == 0) return nullptr;
  FakeStream& s = next_stream();
  s.begin(events);
  return &s;
}

FakeStream& FakeSession::next_stream() { return streams.emplace_back(*this); }

unsigned FakeSession::active() const noexcept {
  return static_cast<unsigned>(std::ranges::count_if(streams, [](const FakeStream& s) { return s.active(); }));
}

unsigned FakeSession::capacity() const noexcept {
  const unsigned most = settled_ ? max_ : 1;
  return over || draining ? 0 : most - std::min(active(), most);
}

void FakeSession::set_max(unsigned max) noexcept {
  max_ = max;
  settled_ = true;
  if (owner_ != nullptr) owner_->on_capacity(*this);
}

void FakeSession::go_away() noexcept {
  draining = true;
  if (owner_ != nullptr) owner_->on_capacity(*this);
}

void FakeSession::drain() noexcept {
  draining = true;
  if (active() == 0) close(Fault::none);
}

void FakeSession::close(Fault why) noexcept {
  if (std::exchange(over, true)) return;
  for (FakeStream& s : streams) s.fail(why);
  if (owner_ != nullptr) owner_->on_session_gone(*this, why);
}

void FakeSession::stream_over(FakeStream&, Fault why) noexcept {
  if (over || owner_ == nullptr) return;
  // A broken message breaks a connection that carries one at a time.
  if (max_ == 1 && why != Fault::none)
    close(why);
  else if (draining && active() == 0)
    close(Fault::none);
  else
    owner_->on_capacity(*this);
}

FakeDial::~FakeDial() { std::erase(c_.dials, this); }

std::unique_ptr<Dial> FakeConnector::start(const DialTarget& target, SessionOwner& owner,
                                           DialHandler& handler) noexcept {
  auto dial = std::make_unique<FakeDial>(*this, target, owner, handler);
  dials.push_back(dial.get());
  ++started;
  return dial;
}

namespace {

/// What the pool owns and destroys; the session itself stays for the test to look at.
class Handle final : public Session {
 public:
  explicit Handle(FakeSession& s) noexcept : s_(s) {}
  Stream* open(StreamEvents& events) noexcept override { return s_.open(events); }
  unsigned capacity() const noexcept override { return s_.capacity(); }
  bool settled() const noexcept override { return s_.settled(); }
  unsigned active() const noexcept override { return s_.active(); }
  void drain() noexcept override { s_.drain(); }
  void close(Fault why) noexcept override { s_.close(why); }
  const PeerInfo& peer() const noexcept override { return s_.peer(); }
  HttpVersion version() const noexcept override { return s_.version(); }

 private:
  FakeSession& s_;
};

}  // namespace

FakeSession& FakeConnector::succeed(unsigned streams) { return end_dial(streams, true); }

FakeSession& FakeConnector::succeed_unsettled() { return end_dial(1, false); }

FakeSession& FakeConnector::end_dial(unsigned streams, bool settled) {
  if (dials.empty()) worker.turn(Duration::zero());  // a pool dials in the flush phase
  FakeDial& d = *dials.at(0);
  dials.erase(dials.begin());
  FakeSession& out = sessions.emplace_back(worker, &d.owner, streams);
  out.info.remote = *Address::parse("192.0.2.80", d.target.port);
  if (!settled) out.unsettle();
  d.handler.on_dialed(d, std::make_unique<Handle>(out));
  return out;
}

void FakeConnector::fail(Fault why, const std::string& detail) {
  if (dials.empty()) worker.turn(Duration::zero());
  FakeDial& d = *dials.at(0);
  dials.erase(dials.begin());
  d.handler.on_dial_failed(d, why, detail);
}

}  // namespace twp::test
