// Real bugs of such proxies, HTTP/1 on both legs: each row of the corpus that this wire can carry, by its number, through
// a real proxy with a raw origin that keeps every octet.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "support/proxy_rig.h"

namespace bdata = boost::unit_test::data;
using namespace std::string_literals;

namespace twp::test {
namespace {

using std::chrono::milliseconds;

const std::string kP = "POST / HTTP/1.1\r\nHost: a.test\r\n";
const std::string kG = "GET / HTTP/1.1\r\nHost: a.test\r\n";
const std::string kNext = "GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t i = 0; (i = text.find(part, i)) != std::string_view::npos; i += part.size()) ++n;
  return n;
}
int status_of(const RawPeer& c) { return c.got().size() < 12 ? 0 : std::atoi(c.got().c_str() + 9); }

// ---- requests that must be refused ---------------------------------------------------------------------

struct Bad {
  const char* id;
  std::string octets;
  int status = 400;
};
std::ostream& operator<<(std::ostream& o, const Bad& b) { return o << b.id; }

const std::string kChunked = kP + "Transfer-Encoding: chunked\r\n\r\n";

const Bad kBad[] = {
    {"A01 CL.TE", kP + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n21\r\nGET /x HTTP/1.1\r\nHost: b.test\r\n\r\n\r\n0\r\n\r\n"},
    {"A01 TE.CL", kP + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX"},
    {"A02", kP + "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"},
    {"A02 unknown coding", kP + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
    {"A03", kP + "Content-Length:\r\nContent-Length: 43\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: b.test\r\nX: 12\r\n\r\n"},
    {"A04", kChunked + "2;\nxx\r\n45\r\n0\r\n\r\n" + kNext},
    {"A05 plus", kChunked + "+1\r\nZ\r\n0\r\n\r\n"},
    {"A05 0x", kChunked + "0x1\r\nZ\r\n0\r\n\r\n"},
    {"A05 blank", kChunked + " 1\r\nZ\r\n0\r\n\r\n"},
    {"A05 1g", kChunked + "1g\r\nZ\r\n0\r\n\r\n"},
    {"A05 1zz", kChunked + "1zz\r\nZ\r\n0\r\n\r\n"},
    {"A05 2^64", kChunked + "10000000000000001\r\nZ\r\n0\r\n\r\n"},
    {"A06", kChunked + "5\r\nAAAAAXXX\r\n0\r\n\r\n"},
    {"A07", kG + ":\r\nX-Keep: 1\r\n\r\n"},
    {"A08 NUL in a value", kG + "X: a\0b\r\n\r\n"s},
    {"A08 NUL in Host", "GET / HTTP/1.1\r\nHost: a.test\0.b.test\r\n\r\n"s},
    {"A08 lone CR", kG + "X: a\rb\r\n\r\n"},
    {"A09", kP + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
    {"A10 blank", kP + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
    {"A10 tab", kP + "Content-Length\t: 5\r\n\r\nhello"},
    {"A11 bad syntax", kChunked + "0\r\nX T: 1\r\n\r\n"},
    {"A24 a request's head above the limit", kG + "X: " + std::string(70'000, 'x') + "\r\n\r\n", 431},
    {"A53 refused CONNECT with a hello", "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n\x16\x03\x01\x02GET /x HTTP/1.1\r\nHost: c\r\n\r\n", 405},
};

BOOST_DATA_TEST_CASE(refused, bdata::make(kBad) ^ bdata::xrange(std::size(kBad)), row, i) {
  // On a fresh connection to the origin, and on one that is open already: then the head may have gone.
  for (const bool warm : {false, true}) {
    ProxyRig rig;
    rig.origin.answer_with({kOk});
    rig.start();
    if (warm) {
      RawPeer& first = rig.client(kNext);
      BOOST_REQUIRE(rig.until([&] { return first.got().ends_with("ok"); }));
      BOOST_REQUIRE(rig.origin.connections.size() == 1u);
      rig.origin.connections[0]->take();
      rig.origin.on_input = {};  // says nothing any more
    }
    RawPeer& c = rig.client(row.octets);
    BOOST_TEST(rig.until([&] { return c.over(); }, std::chrono::seconds(1)));
    BOOST_TEST(!c.was_reset());
    BOOST_TEST(status_of(c) == row.status, c.got());
    BOOST_TEST(count(c.got(), "HTTP/1.1 ") == 1u);
    run_quiet(rig.worker);
    const std::string view = strict_view(rig.origin.got());
    BOOST_TEST((view == "nothing" || view == "cut"), view);
    // A request that was begun never looks whole: its connection ends.
    if (view == "cut") {
      const bool ended = rig.until([&] {
        return std::any_of(rig.origin.connections.begin(), rig.origin.connections.end(),
                           [](const auto& o) { return !o->got().empty() && o->over(); });
      });
      BOOST_TEST(ended, rig.origin.connections.size() << " connections, " << rig.shard->counters().dials << " dials; " << rig.origin.got());
    }
    BOOST_TEST(rig.until([&] { return rig.shard->counters().exchanges_active == 0; }));
  }
  BOOST_TEST(i < std::size(kBad));
}

// ---- requests that pass ----------------------------------------------------------------------------------

/// Sends `octets` through the proxy and waits for `answers` responses that end in "ok".
struct Passed {
  explicit Passed(const std::string& octets, std::vector<std::string> origin = {kOk}, std::size_t answers = 1) {
    rig.origin.answer_with(std::move(origin));
    rig.start();
    client = &rig.client(octets);
    BOOST_TEST(rig.until([&] { return count(client->got(), "\r\n\r\nok") + count(client->got(), "\r\nok\r\n0\r\n\r\n") >= answers; }), client->got());
    seen = rig.origin.got();
  }
  ProxyRig rig;
  RawPeer* client = nullptr;
  std::string seen;
};

BOOST_AUTO_TEST_CASE(a11_forbidden_trailers_are_dropped) {
  ProxyRig rig;
  rig.start();
  rig.origin.on_input = [](RawPeer& p, std::size_t) {
    if (p.got().ends_with("\r\n\r\n") && contains(p.got(), "\r\n0\r\n")) p.send(kOk);
  };
  RawPeer& c = rig.client(kChunked + "2\r\nhi\r\n0\r\nContent-Length: 9\r\nHost: b.test\r\nX-T: 1\r\n\r\n" + kNext);
  BOOST_TEST(rig.until([&] { return contains(c.got(), "ok"); }));
  const std::string seen = rig.origin.connections.at(0)->got();
  BOOST_TEST(contains(seen, "\r\n0\r\nX-T: 1\r\n\r\n"));
  BOOST_TEST(!contains(seen, "b.test"));
}

// RFC 9110 §7.6.1: a connection option removes the trailer of that name as well.
BOOST_AUTO_TEST_CASE(trailers_that_connection_names_do_not_pass) {
  ProxyRig rig;
  rig.start();
  rig.origin.on_input = [](RawPeer& p, std::size_t) {
    if (p.got().ends_with("\r\n\r\n") && contains(p.got(), "\r\n0\r\n"))
      p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-s, TE\r\n\r\n"
             "2\r\nok\r\n0\r\nX-S: 1\r\nX-Kept: 1\r\n\r\n");
  };
  RawPeer& c = rig.client("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: TE, x-t\r\nTE: trailers\r\n\r\n"
                          "2\r\nhi\r\n0\r\nX-T: 1\r\nX-U: 1\r\n\r\n");
  BOOST_TEST(rig.until([&] { return contains(c.got(), "\r\n0\r\n") && c.got().ends_with("\r\n\r\n"); }));
  BOOST_TEST(contains(rig.origin.connections.at(0)->got(), "\r\n0\r\nX-U: 1\r\n\r\n"));
  BOOST_TEST(contains(c.got(), "\r\n0\r\nX-Kept: 1\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(a13_the_target_decides_not_host) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start([](config::Config& c) { c.routes[0].hosts = {"b.test"}; });
  RawPeer& c = rig.client("GET http://b.test/admin HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_TEST(rig.until([&] { return c.got().ends_with("ok"); }));
  BOOST_TEST(rig.origin.got().starts_with("GET /admin HTTP/1.1\r\nHost: b.test\r\n"));
  BOOST_TEST(strict_view(rig.origin.got()) == "one");
  RawPeer& other = rig.client("GET http://a.test/admin HTTP/1.1\r\nHost: b.test\r\n\r\n");
  BOOST_TEST(rig.until([&] { return status_of(other) == 404; }));
}

BOOST_AUTO_TEST_CASE(a14_a_final_answer_instead_of_continue) {
  Passed p(kP + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nok"});
  BOOST_TEST(status_of(*p.client) == 401);
  BOOST_TEST(p.rig.until([&] { return p.client->over(); }, std::chrono::seconds(1)));
  BOOST_TEST(!p.client->was_reset());
  BOOST_TEST(p.rig.until([&] { return p.rig.shard->counters().exchanges_active == 0; }));
}

BOOST_AUTO_TEST_CASE(a15_interims_are_not_final) {
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </s>; rel=preload\r\n\r\n";
  Passed p(kG + "\r\n", {hints + hints + kOk});
  BOOST_TEST(count(p.client->got(), "HTTP/1.1 103 ") == 2u);
  BOOST_TEST(count(p.client->got(), "HTTP/1.1 200 ") == 1u);
  Passed old("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n", {hints + kOk});
  BOOST_TEST(!contains(old.client->got(), " 103 "));
}

BOOST_AUTO_TEST_CASE(a16_no_body_means_no_body) {
  for (const auto& [request, answer] : std::vector<std::pair<std::string, std::string>>{
           {"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
           {"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"},
           {kG + "\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"}}) {
    Passed p(request + kNext, {answer, kOk});
    BOOST_TEST(p.rig.origin.connections.size() == 1u);  // reused
    BOOST_TEST(count(p.client->got(), "HTTP/1.1 ") == 2u);
  }
}

BOOST_AUTO_TEST_CASE(a17_an_origin_with_two_framings) {
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", kOk});
  rig.start();
  RawPeer& c = rig.client(kG + "\r\n");
  BOOST_TEST(rig.until([&] { return status_of(c) == 502; }));
  BOOST_TEST(rig.until([&] { return rig.origin.connections.at(0)->over(); }));
  c.take();
  c.send(kNext);
  BOOST_TEST(rig.until([&] { return c.got().ends_with("ok"); }));
  BOOST_TEST(rig.origin.connections.size() == 2u);

  Passed p(kG + "\r\n" + kNext, {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", kOk}, 2);
  BOOST_TEST(count(p.client->got(), "Content-Length") == 1u);  // of the second
  BOOST_TEST(p.rig.origin.connections.size() == 2u);           // not reused
}

BOOST_AUTO_TEST_CASE(a18_chunks_never_reach_1_0) {
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"});
  rig.start();
  RawPeer& c = rig.client("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
  BOOST_TEST(rig.until([&] { return c.over(); }));
  BOOST_TEST(c.got().ends_with("\r\n\r\nhello"));
  BOOST_TEST(!contains(c.got(), "chunked"));
}

BOOST_AUTO_TEST_CASE(a19_two_requests_in_one_segment) {
  Passed p("GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n",
           {"HTTP/1.1 200 OK\r\nX-N: 1\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nX-N: 2\r\nContent-Length: 2\r\n\r\nok"}, 2);
  BOOST_TEST(p.client->got().find("X-N: 1") < p.client->got().find("X-N: 2"));
  BOOST_TEST(p.seen.find("/1 ") < p.seen.find("/2 "));
}

BOOST_AUTO_TEST_CASE(a20_the_target_passes_unchanged) {
  Passed p("GET /a%2Fb%2520c/%c3%a9?x=%7C HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_TEST(p.seen.starts_with("GET /a%2Fb%2520c/%c3%a9?x=%7C HTTP/1.1\r\n"));
}

BOOST_AUTO_TEST_CASE(a21_our_own_fields_cannot_be_listed_away) {
  Passed p(kG + "Connection: close, X-Forwarded-For, X-Forwarded-Host\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n");
  BOOST_TEST(count(p.seen, "\r\nX-Forwarded-For: 127.0.0.1\r\n") + count(p.seen, "\r\nx-forwarded-for: 127.0.0.1\r\n") == 1u);
  BOOST_TEST(!contains(p.seen, "9.9.9.9"));
  BOOST_TEST(p.rig.until([&] { return p.client->over(); }));
}

BOOST_AUTO_TEST_CASE(a22_one_date) {
  Passed p(kG + "\r\n", {"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: s\r\nContent-Length: 2\r\n\r\nok"});
  std::string lower = p.client->got();
  for (char& ch : lower) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  BOOST_TEST(count(lower, "\r\ndate:") == 1u);
  BOOST_TEST(count(lower, "\r\nserver:") == 1u);
  BOOST_TEST(contains(lower, "1970"));
  BOOST_TEST(count(lower, "\r\nvia:") == 1u);
}

BOOST_AUTO_TEST_CASE(a24_large_response_heads) {
  std::string cookies;
  for (int i = 0; i < 40; ++i) cookies += "Set-Cookie: c" + std::to_string(i) + "=" + std::string(1000, 'x') + "\r\n";
  Passed p(kG + "\r\n", {"HTTP/1.1 200 OK\r\n" + cookies + "Content-Length: 2\r\n\r\nok"});
  BOOST_TEST(contains(p.client->got(), cookies));
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\n" + cookies + cookies + cookies + cookies + "Content-Length: 2\r\n\r\nok"});
  rig.start();
  RawPeer& c = rig.client(kG + "\r\n");
  BOOST_TEST(rig.until([&] { return status_of(c) == 502; }));
}

BOOST_AUTO_TEST_CASE(a25_encoded_bodies_pass_untouched) {
  Passed p(kG + "Accept-Encoding: gzip\r\n\r\n", {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: \"x\"\r\nContent-Length: 2\r\n\r\nok"});
  BOOST_TEST(contains(p.seen, "Accept-Encoding: gzip\r\n"));
  BOOST_TEST(contains(p.client->got(), "Content-Encoding: gzip\r\nETag: \"x\"\r\nContent-Length: 2\r\n"));
}

// ---- tunnels -----------------------------------------------------------------------------------------------

const std::string kKey = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const std::string kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

BOOST_AUTO_TEST_CASE(a49_websocket_in_any_spelling) {
  ProxyRig rig;
  rig.origin.answer_with({kSwitch});
  rig.start();
  RawPeer& c = rig.client(kG + "Connection: keep-alive, uPgRade\r\nUpgrade: WebSocket\r\n" + kKey);
  BOOST_TEST(rig.until([&] { return c.got().ends_with("\r\n\r\n"); }));
  BOOST_TEST(status_of(c) == 101);
  BOOST_TEST(contains(c.got(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  BOOST_TEST(contains(rig.origin.got(), "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
  c.send("up");
  rig.origin.connections[0]->send("down");
  BOOST_TEST(rig.until([&] { return c.got().ends_with("down") && rig.origin.got().ends_with("up"); }));
}

BOOST_AUTO_TEST_CASE(a51_h2c_upgrade_is_stripped) {
  Passed p(kG + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n");
  BOOST_TEST(!contains(p.seen, "pgrade"));
  BOOST_TEST(!contains(p.seen, "AAMAAABk"));
  ProxyRig rig;  // an origin that switches all the same
  rig.origin.answer_with({"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"});
  rig.start();
  RawPeer& c = rig.client(kG + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n");
  BOOST_TEST(rig.until([&] { return status_of(c) == 502; }));
}

BOOST_AUTO_TEST_CASE(a52_a_half_closed_tunnel_goes_on) {
  ProxyRig rig;
  rig.origin.answer_with({kSwitch});
  rig.start();
  RawPeer& c = rig.client(kG + "Connection: Upgrade\r\nUpgrade: websocket\r\n" + kKey);
  BOOST_REQUIRE(rig.until([&] { return c.got().ends_with("\r\n\r\n"); }));
  RawPeer& o = *rig.origin.connections.at(0);
  rig.origin.on_input = {};
  o.take();
  o.finish();
  BOOST_REQUIRE(rig.until([&] { return c.eof(); }));
  const std::string data(1024 * 1024, 'd');
  for (std::size_t i = 0; i < data.size(); i += 8192) c.send(std::string_view(data).substr(i, 8192));
  c.finish();
  BOOST_TEST(rig.until([&] { return o.eof(); }));
  BOOST_TEST((o.got() == data));
  BOOST_TEST(rig.until([&] { return rig.shard->counters().exchanges_active == 0; }));
}

BOOST_AUTO_TEST_CASE(a53_octets_before_the_answer) {
  // A 200 is no 101: the origin has answered an ordinary GET, and what was sent ahead is not for it either (RFC 9931).
  for (const int status : {101, 403, 200}) {
    ProxyRig rig;
    rig.start();
    const std::string early = "GET /early HTTP/1.1\r\nHost: a.test\r\n\r\n";
    RawPeer& c = rig.client(kG + "Connection: Upgrade\r\nUpgrade: websocket\r\n" + kKey + early);
    BOOST_REQUIRE(rig.until([&] { return contains(rig.origin.got(), "\r\n\r\n"); }));
    run_quiet(rig.worker);
    BOOST_TEST(!contains(rig.origin.got(), "/early"));
    rig.origin.connections[0]->send(status == 101 ? kSwitch : "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: 2\r\n\r\nok");
    if (status == 101) {
      BOOST_TEST(rig.until([&] { return rig.origin.got().ends_with(early); }));
      continue;
    }
    BOOST_TEST(rig.until([&] { return c.over(); }, std::chrono::seconds(1)));
    BOOST_TEST(status_of(c) == status);
    BOOST_TEST(contains(c.got(), "\r\nConnection: close\r\n"));
    BOOST_TEST(!contains(rig.origin.got(), "/early"));
  }
}

BOOST_AUTO_TEST_CASE(a54_ipv6_literals_keep_their_brackets) {
  Passed p("GET http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n");
  BOOST_TEST(p.seen.starts_with("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n"));
}

// ---- connections, time, resources -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a68_one_replay_when_an_idle_connection_has_gone) {
  for (const bool get : {true, false}) {
    ProxyRig rig;
    rig.origin.answer_with({kOk});
    rig.start();
    RawPeer& c = rig.client(kNext);
    BOOST_REQUIRE(rig.until([&] { return c.got().ends_with("ok"); }));
    // The origin closes just as the next request arrives.
    rig.origin.on_input = [](RawPeer& p, std::size_t i) {
      if (i == 0) p.reset();
      else if (p.got().ends_with("\r\n\r\n")) p.send(kOk);
    };
    c.take();
    c.send(get ? kNext : kP + "Content-Length: 5\r\n\r\nhello");
    BOOST_TEST(rig.until([&] { return status_of(c) == (get ? 200 : 502); }), c.got());
    BOOST_TEST(rig.origin.connections.size() == (get ? 2u : 1u));
    BOOST_TEST(rig.shard->counters().replays == (get ? 1u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(a69_413_while_the_upload_runs) {
  ProxyRig rig;
  rig.start();
  rig.origin.on_input = [](RawPeer& p, std::size_t) {
    if (p.got().size() < 1024 || p.got().size() > 200'000) return;
    p.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    p.finish();
    p.pause();
  };
  RawPeer& c = rig.client(kP + "Content-Length: 104857600\r\n\r\n");
  const std::string piece(16384, 'u');
  bool done = false;
  BOOST_TEST(rig.until([&] {
    if (!done) c.send(piece);
    return done = contains(c.got(), "ok") || c.over();
  }));
  BOOST_TEST(status_of(c) == 413);
  BOOST_TEST(contains(c.got(), "\r\n\r\nok"));
  BOOST_TEST(rig.until([&] { return c.over(); }));
  BOOST_TEST(rig.until([&] { return rig.shard->counters().exchanges_active == 0; }));
}

BOOST_AUTO_TEST_CASE(a71_a_slow_client_pauses_the_origin) {
  ProxyRig rig;
  rig.start();
  std::size_t offered = 0;
  constexpr std::size_t kTotal = 64 * 1024 * 1024;
  rig.origin.on_input = [&](RawPeer& p, std::size_t) {
    p.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kTotal) + "\r\n\r\n");
    const std::string piece(1024 * 1024, 'd');
    for (; offered < kTotal; offered += piece.size()) p.send(piece);
  };
  RawPeer& c = rig.connect();
  c.pause();
  c.send(kG + "\r\n");
  BOOST_REQUIRE(rig.until([&] { return offered == kTotal; }));
  // What the proxy has taken stops growing far below the whole body.
  std::uint64_t before = 1, now = 0;
  BOOST_TEST(rig.until([&] {
    before = now;
    run_quiet(rig.worker);
    now = rig.shard->counters().response_octets;
    return before == now && now != 0;
  }));
  BOOST_TEST(now < 24u * 1024 * 1024);
  c.resume();
  BOOST_TEST(rig.until([&] { return c.got().size() > kTotal; }, std::chrono::seconds(20)));
}

BOOST_AUTO_TEST_CASE(a74_an_origin_that_cannot_be_reached) {
  ProxyRig rig;
  rig.start([](config::Config& c) { c.clusters[0].origins[0].url = "http://127.0.0.1:1"; });
  RawPeer& c = rig.client(kG + "\r\n");
  BOOST_TEST(rig.until([&] { return status_of(c) == 502; }));
  c.take();
  c.send(kNext);  // and the client's connection lives
  BOOST_TEST(rig.until([&] { return status_of(c) == 502; }));
}

BOOST_AUTO_TEST_CASE(a75_drain_loses_nothing) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  RawPeer& c = rig.client(kNext);
  BOOST_REQUIRE(rig.until([&] { return c.got().ends_with("ok"); }));
  c.take();
  bool drained = false;
  c.send(kNext);  // races with the drain
  rig.shard->drain([&] { drained = true; });
  BOOST_TEST(rig.until([&] { return c.over() && drained; }));
  BOOST_TEST(c.got().ends_with("ok"));
  BOOST_TEST(contains(c.got(), "Connection: close"));
}

}  // namespace
}  // namespace twp::test
