// The law of every codec: decode(encode(h)) == h, for requests, interim and final responses and trailers, over generated
// heads. A codec is one row: how its two sessions are made and what its wire keeps of the spelling.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <ostream>
#include <random>
#include <string>

#include "base/ascii.h"
#include "h1/h1_session.h"
#include "h2/h2_session.h"
#include "support/h3_rig.h"
#include "support/memory_transport.h"
#include "support/recorder.h"

namespace bdata = boost::unit_test::data;

namespace twp::test {
namespace {

struct Codec {
  const char* name;
  bool keeps_spelling;       // of field names, and the reason phrase
  bool keeps_websocket_key;  // and the answer to it; other versions of HTTP have no use for them (RFC 8441 §5)
  std::unique_ptr<Session> (*client)(Worker&, std::unique_ptr<Transport>, SessionOwner&, const HttpLimits&);
  std::unique_ptr<Session> (*server)(Worker&, std::unique_ptr<Transport>, Acceptor&, SessionOwner&, const HttpLimits&);
  bool tls = false;          // plain CONNECT names no scheme: it is the connection's
};
std::ostream& operator<<(std::ostream& o, const Codec& c) { return o << c.name; }

const Codec kCodecs[] = {
    {"h1", true, true, make_h1_client,
     [](Worker& w, std::unique_ptr<Transport> t, Acceptor& a, SessionOwner& o, const HttpLimits& l) {
       return make_h1_server(w, std::move(t), a, o, l);
     }},
    {"h2", false, false, make_h2_client,
     [](Worker& w, std::unique_ptr<Transport> t, Acceptor& a, SessionOwner& o, const HttpLimits& l) {
       return make_h2_server(w, std::move(t), a, o, l);
     }},
};

/// Random canonical heads. The same seed gives the same heads everywhere.
class Heads {
 public:
  explicit Heads(std::uint32_t seed) : rng_(seed) {}

  Head request() {
    const std::uint32_t kind = draw(10);
    if (kind == 0) return Head::request(Method::connect, "http", host() + ":443", "");
    if (kind == 1) return websocket();
    static constexpr Method kMethods[] = {Method::get,    Method::head,  Method::post, Method::put,
                                          Method::delete_, Method::trace, Method::patch, Method::options};
    const Method m = kMethods[draw(8)];
    Head h = Head::request(m, "http", authority(), m == Method::options && draw(2) == 0 ? "*" : path());
    if (draw(8) == 0 && h.path != "*") {
      h.method = Method::other;
      h.method_name = h.fields.arena().copy("X" + token());
    }
    body(h, m == Method::post || m == Method::put || m == Method::patch);
    fields(h.fields);
    if (!h.body.is_none() && draw(4) == 0) h.fields.add("Cookie", "a=1; b=" + token());
    if (draw(4) == 0) h.fields.add(HeaderId::te, "trailers");
    return h;
  }

