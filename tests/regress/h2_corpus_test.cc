// Real bugs of such proxies, HTTP/2 on one leg and HTTP/1 on the other: each row of the corpus that these wires can carry,
// by its number, through a real proxy between raw peers. Where a row has a mirror image, the origin does it as well.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "base/ascii.h"
#include "base/block.h"
#include "support/h2_rig.h"
#include "support/proxy_rig.h"

namespace bdata = boost::unit_test::data;
using namespace std::chrono_literals;

namespace twp::test {
namespace {

constexpr std::int64_t kNoError = 0, kProtocol = 1, kInternal = 2, kSettingsTimeout = 4, kCalm = 11;
constexpr std::uint16_t kInitialWindow = 4;
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t i = 0; (i = text.find(part, i)) != std::string_view::npos; i += part.size()) ++n;
  return n;
}
bool contains(std::string_view text, std::string_view part) { return count(text, part) != 0; }

/// A raw HTTP/2 client of the proxy; its hello and its acknowledgement of SETTINGS are sent.
class Client : public h2::FrameLog {
 public:
  explicit Client(ProxyRig& rig, std::string_view settings = {})
      : rig_(rig), peer_(rig.client(h2::hello(settings) + h2::frame(h2::settings, h2::ack, 0))) {}

  void send(std::string_view octets) { peer_.send(octets); }
  bool until(const std::function<bool()>& done, Duration limit = 5s) {
    return rig_.until([&] { return take(peer_.take()), done(); }, limit);
  }
  bool until_over() {
    return until([&] { return peer_.over(); });
  }
  bool over() const { return peer_.over(); }
  std::string_view status(std::uint32_t stream) const {
    const h2::Frame* f = find(h2::headers, stream);
    return f == nullptr ? std::string_view() : f->field(":status");
  }
  /// Whether a request on `stream` gets its 200 and "ok".
  bool is_served(std::uint32_t stream) {
    send(h2::whole_headers(stream, h2::get("/next")));
    return until([&] { return ended(stream); }) && status(stream) == "200" && body(stream) == "ok";
  }

 private:
  ProxyRig& rig_;
  RawPeer& peer_;
};

bool quiet(ProxyRig& rig) {
  return rig.until([&] { return rig.shard->counters().exchanges_active == 0; });
}

/// Makes the rig's origin one of HTTP/2 that sends `answer(stream)` when a request is complete.
class H2Origin {
 public:
  H2Origin(ProxyRig& rig, std::function<std::string(std::uint32_t stream)> answer)
      : rig_(rig), answer_(std::move(answer)) {
    rig.origin.on_input = [this](RawPeer& p, std::size_t i) { heard(p, i); };
    rig.start([](config::Config& c) { c.clusters[0].http = "h2"; });
  }
  ~H2Origin() { rig_.origin.on_input = {}; }  // the proxy says goodbye when it is destroyed
  H2Origin(const H2Origin&) = delete;
  H2Origin& operator=(const H2Origin&) = delete;

 private:
  void heard(RawPeer& p, std::size_t i) {
    auto [at, fresh] = logs_.try_emplace(i);
    h2::FrameLog& log = at->second;
    if (fresh) {
      log.reader.expect_preface();
      p.send(h2::frame(h2::settings, h2::none, 0));
    }
    for (const h2::Frame& f : log.reader.read(p.take())) {
      if (f.type == h2::settings && (f.flags & h2::ack) == 0) p.send(h2::frame(h2::settings, h2::ack, 0));
      if ((f.type == h2::headers || f.type == h2::data) && (f.flags & h2::end_stream) != 0) p.send(answer_(f.stream));
    }
  }

  ProxyRig& rig_;
  std::function<std::string(std::uint32_t)> answer_;
  std::map<std::size_t, h2::FrameLog> logs_;
};

std::string whole_answer(std::uint32_t s) {
  return h2::open_headers(s, {{":status", "200"}, {"content-length", "2"}}) + h2::frame(h2::data, h2::end_stream, s, "ok");
}
const std::string kH1Get = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

// ---- requests that must be refused ---------------------------------------------------------------------

