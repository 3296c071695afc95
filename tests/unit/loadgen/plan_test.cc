#include "loadgen/plan.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "loadgen/body_hash.h"
#include "loadgen/driver.h"
#include "loadgen/pacer.h"
#include "loadgen/payload.h"
#include "loadgen/units.h"

using namespace twp;
using namespace twp::load;
using namespace std::chrono_literals;

namespace {

Plan plan_for(std::string_view url) {
  Plan p;
  p.url = *config::parse_url(url);
  return p;
}

std::string error_of(Plan p) {
  const auto r = complete(p);
  return r ? "" : r.error().what;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(units)

BOOST_AUTO_TEST_CASE(durations) {
  BOOST_TEST((parse_duration("8s") == Duration(8s)));
  BOOST_TEST((parse_duration("8") == Duration(8s)));
  BOOST_TEST((parse_duration("1.5s") == Duration(1500ms)));
  BOOST_TEST((parse_duration("500ms") == Duration(500ms)));
  BOOST_TEST((parse_duration("250us") == Duration(250us)));
  BOOST_TEST((parse_duration("2m") == Duration(2min)));
  BOOST_TEST((parse_duration("1h") == Duration(1h)));
  for (const char* bad : {"", "s", "-1s", "1 s", "1d", "1e3", "1.2.3s", "nan", "inf", "99999h", "8s "})
    BOOST_TEST(!parse_duration(bad), bad);
}

BOOST_AUTO_TEST_CASE(sizes) {
  BOOST_TEST((parse_size("4096") == 4096u));
  BOOST_TEST((parse_size("64k") == 65536u));
  BOOST_TEST((parse_size("1MiB") == 1048576u));
  BOOST_TEST((parse_size("1.5K") == 1536u));
  BOOST_TEST((parse_size("2GB") == 2147483648u));
  for (const char* bad : {"", "k", "-1", "0.3", "1x", "1 k", "99999999T"}) BOOST_TEST(!parse_size(bad), bad);
}

BOOST_AUTO_TEST_CASE(slo_shares) {
  BOOST_TEST((parse_fraction("0.1%") == 0.001));
  BOOST_TEST((parse_fraction("0.001") == 0.001));
  BOOST_TEST((parse_fraction("100%") == 1.0));
  for (const char* bad : {"", "%", "101%", "1.1", "-1%", "0.1 %"}) BOOST_TEST(!parse_fraction(bad), bad);
}

BOOST_AUTO_TEST_CASE(steps) {
  BOOST_TEST((parse_steps("8,16,32,64") == std::vector<unsigned>{8, 16, 32, 64}));
  BOOST_TEST((parse_steps("1") == std::vector<unsigned>{1}));
  for (const char* bad : {"", ",", "8,", ",8", "8,,16", "0", "8,x", "2000000"}) BOOST_TEST(!parse_steps(bad), bad);
}

BOOST_AUTO_TEST_CASE(what_a_table_shows) {
  BOOST_TEST(show_us(87) == "87us");
  BOOST_TEST(show_us(1234) == "1.23ms");
  BOOST_TEST(show_us(12'345) == "12.3ms");
  BOOST_TEST(show_us(123'456) == "123ms");
  BOOST_TEST(show_us(2'500'000) == "2.50s");
  BOOST_TEST(show_count(0) == "0");
  BOOST_TEST(show_count(999) == "999");
  BOOST_TEST(show_count(1000) == "1,000");
  BOOST_TEST(show_count(1234567) == "1,234,567");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(plan)

BOOST_AUTO_TEST_CASE(client_wire_follows_the_url) {
  Plan p = plan_for("http://127.0.0.1:1/");
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(p.client == "h1c");
  p = plan_for("https://127.0.0.1:1/");
  p.http = "h1";
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(p.client == "h1");
}

BOOST_AUTO_TEST_CASE(the_version_of_http_is_settled) {
  const struct {
    const char* url;
    const char* asked;
    Workload workload;
    const char* http;
    const char* client;
  } cases[] = {
      {"http://127.0.0.1:1/", "", Workload::request, "h1", "h1c"},
      {"http://127.0.0.1:1/", "auto", Workload::request, "h1", "h1c"},
      {"http://127.0.0.1:1/", "h2", Workload::request, "h2", "h2c"},
      {"h2c://127.0.0.1:1/", "", Workload::request, "h2", "h2c"},
      {"h2c://127.0.0.1:1/", "h2", Workload::ws, "h2", "h2c"},
      {"https://127.0.0.1:1/", "h1", Workload::request, "h1", "h1"},
      {"https://127.0.0.1:1/", "h2", Workload::request, "h2", "h2"},
      {"https://127.0.0.1:1/", "", Workload::request, "auto", ""},
      {"https://127.0.0.1:1/", "", Workload::grpc, "h2", "h2"},
      {"http://127.0.0.1:1/", "", Workload::grpc, "h2", "h2c"},
  };
  for (const auto& c : cases) {
    Plan p = plan_for(c.url);
    p.http = c.asked;
    p.workload = c.workload;
    BOOST_TEST(complete(p).has_value());
    BOOST_TEST(p.http == c.http, c.url << " " << c.asked << ": " << p.http);
    BOOST_TEST(p.client == c.client);
    BOOST_TEST(p.slo.p99_us == (p.http2() ? 100'000u : 50'000u));
  }
  Plan p = plan_for("https://127.0.0.1:1/");
  p.slo.p99_us = 7;
  p.slo.p99_given = true;
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(settle_http(p, "h2").has_value());
  BOOST_TEST(p.client == "h2");
  BOOST_TEST(p.arm == "h2");
  BOOST_TEST(p.slo.p99_us == 7u);
  p = plan_for("h2c://127.0.0.1:1/");
  p.http = "h1";
  BOOST_TEST(error_of(p).find("h2c://") != std::string::npos);
  p = plan_for("http://127.0.0.1:1/");
  p.http = "h1";
  p.workload = Workload::grpc;
  BOOST_TEST(error_of(p).find("HTTP/2") != std::string::npos);
  p = plan_for("http://127.0.0.1:1/");
  p.streams = 2;
  BOOST_TEST(error_of(p).find("--streams 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(connections_and_their_lanes) {
  Plan p = plan_for("h2c://127.0.0.1:1/");
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(connections_for(p, 1, 2) == 1u);
  BOOST_TEST(connections_for(p, 16, 2) == 16u);
  BOOST_TEST(connections_for(p, 64, 2) == 16u);
  BOOST_TEST(connections_for(p, 64, 8) == 32u);
  p.streams = 10;
  BOOST_TEST(connections_for(p, 64, 8) == 7u);
  p.streams = 0;
  p.new_connection = true;
  BOOST_TEST(connections_for(p, 64, 8) == 64u);
  p = plan_for("http://127.0.0.1:1/");
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(connections_for(p, 64, 2) == 64u);
  for (const auto& [lanes, connections] : {std::pair{1u, 1u}, {64u, 16u}, {64u, 7u}, {17u, 16u}}) {
    const Spread s{lanes, connections};
    unsigned sum = 0;
    for (unsigned i = 0; i < connections; ++i) {
      sum += s.of(i);
      BOOST_TEST(s.of(i) >= 1u);
      BOOST_TEST(s.most() - s.of(i) <= 1u);
    }
    BOOST_TEST(sum == lanes);
  }
}

BOOST_AUTO_TEST_CASE(workloads_bring_their_body) {
  Plan p = plan_for("http://127.0.0.1:1/echo");
  p.workload = Workload::duplex;
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(p.method == "POST");
  BOOST_TEST(p.body_size == 1048576u);
  p = plan_for("h2c://127.0.0.1:1");
  p.workload = Workload::grpc;
  BOOST_TEST(complete(p).has_value());
  BOOST_TEST(p.method == "POST");
  BOOST_TEST(p.url.target == "/twp.Echo/Unary");
  BOOST_TEST(p.body_size == 64u);
  p.body_size = 5 * 1024 * 1024;
  BOOST_TEST(error_of(p).find("4MiB") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(contradictions_are_refused) {
  Plan p = plan_for("http://127.0.0.1:1/");
  p.rate = 10;
  p.new_connection = true;
  BOOST_TEST(error_of(p).find("--rate and --new-connection") != std::string::npos);
  p = plan_for("http://127.0.0.1:1/");
  p.body_file = "x";
  p.body_size = 1;
  BOOST_TEST(error_of(p).find("--body") != std::string::npos);
  p = plan_for("http://127.0.0.1:1/");
  p.headers = {{"Host", "a.test"}};
  BOOST_TEST(error_of(p).find("--host") != std::string::npos);
  for (const char* name : {"Transfer-Encoding", "Content-Length", "Connection", "Upgrade", "bad name", ""}) {
    p.headers = {{name, "x"}};
    BOOST_TEST(error_of(p) != "", name);
  }
  p.headers = {{"X-A", "line\r\nbreak"}};
  BOOST_TEST(error_of(p) != "");
  p.headers = {{"X-A", "fine"}};
  BOOST_TEST(error_of(p) == "");
}

BOOST_AUTO_TEST_CASE(statuses_and_watches) {
  BOOST_TEST(parse_status("2xx")->holds(204));
  BOOST_TEST(!parse_status("2xx")->holds(301));
  BOOST_TEST(parse_status("404")->holds(404));
  BOOST_TEST(!parse_status("404")->holds(403));
  BOOST_TEST(parse_status("200-299")->holds(299));
  for (const char* bad : {"", "1xx", "6xx", "99", "300-200", "200-", "x"}) BOOST_TEST(!parse_status(bad), bad);
  BOOST_TEST(parse_watch("proxy=12")->pid == 12);
  BOOST_TEST(parse_watch("proxy=12")->name == "proxy");
  for (const char* bad : {"", "proxy", "=1", "proxy=", "proxy=0", "proxy=-1", "proxy=x"}) BOOST_TEST(!parse_watch(bad), bad);
}

BOOST_AUTO_TEST_CASE(an_slo_has_two_sides) {
  const Slo slo{0.001, 50'000, true};
  BOOST_TEST(slo.met(0.001, 50'000));
  BOOST_TEST(!slo.met(0.0011, 1));
  BOOST_TEST(!slo.met(0, 50'001));
}

BOOST_AUTO_TEST_CASE(threads) {
  Plan p;
  BOOST_TEST(threads_for(p, 1, 8) == 1u);
  BOOST_TEST(threads_for(p, 64, 8) == 2u);
  BOOST_TEST(threads_for(p, 10'000, 8) == 8u);
  p.threads = 4;
  BOOST_TEST(threads_for(p, 2, 8) == 2u);
  BOOST_TEST(threads_for(p, 64, 1) == 4u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(pacer)

BOOST_AUTO_TEST_CASE(never_early_and_never_drifting) {
  const double rate = 3333.3;
  Pacer p(1'000'000'000, rate, 0.25);
  for (std::uint64_t k = 0; k < 1'000'000; ++k) {
    const double want = 1e9 + (static_cast<double>(k) + 0.25) * 1e9 / rate;
    BOOST_REQUIRE_SMALL(static_cast<double>(p.next()) - want, 2.0);
    BOOST_REQUIRE(!p.is_due(p.next() - 1));
    BOOST_REQUIRE(p.is_due(p.next()));
    p.take();
  }
}

BOOST_AUTO_TEST_CASE(threads_together_make_the_rate) {
  // 4 threads, 1000/s: over one second exactly 1000 requests, spread evenly.
  std::vector<Instant> due;
  for (unsigned i = 0; i < 4; ++i)
    for (Pacer p(0, 250, i / 4.0); p.next() < 1'000'000'000;) due.push_back(p.take());
  BOOST_TEST(due.size() == 1000u);
  std::sort(due.begin(), due.end());
  for (std::size_t i = 1; i < due.size(); ++i) BOOST_REQUIRE(due[i] - due[i - 1] <= 1'000'001);
}

BOOST_AUTO_TEST_CASE(counts_what_was_not_taken) {
  for (const double rate : {1.0, 7.0, 999.9, 123456.7}) {
    Pacer p(500, rate, 0.5);
    for (int i = 0; i < 5; ++i) p.take();
    const Instant until = p.due(17);
    BOOST_TEST(p.untaken_until(until) == 12u);
    BOOST_TEST(p.untaken_until(until + 1) == 13u);
    BOOST_TEST(p.untaken_until(p.next()) == 0u);
    BOOST_TEST(p.untaken_until(0) == 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bodies)

BOOST_AUTO_TEST_CASE(hash_does_not_depend_on_the_pieces) {
  const Payload payload = Payload::generated(100'003);
  std::string all;
  for (std::uint64_t at = 0; at < payload.size();) {
    const Slice s = payload.slice(at, payload.size() - at);
    all += s.text();
    at += s.size();
  }
  for (const std::size_t piece : {1u, 3u, 7u, 8u, 9u, 1000u, 65536u}) {
    BodyHash h;
    for (std::size_t at = 0; at < all.size(); at += piece) h.feed(std::as_bytes(std::span(all).subspan(at, std::min(piece, all.size() - at))));
    BOOST_TEST(h.value() == payload.hash());
  }
}

BOOST_AUTO_TEST_CASE(hash_sees_every_octet) {
  std::string text(64, 'a');
  const auto hash = [&] {
    BodyHash h;
    h.feed(std::as_bytes(std::span(text)));
    return h.value();
  };
  const auto right = hash();
  for (char& c : text) {
    c = 'b';
    BOOST_TEST(hash() != right);
    c = 'a';
  }
  text.push_back('\0');
  BOOST_TEST(hash() != right);
}

BOOST_AUTO_TEST_CASE(payload_matches_only_itself) {
  const Payload p = Payload::generated(3 * 1024 * 1024);
  const Slice wrap = p.slice(1024 * 1024 - 5, 100);
  BOOST_TEST(wrap.size() == 5u);  // where the pattern wraps
  BOOST_TEST(p.matches(1024 * 1024 - 5, wrap.bytes()));
  BOOST_TEST(!p.matches(1024 * 1024 - 4, wrap.bytes()));
  BOOST_TEST(!p.matches(p.size() - 2, wrap.bytes()));
}

BOOST_AUTO_TEST_SUITE_END()
