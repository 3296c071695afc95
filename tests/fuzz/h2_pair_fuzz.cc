// Our client session against our server session. The input chooses who does what next and how the octets between them are
// cut, and may corrupt them. Oracle: no crash, no leak; every stream ends exactly once; what is received is a beginning of
// what was sent, never more than the window; and as long as nothing was corrupted, reset or closed, everything arrives and
// is reported as sent however it came: credit that is lost would leave a stream waiting for ever.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/session_fuzz.h"
#include "h2/h2_session.h"
#include "support/session_rig.h"

namespace twp::test {
namespace {

constexpr std::size_t kMostStreams = 8;

/// One end of a stream: its recorder and what it has been told to send.
struct Side {
  explicit Side(Recorder& recorder) : r(&recorder) {}
  Recorder* r;
  std::string given;        // octets of body
  std::uint64_t left = 0;   // of an exact length
  std::uint32_t interims = 0;
  bool exact = false;
  bool refused = false;     // a tunnel: its client owes no end
  bool broken = false;      // reset by us: what the peer gets is anything

  bool may(SendState s) const { return r->stream != nullptr && r->stream->send_state() == s; }
};

class Pair {
 public:
  Pair() {
    limits_.h2_max_streams = kMostStreams;
    limits_.stream_window = 70'000;
    limits_.h2_connection_window = 100'000;
    auto [a, a_wire] = MemoryTransport::make_pair(worker_);
    auto [b, b_wire] = MemoryTransport::make_pair(worker_);
    client_wire_ = std::make_unique<RawPeer>(std::move(a_wire));
    server_wire_ = std::make_unique<RawPeer>(std::move(b_wire));
    acceptor_.setup = [this](Recorder& r) {
      r.consume = false;
      servers_.push_back(Side(r));
    };
    client_owner_.hold(make_h2_client(worker_, std::move(a), client_owner_, limits_));
    server_owner_.hold(make_h2_server(worker_, std::move(b), acceptor_, server_owner_, limits_));
    servers_.reserve(kMostStreams * 4);
  }

  void play(std::string_view script) {
    while (script.size() >= 2) {
      act(static_cast<std::uint8_t>(script[0]), static_cast<std::uint8_t>(script[1]));
      script.remove_prefix(2);
      check();
    }
    finish();
  }

 private:
  static char octet_at(std::size_t i) { return static_cast<char>('a' + i % 23); }

  Side* pick(std::vector<Side>& ends, std::uint8_t x) {
    return ends.empty() ? nullptr : &ends[x % std::min(ends.size(), kMostStreams)];
  }

  // --- what may happen ---------------------------------------------------------------------------------

  void act(std::uint8_t what, std::uint8_t x) {
    Side* const c = pick(clients_, x / 16);
    Side* const s = pick(servers_, x / 16);
    switch (what % 24) {
      case 0: open(x); break;
      case 1: if (c != nullptr) send(*c, std::size_t{x} * 16 % 4096); break;
      case 2: if (c != nullptr) send(*c, std::size_t{x} * 256); break;
      case 3: if (c != nullptr) end(*c, x); break;
      case 4: if (c != nullptr) reset(*c); break;
      case 5: if (s != nullptr) respond(*s, x); break;
      case 6: if (s != nullptr) send(*s, std::size_t{x} * 16 % 4096); break;
      case 7: if (s != nullptr) send(*s, std::size_t{x} * 256); break;
      case 8: if (s != nullptr) end(*s, x); break;
      case 9: if (s != nullptr) reset(*s); break;
      case 10: if (s != nullptr) interim(*s); break;
      case 11: if (c != nullptr) credit(*c, std::size_t{x} % 16 * 5000); break;
      case 12: if (s != nullptr) credit(*s, std::size_t{x} % 16 * 5000); break;
      case 13: move(*client_wire_, *server_wire_, x); break;
      case 14: move(*server_wire_, *client_wire_, x); break;
      case 15: move(*client_wire_, *server_wire_, ~std::size_t{0}); break;
      case 16: move(*server_wire_, *client_wire_, ~std::size_t{0}); break;
      case 17: exchange_octets(); break;
      case 18: corrupt_ = {x, true}; break;
      case 19: if (client_owner_.session() != nullptr) client_owner_.session()->drain(), disturbed_ = true; break;
      case 20: if (server_owner_.session() != nullptr) server_owner_.session()->drain(), disturbed_ = true; break;
      case 21: if (x < 8 && client_owner_.session() != nullptr) client_owner_.session()->close(Fault::shutdown), disturbed_ = true; break;
      case 22: if (x < 8 && server_owner_.session() != nullptr) server_owner_.session()->close(Fault::shutdown), disturbed_ = true; break;
      default: worker_.turn(Duration::zero());
    }
  }