struct Bad {
  const char* id;
  std::string frames;  // of stream 1
};
std::ostream& operator<<(std::ostream& o, const Bad& b) { return o << b.id; }

std::string with(std::initializer_list<std::pair<std::string, std::string>> more, std::string_view method = "GET") {
  return h2::whole_headers(1, h2::with(h2::get("/", method), more));
}
/// A header block in two frames.
std::string continued(const h2::Fields& first, const h2::Fields& second) {
  return h2::frame(h2::headers, h2::end_stream, 1, h2::hpack(first)) +
         h2::frame(h2::continuation, h2::end_headers, 1, h2::hpack(second));
}
const h2::Fields kNoPath{{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {"x", "1"}};

const Bad kBad[] = {
    {"A07 a name of no octets", with({{"", "x"}, {"x-keep", "1"}})},
    {"A26 a length and no body", with({{"content-length", "100"}}, "POST")},
    {"A26 a length above the body", h2::open_headers(1, h2::with(h2::get("/", "POST"), {{"content-length", "100"}})) +
                                        h2::frame(h2::data, h2::end_stream, 1, "short")},
    {"A26 a length below the body", h2::open_headers(1, h2::with(h2::get("/", "POST"), {{"content-length", "2"}})) +
                                        h2::frame(h2::data, h2::end_stream, 1, "longer")},
    {"A27 another host", with({{"host", "b.test"}})},
    {"A27 another host beside the same", with({{"host", "a.test"}, {"host", "b.test"}})},
    {"A28 transfer-encoding", with({{"transfer-encoding", "chunked"}}, "POST")},
    {"A28 connection", with({{"connection", "close"}})},
    {"A28 keep-alive", with({{"keep-alive", "timeout=5"}})},
    {"A28 proxy-connection", with({{"proxy-connection", "keep-alive"}})},
    {"A28 upgrade", with({{"upgrade", "h2c"}})},
    {"A28 te: gzip", with({{"te", "gzip"}})},
    {"A29 blanks in the method", h2::whole_headers(1, h2::get("/static", "GET /admin? HTTP/1.1"))},
    {"A29 a line end in the method", h2::whole_headers(1, h2::get("/", "GET / HTTP/1.1\r\nx: y"))},
    {"A29 blanks in the path", h2::whole_headers(1, h2::get("/static HTTP/1.1"))},
    {"A30 a pseudo field behind a field", h2::whole_headers(1, h2::with(kNoPath, {{":path", "/"}}))},
    {"A30 the same across CONTINUATION", continued(kNoPath, {{":path", "/"}})},
};

BOOST_DATA_TEST_CASE(refused_in_h2, bdata::make(kBad), row) {
  // With no connection to the origin yet, and with one that is open: then a head may have gone.
  for (const bool warm : {false, true}) {
    ProxyRig rig;
    rig.origin.answer_with({kOk});
    rig.start();
    if (warm) {
      Client first(rig);
      BOOST_REQUIRE(first.is_served(1));
      rig.origin.connections.at(0)->take();
      rig.origin.on_input = {};
    }
    Client c(rig);
    c.send(row.frames);
    BOOST_TEST(c.until([&] { return c.error(1) != -1; }));
    BOOST_TEST(c.error(1) == kProtocol);
    BOOST_TEST(c.error(0) == -1);
    BOOST_TEST(c.find(h2::headers, 1) == nullptr);
    BOOST_TEST(quiet(rig));
    run_quiet(rig.worker);
    // A request that was begun never looks whole: its connection ends.
    const std::string view = strict_view(rig.origin.got());
    BOOST_TEST((view == "nothing" || view == "cut"), view);
    if (view == "cut")
      BOOST_TEST(rig.until([&] {
        return std::ranges::any_of(rig.origin.connections, [](const auto& o) { return !o->got().empty() && o->over(); });
      }));
    for (const auto& o : rig.origin.connections) o->take();
    rig.origin.answer_with({kOk});
    BOOST_TEST(c.is_served(3));  // one stream was wrong, not the connection
    BOOST_TEST(strict_view(rig.origin.got()) == "one");
  }
}

/// The mirror image: an origin that answers so is broken, and the client hears of it before it has got anything.
BOOST_AUTO_TEST_CASE(refused_in_h2_from_an_origin) {
  const h2::Fields ok{{":status", "200"}};
  const std::pair<const char*, std::string> cases[] = {
      {"A07", h2::whole_headers(1, h2::with(ok, {{"", "x"}}))},
      {"A26", h2::whole_headers(1, h2::with(ok, {{"content-length", "100"}}))},
      {"A28 transfer-encoding", h2::whole_headers(1, h2::with(ok, {{"transfer-encoding", "chunked"}}))},
      {"A28 connection", h2::whole_headers(1, h2::with(ok, {{"connection", "close"}}))},
      {"A30", h2::whole_headers(1, {{"x", "1"}, {":status", "200"}})},
  };
  for (const auto& [what, answer] : cases) {
    BOOST_TEST_CONTEXT(what) {
      ProxyRig rig;
      const H2Origin origin(rig, [&](std::uint32_t s) { return s == 1 ? answer : whole_answer(s); });
      RawPeer& c = rig.client(kH1Get);
      BOOST_TEST(rig.until([&] { return contains(c.got(), "\r\n\r\n"); }));
      BOOST_TEST(c.take().starts_with("HTTP/1.1 502 "));
      BOOST_TEST(quiet(rig));
      c.send(kH1Get);
      BOOST_TEST(rig.until([&] { return c.got().ends_with("\r\n\r\nok"); }));
    }
  }
}

// ---- requests that pass ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a12_trailers_of_h2_stay_inside_the_chunked_message) {
  ProxyRig rig;
  const H2Origin origin(rig, [](std::uint32_t s) {
    return h2::open_headers(s, {{":status", "200"}}) + h2::frame(h2::data, 0, s, "ok") + h2::whole_headers(s, {{"x-t", "1"}});
  });
  RawPeer& c = rig.client(kH1Get + kH1Get);
  BOOST_TEST(rig.until([&] { return count(c.got(), "x-t: 1\r\n\r\n") == 2; }));
  BOOST_TEST(count(c.got(), "\r\n2\r\nok\r\n0\r\nx-t: 1\r\n\r\n") == 2u);
  BOOST_TEST(count(c.got(), "HTTP/1.1 ") == 2u);
  BOOST_TEST(count(c.got(), "x-t: 1\r\n\r\nHTTP/1.1 200 ") == 1u);  // in step
}