  /// `to` has been decoded.
  Head response(const Head& to) {
    if (to.is_connect()) {
      Head h = Head::response(200);
      h.set_method(Method::connect);
      h.body = BodySize::unknown();
      fields(h.fields);
      if (!to.protocol.empty()) h.fields.add(HeaderId::sec_websocket_accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
      else h.reason = "Go ahead";
      return h;
    }
    static constexpr std::uint16_t kStatus[] = {200, 201, 204, 206, 301, 304, 400, 404, 418, 500, 503, 599};
    Head h = Head::response(kStatus[draw(12)]);
    h.reason = h.fields.arena().copy(draw(2) == 0 ? "Some  reason" : token());
    if (!response_has_no_body(to.method, h.status)) body(h, true);
    else if (h.status != 204 && draw(2) == 0) h.fields.add("Content-Length", std::to_string(draw(100'000)));
    fields(h.fields);
    return h;
  }

  Head interim() {
    static constexpr std::uint16_t kStatus[] = {100, 102, 103, 199};
    Head h = Head::interim(kStatus[draw(4)]);
    h.reason = "Wait";
    fields(h.fields);
    return h;
  }

  HeaderBlock trailers() {
    HeaderBlock t;  // only what may stand there: RFC 9110 §6.5.1
    for (std::uint32_t n = draw(5); n != 0; --n) t.add("X-" + token(), value());
    t.add("grpc-status", token());
    return t;
  }

  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(rng_()) % below; }

 private:
  std::string of(std::string_view letters, std::size_t n) {
    std::string s;
    while (n-- != 0) s.push_back(letters[draw(static_cast<std::uint32_t>(letters.size()))]);
    return s;
  }
  std::string token() { return of("abcXYZ019!#$%&'*+-.^_`|~", 1 + draw(12)); }
  std::string host() { return draw(4) == 0 ? "[2001:db8::" + of("123", 1) + "]" : of("abcdefgh", 1 + draw(8)) + ".test"; }
  std::string authority() { return host() + (draw(2) == 0 ? "" : ":" + std::to_string(1 + draw(65535))); }
  std::string path() { return "/" + of("abc/%20.;=&?:@[]{}|\\^\"<>~'()*\xc3\xa9", draw(60)); }
  std::string value() {
    std::string v;
    for (std::size_t n = draw(draw(20) == 0 ? 3000 : 40); n != 0; --n) {
      const char c = static_cast<char>(draw(256));
      v.push_back(is_value_char(c) ? c : 'v');
    }
    return std::string(trim_ows(v));
  }
  void fields(HeaderBlock& f) {
    static constexpr std::string_view kNames[] = {"Accept", "ETag", "Vary", "Server", "X-Request-Id", "Link", "Origin", "User-Agent", "Location"};
    for (std::uint32_t n = draw(12); n != 0; --n) {
      if (draw(3) == 0) f.add(kNames[draw(9)], value());
      else f.add("X-" + token(), value());
    }
  }
  void body(Head& h, bool must_say) {
    switch (draw(must_say ? 2 : 3)) {
      case 0: h.body = BodySize::unknown(); break;
      case 1:
        h.body = BodySize::exactly(draw(2000));
        h.fields.add(draw(2) == 0 ? "Content-Length" : "content-length", std::to_string(h.body.n));
        break;
      default: break;
    }
  }
  Head websocket() {
    Head h = Head::request(Method::connect, "http", authority(), path());
    h.protocol = "websocket";
    fields(h.fields);
    h.fields.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    h.fields.add("Sec-WebSocket-Version", "13");
    return h;
  }

  std::minstd_rand rng_;
};

/// A head as it must arrive. A tunnel's body has no size on any wire.
std::string text(const Head& h, const Codec& codec) {
  Head copy = h.clone();
  if (copy.is_connect() && !copy.is_interim()) copy.body = BodySize::unknown();
  if (copy.is_connect() && copy.protocol.empty() && codec.tls) copy.scheme = "https";
  if (!codec.keeps_websocket_key) {
    copy.fields.remove(HeaderId::sec_websocket_key);
    copy.fields.remove(HeaderId::sec_websocket_accept);
  }
  return describe(copy, codec.keeps_spelling);
}

/// Two sessions that talk to each other, and what lets everything happen that happens by itself.
struct Ends {
  Session* client;
  RecordingAcceptor& acceptor;
  std::function<void()> quiet;
};

/// One exchange of generated messages.
void exchange(const Codec& codec, Heads& heads, Ends& ends) {
  Recorder c;
  c.stream = ends.client->open(c);
  BOOST_REQUIRE(c.stream != nullptr);
  const std::size_t before = ends.acceptor.streams.size();
  const Head request = heads.request();
  const bool tunnel = request.is_connect();
  const HeaderBlock trailers = heads.trailers();
  const auto send_rest = [&](Recorder& r, BodySize size, bool with_trailers) {
    if (size.is_exact() && size.n != 0) r.send_body(std::string(size.n, 'x'), End::yes);
    if (!size.is_unknown()) return;
    r.send_body("some", End::no);
    if (with_trailers) r.send_trailers(trailers);
    else r.send_body("", End::yes);
  };
  const auto end_of = [](BodySize size) { return size.is_none() || (size.is_exact() && size.n == 0) ? End::yes : End::no; };
  c.send_head(request, tunnel ? End::no : end_of(request.body));
  if (!tunnel) send_rest(c, request.body, true);
  ends.quiet();
  BOOST_REQUIRE(ends.acceptor.streams.size() == before + 1);
  Recorder& s = *ends.acceptor.streams.back();
  BOOST_REQUIRE(s.head.has_value());
  BOOST_TEST(text(*s.head, codec) == text(request, codec));
  if (!tunnel && request.body.is_unknown()) {
    BOOST_REQUIRE(s.trailers.has_value());
    BOOST_TEST(describe(*s.trailers, codec.keeps_spelling) == describe(trailers, codec.keeps_spelling));
  }

  std::string interims;
  for (std::uint32_t n = heads.draw(3); n != 0; --n) {
    const Head h = heads.interim();
    interims += text(h, codec);
    s.send_head(h, End::no);
  }
  const Head response = heads.response(*s.head);
  const bool no_body = !tunnel && response_has_no_body(request.method, response.status);
  s.send_head(response, no_body ? End::yes : tunnel ? End::no : end_of(response.body));
  if (!no_body && !tunnel) send_rest(s, response.body, heads.draw(2) == 0);
  ends.quiet();
  std::string seen;
  for (const Head& h : c.interims) seen += text(h, codec);
  BOOST_TEST(seen == interims);
  BOOST_REQUIRE(c.head.has_value());
  Head want = response.clone();
  want.method = request.method;  // of a response: that of the request
  Head got = c.head->clone();
  BOOST_TEST(text(got, codec) == text(want, codec));
  if (tunnel) {
    s.send_body("", End::yes);
    c.send_body("", End::yes);
    ends.quiet();
  }
  BOOST_TEST(log_word(c.fault) == "ok");
  BOOST_TEST(log_word(s.fault) == "ok");
  BOOST_REQUIRE(c.gone);
  BOOST_REQUIRE(s.gone);
}

/// Exchanges over one pair of sessions.
void check(const Codec& codec, std::uint32_t seed) {
  Heads heads(seed);
  Worker worker;
  const HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner client_owner(worker), server_owner(worker);
  auto [a, b] = MemoryTransport::make_pair(worker);
  if (seed % 4 == 0) a->set_chop(random_pieces(seed));
  if (seed % 4 == 0) b->set_chop(random_pieces(seed + 1));
  Session* client = client_owner.hold(codec.client(worker, std::move(a), client_owner, limits));
  server_owner.hold(codec.server(worker, std::move(b), acceptor, server_owner, limits));
  Ends ends{client, acceptor, [&] { run_quiet(worker); }};
  for (int i = 0; i < 3 && !client_owner.gone; ++i) exchange(codec, heads, ends);
}

BOOST_DATA_TEST_CASE(decode_of_encode_is_the_same, bdata::make(kCodecs), codec) {
  for (std::uint32_t seed = 1; seed <= 1500; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) check(codec, seed);
  }
}

/// The same law over QUIC, where the tables of the field compression live through many exchanges.
BOOST_AUTO_TEST_CASE(decode_of_encode_is_the_same_over_h3) {
  static const Codec codec{"h3", false, false, nullptr, nullptr, true};
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Heads heads(seed);
      H3PairRig rig({}, seed);
      BOOST_REQUIRE(rig.open_up());
      Ends ends{rig.client, rig.acceptor, [&] { rig.world.pass(std::chrono::milliseconds(60)); }};
      for (int i = 0; i < 40; ++i) exchange(codec, heads, ends);
    }
  }
}

}  // namespace
}  // namespace twp::test