  void open(std::uint8_t x) {
    if (clients_.size() >= kMostStreams) return;
    Recorder* r = opened_.open(client_owner_.session());
    if (r == nullptr) return;
    r->consume = false;
    clients_.push_back(Side(*r));
    Side& c = clients_.back();
    // The path names the request, so that the other end can be found.
    const std::string path = "/" + std::to_string(clients_.size() - 1);
    switch (x % 4) {
      case 0: r->send_head(Head::request(Method::get, "http", "a.test", path), End::yes); break;
      case 1: r->send_head(Head::request(Method::post, "http", "a.test", path, BodySize::unknown()), End::no); break;
      case 2: {
        c.exact = true;
        c.left = 1 + std::uint64_t{x} * 300;
        Head h = Head::request(Method::post, "http", "a.test", path, BodySize::exactly(c.left));
        h.fields.add("content-length", std::to_string(c.left));
        r->send_head(h, End::no);
        break;
      }
      default: {
        Head h = Head::request(Method::connect, "http", "a.test", path);
        h.protocol = "websocket";
        r->send_head(h, End::no);
      }
    }
  }

  void send(Side& e, std::size_t n) {
    if (!e.may(SendState::body)) return;
    if (e.exact) n = static_cast<std::size_t>(std::min<std::uint64_t>(n, e.left));
    if (n == 0) return;
    std::string body;
    for (std::size_t i = 0; i < n; ++i) body.push_back(octet_at(e.given.size() + i));
    e.given += body;
    e.left -= e.exact ? n : 0;
    e.r->send_body(body, e.exact && e.left == 0 ? End::yes : End::no);
  }

  void end(Side& e, std::uint8_t x) {
    if (!e.may(SendState::body)) return;
    if (e.exact && e.left != 0) return send(e, static_cast<std::size_t>(e.left));
    if (x % 2 == 0) return e.r->send_body("", End::yes);
    HeaderBlock t;
    t.add("x-t", "1");
    e.r->send_trailers(t);
  }

  void respond(Side& s, std::uint8_t x) {
    if (!s.may(SendState::head) || !s.r->head) return;
    if (s.r->head->is_connect() && x % 4 != 0) {
      Head yes = Head::response(200);
      yes.set_method(Method::connect);
      return s.r->send_head(yes, End::no);
    }
    if (x % 4 == 1) return s.r->send_head(Head::response(204), End::yes);
    if (x % 4 == 2) {
      s.exact = true;
      s.left = 1 + std::uint64_t{x} * 300;
      Head h = Head::response(200, BodySize::exactly(s.left));
      h.fields.add("content-length", std::to_string(s.left));
      return s.r->send_head(h, End::no);
    }
    s.refused = s.r->head->is_connect();
    s.r->send_head(Head::response(s.refused ? 403 : 200, BodySize::unknown()), End::no);
  }

  void interim(Side& s) {
    if (s.may(SendState::head) && s.interims++ < limits_.max_interim) s.r->send_head(Head::interim(103), End::no);
  }

  void reset(Side& e) {
    if (e.r->stream == nullptr) return;
    e.broken = disturbed_ = true;
    e.r->reset(Fault::cancelled);
  }

  static void credit(Side& e, std::size_t n) {
    n = std::min(n, e.r->unconsumed);
    if (n != 0) e.r->give_credit(n);
  }

  /// Up to `n` octets that one session has sent go on to the other.
  void move(RawPeer& from, RawPeer& to, std::size_t n) {
    run_quiet(worker_);
    std::string& waiting = &from == client_wire_.get() ? from_client_ : from_server_;
    waiting += from.take();
    std::string piece = waiting.substr(0, n);
    waiting.erase(0, piece.size());
    if (corrupt_.pending && !piece.empty()) {
      corrupt_.pending = false;
      corrupted_ = true;
      std::string& p = piece;
      const std::size_t at = corrupt_.how % p.size();
      switch (corrupt_.how % 4) {
        case 0: p[at] = static_cast<char>(p[at] ^ (1 << (corrupt_.how / 4 % 8))); break;
        case 1: p.erase(at, 1); break;
        case 2: p.insert(at, p.substr(0, 9)); break;
        default: p[at] = static_cast<char>(corrupt_.how);
      }
    }
    to.send(piece);
    if (from.over() && waiting.empty()) to.finish();
    run_quiet(worker_);
  }