BOOST_AUTO_TEST_CASE(a27_one_host_and_it_is_the_authority) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  Client c(rig);
  c.send(h2::whole_headers(1, h2::with(h2::get("/"), {{"host", "a.test"}})));
  BOOST_TEST(c.until([&] { return c.ended(1); }));
  std::string seen = lower(rig.origin.got());
  BOOST_TEST(count(seen, "\r\nhost: a.test\r\n") == 1u);
  BOOST_TEST(strict_view(seen) == "one");
}

BOOST_AUTO_TEST_CASE(a28_te_trailers_is_allowed) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  Client c(rig);
  c.send(with({{"te", "trailers"}}));
  BOOST_TEST(c.until([&] { return c.ended(1); }));
  BOOST_TEST(c.status(1) == "200");
}

BOOST_AUTO_TEST_CASE(a31_cookie_crumbs_become_one_line) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  Client c(rig);
  c.send(with({{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}}));
  BOOST_TEST(c.until([&] { return c.ended(1); }));
  const std::string seen = lower(rig.origin.got());
  BOOST_TEST(count(seen, "\r\ncookie: ") == 1u);
  BOOST_TEST(contains(seen, "\r\ncookie: a=1; b=2\r\n"));
}

BOOST_AUTO_TEST_CASE(a40_empty_data_is_no_last_chunk) {
  const std::string three = h2::frame(h2::data, 0, 1) + h2::frame(h2::data, 0, 1, "abc") + h2::frame(h2::data, h2::end_stream, 1);
  for (const bool apart : {false, true}) {  // in one read, and each frame in a turn of its own
    ProxyRig rig;
    rig.origin.on_input = [](RawPeer& p, std::size_t) {
      if (p.got().ends_with("\r\n0\r\n\r\n")) p.send(kOk);
    };
    rig.start();
    Client c(rig);
    c.send(h2::open_headers(1, h2::get("/", "POST")));
    if (!apart) c.send(three);
    for (std::size_t i = 0; apart && i < three.size(); i += i == 9 ? 12 : 9) {
      c.send(std::string_view(three).substr(i, i == 9 ? 12 : 9));
      run_quiet(rig.worker);
    }
    BOOST_TEST(c.until([&] { return c.ended(1); }));
    const std::string seen = rig.origin.got();
    BOOST_TEST(strict_view(seen) == "one");
    BOOST_TEST(seen.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), seen);
  }
  ProxyRig rig;
  const H2Origin origin(rig, [&](std::uint32_t s) { return h2::open_headers(s, {{":status", "200"}}) + three; });
  RawPeer& c = rig.client(kH1Get);
  BOOST_TEST(rig.until([&] { return c.got().ends_with("0\r\n\r\n"); }));
  BOOST_TEST(c.got().ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), c.got());
}

// ---- responses that are cut ------------------------------------------------------------------------------

/// What a client sees of an origin that sends `octets` and then ends its side.
struct Cut {
  explicit Cut(const std::string& octets) {
    rig.origin.on_input = [octets](RawPeer& p, std::size_t) {
      if (!p.got().ends_with("\r\n\r\n") || p.eof()) return;
      p.send(octets);
      p.finish();
    };
    rig.start();
    client.emplace(rig);
    client->send(h2::whole_headers(1, h2::get()));
    BOOST_TEST(client->until([&] { return client->ended(1) || client->error(1) != -1; }));
  }
  ProxyRig rig;
  std::optional<Client> client;
};

BOOST_AUTO_TEST_CASE(a38_a_body_that_is_cut_short_is_never_whole) {
  for (const char* octets : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello"}) {
    Cut cut(octets);
    BOOST_TEST(!cut.client->ended(1));
    BOOST_TEST(cut.client->error(1) == kInternal);
    BOOST_TEST(cut.client->error(0) == -1);
  }
  // An HTTP/2 origin that gives its answer up, with whatever word, and an HTTP/1 client: no last chunk.
  for (const std::uint32_t code : {0u, 2u, 8u}) {
    ProxyRig rig;
    const H2Origin origin(rig, [code](std::uint32_t s) {
      return h2::open_headers(s, {{":status", "200"}}) + h2::frame(h2::data, 0, s, "hello") +
             h2::frame(h2::rst_stream, 0, s, h2::number(code, 4));
    });
    RawPeer& c = rig.client(kH1Get);
    BOOST_TEST(rig.until([&] { return c.over(); }));
    BOOST_TEST(!contains(c.got(), "\r\n0\r\n\r\n"));
  }
}

BOOST_AUTO_TEST_CASE(a39_the_end_of_the_connection_is_the_end_of_the_message) {
  Cut cut("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata");
  BOOST_TEST(cut.client->body(1) == "data");
  BOOST_TEST(cut.client->ended(1));
  BOOST_TEST(cut.client->error(1) == -1);
}

// ---- floods ----------------------------------------------------------------------------------------------

/// Sends what `make(i)` gives until the proxy has had enough; whether it had.
bool floods_out(ProxyRig& rig, Client& c, const std::function<std::string(std::uint32_t i)>& make, std::uint32_t most = 10'000) {
  for (std::uint32_t i = 0; i < most && !c.over() && c.error(0) == -1; ++i) {
    c.send(make(i));
    if (i % 10 == 0) rig.worker.turn(Duration::zero());
    c.until([] { return true; });  // reads what is here
  }
  return c.until_over() && quiet(rig);
}

/// Somebody else is served, on another connection.
void others_are_served(ProxyRig& rig) {
  rig.origin.answer_with({kOk});
  Client other(rig);
  BOOST_TEST(other.is_served(1));
}