  void exchange_octets() {
    for (std::uint64_t before = activity() - 1; before != activity();) {
      run_quiet(worker_);
      before = activity();
      if (!client_wire_->got().empty() || !from_client_.empty()) move(*client_wire_, *server_wire_, ~std::size_t{0});
      if (!server_wire_->got().empty() || !from_server_.empty()) move(*server_wire_, *client_wire_, ~std::size_t{0});
    }
    if (client_wire_->over()) server_wire_->finish();
    if (server_wire_->over()) client_wire_->finish();
    run_quiet(worker_);
  }

  // --- what must hold ----------------------------------------------------------------------------------

  [[noreturn]] void wrong(const char* what, const Side& e) const {
    std::fprintf(stderr, "%s; given %zu, reported %zu\n%s", what, e.given.size(), e.r->sent, e.r->transcript().c_str());
    std::abort();
  }

  Side* client_of(const Side& s) {
    if (!s.r->head) return nullptr;
    const auto i = static_cast<std::size_t>(std::atoi(std::string(s.r->head->path.substr(1)).c_str()));
    return i < clients_.size() ? &clients_[i] : nullptr;
  }

  void check_end(const Side& e) const {
    if (e.r->sent > e.given.size()) wrong("more is reported as sent than was given", e);
    // Before our SETTINGS are known the peer goes by the window of RFC 9113, which is smaller.
    if (e.r->max_unconsumed > limits_.stream_window) wrong("more than the window was delivered", e);
  }
  static bool begins(const std::string& all, const std::string& part) { return std::string_view(all).starts_with(part); }

  void check() {
    for (const Side& c : clients_) check_end(c);
    for (const Side& s : servers_) check_end(s);
    if (corrupted_) return;
    for (const Side& s : servers_) {
      Side* c = client_of(s);
      if (c == nullptr) continue;
      if (!begins(c->given, s.r->body)) wrong("the server received what was not sent", s);
      if (!begins(s.given, c->r->body)) wrong("the client received what was not sent", *c);
      if (s.r->ended && s.r->body != c->given && !c->broken) wrong("a request ended before its body did", s);
      if (c->r->ended && c->r->body != s.given && !s.broken) wrong("a response ended before its body did", *c);
    }
  }

  /// Everybody says the rest, takes everything, and lets the octets through.
  void finish() {
    for (bool again = true; again;) {
      const std::uint64_t before = activity();
      for (Side& c : clients_) end(c, 0), credit(c, ~std::size_t{0});
      for (std::size_t i = 0; i < servers_.size(); ++i) {
        Side& s = servers_[i];
        respond(s, 3);
        end(s, 1);
        credit(s, ~std::size_t{0});
      }
      exchange_octets();
      check();
      again = activity() != before;
    }
    if (!corrupted_ && !disturbed_) {
      for (const Side& c : clients_) must_be_whole(c);
      for (const Side& s : servers_) must_be_whole(s);
      if (servers_.size() != clients_.size()) std::abort();
    }
    must_end(client_owner_, opened_.streams);
    must_end(server_owner_, acceptor_.streams);
  }

  void must_be_whole(const Side& e) const {
    if (!e.r->gone) wrong("a stream waits for ever", e);
    if (e.r->fault != Fault::none && !(e.r->head && e.r->fault == Fault::early_response)) wrong("a stream failed", e);
    if (e.r->fault == Fault::none && !e.r->ended && !e.refused) wrong("a stream ended in order before its message did", e);
    if (e.r->fault == Fault::none && e.r->sent != e.given.size()) wrong("what left was not reported", e);
  }

  struct Corruption {
    std::uint8_t how = 0;
    bool pending = false;
  };

  HttpLimits limits_;
  Worker worker_;
  RecordingAcceptor acceptor_;
  OpenedStreams opened_;
  RecordingOwner client_owner_{worker_}, server_owner_{worker_};
  std::unique_ptr<RawPeer> client_wire_, server_wire_;
  std::string from_client_, from_server_;  // on their way
  std::vector<Side> clients_, servers_;
  Corruption corrupt_;
  bool corrupted_ = false;
  bool disturbed_ = false;  // somebody gave something up on purpose
};

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp;
  if (size > 200) return 0;
  set_log_level(LogLevel::error);
  test::Pair().play({reinterpret_cast<const char*>(data), size});
  return 0;
}