BOOST_AUTO_TEST_CASE(a32_rapid_reset) {
  ProxyRig rig;
  rig.start();  // an origin that answers nothing
  Client c(rig);
  BOOST_TEST(floods_out(rig, c, [](std::uint32_t i) {
    const std::uint32_t stream = 2 * i + 1;
    return h2::whole_headers(stream, h2::get()) + h2::frame(h2::rst_stream, 0, stream, h2::number(8, 4));
  }));
  BOOST_TEST(c.error(0) == kCalm);
  // What was begun is cancelled as well, and it never was much.
  BOOST_TEST(rig.until([&] { return std::ranges::all_of(rig.origin.connections, [](const auto& o) { return o->got().empty() || o->over(); }); }));
  BOOST_TEST(count(rig.origin.got(), "GET ") <= 200u);
  others_are_served(rig);
}

BOOST_AUTO_TEST_CASE(a33_continuation_without_an_end) {
  const std::string field = h2::hpack({{"x", std::string(100, 'y')}});
  std::string full;
  while (full.size() < 16'000) full += field;
  for (const std::string& piece : {full, field, field.substr(0, 1), std::string()}) {
    ProxyRig rig;
    rig.origin.answer_with({kOk});
    rig.start();
    Client c(rig);
    c.send(h2::frame(h2::headers, h2::end_stream, 1, h2::hpack(h2::get())));
    BOOST_TEST(floods_out(rig, c, [&](std::uint32_t) { return h2::frame(h2::continuation, 0, 1, piece); }));
    BOOST_TEST((c.error(0) == kCalm || c.error(0) == kProtocol), c.error(0));
    BOOST_TEST(strict_view(rig.origin.got()) == "nothing");
    others_are_served(rig);
  }
  // One that takes its time runs out of it.
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start([](config::Config& c) { c.timeouts.head = 50ms; });
  Client c(rig);
  c.send(h2::frame(h2::headers, h2::end_stream, 1, h2::hpack(h2::get())));
  BOOST_TEST(c.until_over());
  BOOST_TEST(c.error(0) == kCalm);
}

BOOST_AUTO_TEST_CASE(a34_one_octet_that_stands_for_four_thousand) {
  // An entry of 3900 octets goes into the table; each octet behind it is that field again. Nothing can be answered, so that
  // whatever was decoded stays.
  const std::string entry = std::string("\x40\x06") + "cookie" + "\x7f\xbd\x1d" + std::string(3900, 'x');
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  const std::size_t before = BlockPool::local().live_blocks();
  Client c(rig, h2::setting(kInitialWindow, 0));
  BOOST_TEST(floods_out(rig, c, [&](std::uint32_t i) {
    return h2::frame(h2::headers, h2::end_headers | h2::end_stream, 2 * i + 1,
                     h2::hpack(h2::get()) + (i == 0 ? entry : std::string()) + std::string(4000, '\xbe'));
  }));
  BOOST_TEST(c.error(0) == kCalm);
  BOOST_TEST(strict_view(rig.origin.got()) == "nothing");
  BOOST_TEST((BlockPool::local().live_blocks() - before) * kBlockSize < 16u * 1024 * 1024);
  others_are_served(rig);
}

BOOST_AUTO_TEST_CASE(a34_crumbs_are_counted) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start();
  Client c(rig);
  h2::Fields many = h2::get();
  for (int i = 0; i < 1000; ++i) many.emplace_back("cookie", "");
  c.send(h2::whole_headers(1, many));
  BOOST_TEST(c.until([&] { return c.ended(1); }));
  BOOST_TEST(c.status(1) == "431");
  BOOST_TEST(strict_view(rig.origin.got()) == "nothing");
}

BOOST_AUTO_TEST_CASE(a34_a_window_that_never_opens_holds_nothing_for_ever) {
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nand so on"});
  rig.start([](config::Config& c) { c.timeouts.stream_idle = 100ms; });
  Client c(rig, h2::setting(kInitialWindow, 0));
  for (std::uint32_t stream = 1; stream < 100; stream += 2) c.send(h2::whole_headers(stream, h2::get()));
  BOOST_TEST(c.until([&] { return c.error(1) != -1 && c.error(99) != -1; }));
  BOOST_TEST(quiet(rig));
}

BOOST_AUTO_TEST_CASE(a35_a_reader_of_one_octet_at_a_time) {
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x')});
  rig.start([](config::Config& c) {
    c.timeouts.stream_idle = 150ms;
    c.limits.min_body_rate = 1'000'000;
    c.limits.h2_glitch_burst = 1'000'000;  // another guard, and not the one in question
  });
  Client c(rig, h2::setting(kInitialWindow, 0));
  c.send(h2::whole_headers(1, h2::get()));
  BOOST_REQUIRE(c.until([&] { return c.find(h2::headers, 1) != nullptr; }));
  std::size_t updates = 0;
  BOOST_TEST(c.until([&] {
    if (c.body(1).size() == updates) c.send(h2::frame(h2::window_update, 0, 1, h2::number(1, 4))), ++updates;
    return c.error(1) != -1;
  }));
  BOOST_TEST(!c.ended(1));
  BOOST_TEST(updates > 1u);
  BOOST_TEST(quiet(rig));
}

BOOST_AUTO_TEST_CASE(a35_a_slow_reader_that_reads_is_served) {
  ProxyRig rig;
  rig.origin.answer_with({"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + std::string(20'000, 'x')});
  rig.start([](config::Config& c) {
    c.timeouts.stream_idle = 150ms;
    c.limits.min_body_rate = 1000;  // 150 octets in that time
  });
  Client c(rig, h2::setting(kInitialWindow, 0));
  c.send(h2::whole_headers(1, h2::get()));
  std::size_t asked = 0;
  const Instant begin = monotonic_now();
  BOOST_TEST(c.until([&] {
    // 200 octets each 5 ms: longer than the idle time all in all.
    if (c.body(1).size() == asked && monotonic_now() > begin + asked / 200 * 5'000'000)
      c.send(h2::frame(h2::window_update, 0, 1, h2::number(200, 4))), asked += 200;
    return c.ended(1) || c.error(1) != -1;
  }, 10s));
  BOOST_TEST(monotonic_now() - begin > 300'000'000u);
  BOOST_TEST(c.body(1).size() == 20'000u);
  BOOST_TEST(c.error(1) == -1);
}

BOOST_AUTO_TEST_CASE(a36_pings_do_not_keep_an_idle_connection) {
  ProxyRig rig;
  rig.origin.answer_with({kOk});
  rig.start([](config::Config& c) { c.timeouts.keep_alive = 100ms; });
  Client c(rig);
  BOOST_REQUIRE(c.is_served(1));
  std::size_t sent = 0;
  BOOST_TEST(c.until([&] {
    // The next one when the last was answered.
    if (c.count(h2::ping) == sent && sent < 300) c.send(h2::frame(h2::ping, 0, 0, "12345678")), ++sent;
    return c.over();
  }));
  BOOST_TEST(sent > 1u);
  BOOST_TEST(c.error(0) == kNoError);
}

BOOST_AUTO_TEST_CASE(a37_a_client_that_never_acknowledges_settings) {
  HttpLimits limits;
  limits.h2_settings_timeout = 100ms;
  H2ServerRig rig(limits);
  std::size_t most = 0;
  rig.acceptor.setup = [&](Recorder& r) {
    r.on_request = [&](Recorder& s) {
      most = std::max<std::size_t>(most, s.stream->session().active());
      s.respond(200, "ok");
    };
  };
  rig.start();
  rig.play(h2::hello());
  std::uint32_t stream = 1;
  const auto ask = [&] {
    if (stream < 20'001 && !rig.owner.gone) rig.peer->send(h2::whole_headers(stream, h2::get()));
    stream += 2;
    return rig.owner.gone;
  };
  BOOST_TEST(run_until(rig.worker, ask));
  rig.settle();
  BOOST_TEST(rig.error(0) == kSettingsTimeout);
  BOOST_TEST(most <= limits.h2_max_streams);
  BOOST_TEST(rig.count(h2::settings) == 2u);  // ours and the acknowledgement of theirs
  for (const auto& s : rig.acceptor.streams) BOOST_TEST(s->gone);
}

}  // namespace
}  // namespace twp::test
