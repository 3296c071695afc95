#include "config/load.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>

#include <unistd.h>

#include "config/save.h"
#include "config/value.h"

using namespace twp;
using namespace twp::config;
using namespace std::chrono_literals;

namespace {

// What a valid file needs at least; rows add to it. It has no line break at its end, so that rows begin on line 9.
const std::string kBase = R"([[listener]]
url = "http://127.0.0.1:0"
[[cluster]]
name = "a"
origin = [{url = "http://127.0.0.1:1"}]
[[route]]
cluster = "a"
)";

struct Row {
  std::string toml;
  std::vector<std::string> errors;  // without "f:"
};

Row after_base(std::string toml, std::vector<std::string> errors) { return {kBase + std::move(toml), std::move(errors)}; }

const std::vector<Row> kRows = {
      // Not TOML at all.
      {"workers = \n", {"1:11: not TOML: Error while parsing key-value pair: expected value, saw '\\n'"}},
      // toml++ asserts that these do not happen.
      {"[,\n", {"1:2: not TOML: Error while parsing key: expected bare key starting character or string delimiter, saw ','"}},
      {"[[,\n", {"1:3: not TOML: Error while parsing key: expected bare key starting character or string delimiter, saw ','"}},
      // Unknown keys, with a guess.
      {"worker = 2\n" + kBase, {"1:1: worker: unknown key, did you mean 'workers'?"}},
      {"zzz = 2\n" + kBase, {"1:1: zzz: unknown key"}},
      after_base("[limits]\nmax_heat = 1\n", {"9:1: limits.max_heat: unknown key, did you mean 'max_head'?"}),
      after_base("[limit]\n", {"8:2: limit: unknown key, did you mean 'limits'?"}),
      after_base("[[route]]\ncluster = 'a'\nheader = [{nam = 'x'}]\n",
                 {"10:11: route[1].header[0].name: is missing (expected a string)",
                  "10:12: route[1].header[0].nam: unknown key, did you mean 'name'?"}),
      // Wrong types.
      {"workers = '2'\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found the string '2'"}},
      {"workers = 1.5\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found a fraction"}},
      {"workers = true\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found true"}},
      {"workers = []\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found a list"}},
      {"admin = 1\n" + kBase, {"1:9: admin: expected a string, found the number 1"}},
      {"admin = {}\n" + kBase, {"1:9: admin: expected a string, found a table"}},
      {"admin = 1979-05-27\n" + kBase, {"1:9: admin: expected a string, found a date or time"}},
      {"limits = 1\n" + kBase, {"1:10: limits: expected a table [limits]"}},
      {"log_level = 'loud'\n" + kBase, {"1:13: log_level: expected one of error, warning, info, debug, found 'loud'"}},
      after_base("[forwarding]\ntrusted = [1]\n", {"9:11: forwarding.trusted: expected a list of strings, element 1 is no string"}),
      after_base("[forwarding]\ndetect_loops = 1\n", {"9:16: forwarding.detect_loops: expected true or false, found the number 1"}),
      after_base("[forwarding]\nstyle = 'xff'\n",
                 {"9:9: forwarding.style: expected one of none, x-forwarded, forwarded, both, found 'xff'"}),
      {"listener = {url = 'http://127.0.0.1:0'}\n", {"1:12: listener: expected a list of tables [[listener]]"}},
      {"listener = ['x']\n", {"1:13: listener[0]: expected a list of tables [[listener]]"}},
      {"[[cluster]]\nname = 'a'\norigin = ['http://x']\n",
       {"3:11: cluster[0].origin[0]: expected a list of tables [[cluster.origin]]"}},
      {"[[listener]]\n", {"1:1: listener[0].url: is missing (expected a string)"}},
      // Out of range.
      {"workers = 1025\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found 1025"}},
      {"workers = -1\n" + kBase, {"1:11: workers: expected an integer from 0 to 1024, found -1"}},
      after_base("[timeouts]\nhead = 5\n",
                 {"9:8: timeouts.head: expected a duration from 1ms to 1h such as \"5s\", found 5 (which needs a unit)"}),
      after_base("[timeouts]\nhead = '2h'\nkeep_alive = '1m30s'\n",
                 {"9:8: timeouts.head: expected a duration from 1ms to 1h such as \"5s\", found '2h'",
                  "10:14: timeouts.keep_alive: expected a duration from 1ms to 24h such as \"5s\", found '1m30s'"}),
      after_base("[limits]\nmax_head = '64KB'\nmax_body = '99999999TiB'\n",
                 {"9:12: limits.max_head: expected a size from 256 to 16MiB such as \"64KiB\", found '64KB'",
                  "10:12: limits.max_body: expected a size from 0 to 1024TiB such as \"64KiB\", found '99999999TiB'"}),
      after_base("[limits]\nmax_head = 255\n",
                 {"9:12: limits.max_head: expected a size from 256 to 16MiB such as \"64KiB\", found 255"}),
      // Values that do not fit together.
      {"", {"1:1: no [[listener]]: nothing would be served", "1:1: no [[cluster]]: there is nowhere to forward to"}},
      after_base("[limits]\nmax_head = '8KiB'\n",
                 {"9:12: limits.max_head: is smaller than limits.max_target (16384), which is a part of it"}),
      {"admin = 'http://0.0.0.0:1'\n" + kBase,
       {"1:9: admin: 'http://0.0.0.0:1': the admin listener must be on a loopback address (127.0.0.1 or [::1])"}},
      {"admin = 'https://127.0.0.1:1'\n" + kBase, {"1:9: admin: 'https://127.0.0.1:1': expected http://127.0.0.1:PORT"}},
      {"key_log = '/nonexistent/x'\n" + kBase,
       {"1:11: key_log: '/nonexistent/x': cannot write into '/nonexistent': No such file or directory"}},
      after_base("[forwarding]\nvia = 'a b'\n",
                 {"9:7: forwarding.via: 'a b': expected a word of letters, digits and -._ (RFC 9110 §7.6.3)"}),
      after_base("[forwarding]\nvia = ''\n",
                 {"9:7: forwarding.via: loops are detected by Via: set a name or detect_loops = false"}),
      after_base("[forwarding]\ntrusted = ['10.0.0.0/33', '::1']\n",
                 {"9:11: forwarding.trusted: '10.0.0.0/33': prefix length must be 0 to 32"}),
      after_base("[dns]\nservers = '127.0.0.1, x'\n",
                 {"9:11: dns.servers: 'x' is not an IP address with an optional port (expected e.g. 127.0.0.1:53)"}),
      after_base("[tcp]\ncongestion = 'a b'\n",
                 {"9:14: tcp.congestion: 'a b' is not the name of a congestion control such as reno"}),
      after_base("[[listener]]\nurl = 'http://127.0.0.1:80'\n[[listener]]\nurl = 'http://localhost'\n",
                 {"11:7: listener[2].url: another listener has 127.0.0.1:80 already"}),
      after_base("[[listener]]\nurl = 'ftp://x'\n",
                 {"9:7: listener[1].url: 'ftp://x': unknown scheme 'ftp' (expected http, https, h2c or h3)"}),
      after_base("[[listener]]\nurl = 'http://127.0.0.1:0'\nhttp1 = false\nhttp2 = false\n",
                 {"11:9: listener[1].http2: http1 and http2 are both false: the listener would speak nothing"}),
      after_base("[[listener]]\nurl = 'https://127.0.0.1:0'\n",
                 {"8:1: listener[1].tls: an https listener needs a certificate: tls.cert and tls.key, or tls.ca"}),
      after_base("[[listener]]\nurl = 'http://127.0.0.1:0'\ntls = {}\n",
                 {"10:7: listener[1].tls: TLS settings on a listener without TLS (expected an https URL)"}),
      after_base("[[listener]]\nurl = 'https://127.0.0.1:0'\ntls.cert = '/nonexistent'\n",
                 {"10:1: listener[1].tls.key: expected one key for each certificate: 1 cert, 0 key",
                  "10:12: listener[1].tls.cert: '/nonexistent': cannot read: No such file or directory"}),
      after_base("[[listener]]\nurl = 'https://127.0.0.1:0'\ntls.ca = '/nonexistent'\n",
                 {"10:10: listener[1].tls.ca: '/nonexistent/ca.pem': cannot read: No such file or directory"}),
      after_base("[[cluster]]\nname = 'a'\norigin = [{url = 'http://x:1'}]\n",
                 {"9:8: cluster[1].name: another cluster is called 'a' already"}),
      after_base("[[cluster]]\nname = 'b'\n", {"8:1: cluster[1]: no [[cluster.origin]]: the cluster is empty"}),
      after_base("[[cluster]]\nname = 'b'\norigin = [{url = 'http://x:1', weight = 0}]\n",
                 {"8:1: cluster[1]: every origin has weight 0: none would get a request"}),
      after_base("[[cluster]]\nname = 'b'\norigin = [{url = 'http://x'}, {url = 'http://X:80/'}]\n",
                 {"10:38: cluster[1].origin[1].url: the cluster has http://x:80 already (use weight)"}),
      after_base("[[cluster]]\nname = 'b'\norigin = [{url = 'http://x/p'}]\n",
                 {"10:18: cluster[1].origin[0].url: 'http://x/p': an origin has no path: the request's own is sent"}),
      after_base("[[cluster]]\nname = 'b'\ncert = '/dev/null'\nsource = 'x'\nsni = '127.0.0.1'\nca = '/'\norigin = [{url = 'http://x:1'}]\n",
                 {"10:8: cluster[1].cert: a client certificate needs its key", "11:10: cluster[1].source: 'x' is not an IP address",
                  "12:7: cluster[1].sni: an IP address is never sent as SNI (RFC 6066 §3)", "13:6: cluster[1].ca: '/': is a directory"}),
      after_base("[[route]]\ncluster = 'b'\n", {"9:11: route[1].cluster: there is no cluster 'b'"}),
      after_base("[[route]]\ncluster = 'a'\nhosts = ['a.test', '*', '*.*.x', 'a:80', '[::1]', '*.b.test']\n",
                 {"10:9: route[1].hosts: '*': expected a host name without port, or *.NAME",
                  "10:9: route[1].hosts: '*.*.x': expected a host name without port, or *.NAME",
                  "10:9: route[1].hosts: 'a:80': expected a host name without port, or *.NAME"}),
      after_base("[[route]]\ncluster = 'a'\npath_exact = '/a'\npath_prefix = '/b'\n",
                 {"11:15: route[1].path_prefix: expected either path_exact or path_prefix"}),
      after_base("[[route]]\ncluster = 'a'\npath_prefix = 'b'\n",
                 {"10:15: route[1].path_prefix: 'b': expected a path that begins with '/', without '?'"}),
      after_base("[[route]]\ncluster = 'a'\nmethods = ['G T']\nheader = [{name = 'a:'}, {name = 'Host'}, {name = 'x', value = \"a\\nb\"}]\n",
                 {"10:11: route[1].methods: 'G T' is not a method", "11:19: route[1].header[0].name: 'a:' is not a field name",
                  "11:34: route[1].header[1].name: match the host with hosts",
                  "11:64: route[1].header[2].value: is not a field value (no control characters, no blanks around it)"}),
};

Config everything() {
  Config c = load_text(kBase, "f").config;
  c.workers = 7;
  c.admin = "http://[::1]:9";
  c.log_level = "debug";
  c.forwarding = {ForwardedStyle::both, {"10.0.0.0/8", "::1"}, "edge-1", false};
  c.timeouts = {1ms, 2s, 90s, 25min, 0s};
  c.limits.max_target = 100;
  c.limits.max_head = 1000;
  c.limits.max_body = std::uint64_t{5} << 40;
  c.limits.min_body_rate = 0;
  c.tcp = {"reno", 1};
  c.dns = {"127.0.0.1:5353,[::1]:53", 1500ms, 9};
  c.listeners.back().http2 = false;
  c.listeners.push_back({"https://127.0.0.1:0", Tls{}});
  c.listeners.back().tls->cert = {"/dev/null", "/dev/zero"};
  c.listeners.back().tls->key = {"/dev/null", "/dev/zero"};
  c.listeners.back().tls->client_ca = "/dev/null";
  c.listeners.back().tls->min_version = "1.3";
  c.listeners.back().http1 = false;
  c.clusters.push_back({});
  Cluster& k = c.clusters.back();
  k.name = "quote\" back\\slash \x01 \xc3\xa9";
  k.balance = Balance::least_of_two;
  k.http = "auto";
  k.origins = {{"https://x.test", 3}, {"http://[::1]:8080", 0}, {"h2c://y.test", 1}};
  k.response_timeout = 123456789ns;
  Route r;
  r.hosts = {"*.a.test", "b.test"};
  r.path_prefix = "/caf\xc3\xa9\"";
  r.methods = {"GET", "M-SEARCH"};
  r.headers = {{"x-a", "a\tb \"q\""}, {"x-b", std::nullopt}, {"x-c", ""}};
  r.cluster = k.name;
  r.preserve_host = false;
  c.routes.push_back(r);
  return c;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(load)

BOOST_AUTO_TEST_CASE(the_least_file) {
  const Loaded l = load_text(kBase, "f");
  BOOST_TEST(l.errors == std::vector<std::string>{}, boost::test_tools::per_element());
  Config c;
  c.listeners.push_back({"http://127.0.0.1:0", std::nullopt});
  c.clusters.push_back({});
  c.clusters[0].name = "a";
  c.clusters[0].origins.push_back({"http://127.0.0.1:1", 1});
  c.routes.push_back({});
  c.routes[0].cluster = "a";
  BOOST_TEST((l.config == c));
}

BOOST_AUTO_TEST_CASE(bad_input) {
  for (const Row& row : kRows) {
    std::vector<std::string> expected;
    for (const std::string& e : row.errors) expected.push_back("f:" + e);
    BOOST_TEST_CONTEXT(row.toml)
    BOOST_TEST(load_text(row.toml, "f").errors == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(round_trip) {
  const Config c = everything();
  const Loaded again = load_text(save(c), "f");
  BOOST_TEST(again.errors == std::vector<std::string>{}, boost::test_tools::per_element());
  BOOST_TEST((again.config == c));
  BOOST_TEST(save(again.config) == save(c));
}

BOOST_AUTO_TEST_CASE(files) {
  BOOST_TEST(load_file("/nonexistent.toml").errors ==
                 std::vector<std::string>{"/nonexistent.toml: cannot read: No such file or directory"},
             boost::test_tools::per_element());
  const std::string name = "/tmp/twp_config_load_test." + std::to_string(::getpid());
  std::ofstream(name) << "x = 1\n" << kBase;
  BOOST_TEST(load_file(name).errors == std::vector<std::string>{name + ":1:1: x: unknown key"}, boost::test_tools::per_element());
  std::remove(name.c_str());
}

// Text cut anywhere never crashes and never passes with half a file.
BOOST_AUTO_TEST_CASE(cut_at_every_octet) {
  const std::string text = save(everything());
  for (std::size_t n = 0; n < text.size(); n += 7) load_text(text.substr(0, n), "f");
  BOOST_TEST(!load_text(text.substr(0, text.size() / 2), "f").ok());
}

BOOST_AUTO_TEST_CASE(overrides) {
  Config c = everything();
  BOOST_TEST(set(c, "limits.max_head=128KiB") == "");
  BOOST_TEST(c.limits.max_head == 128 * 1024);
  BOOST_TEST(set(c, " timeouts.drain = 250ms ") == "");
  BOOST_TEST((c.timeouts.drain == 250ms));
  BOOST_TEST(set(c, "forwarding.trusted=10.0.0.0/8, ::1,") == "");
  BOOST_TEST(c.forwarding.trusted.size() == 2);
  BOOST_TEST(set(c, "forwarding.trusted=") == "");
  BOOST_TEST(c.forwarding.trusted.empty());
  BOOST_TEST(set(c, "forwarding.detect_loops=true") == "");
  BOOST_TEST(c.forwarding.detect_loops);
  BOOST_TEST(set(c, "cluster.max_idle=3") == "");
  BOOST_TEST(c.clusters[0].max_idle == 3);
  BOOST_TEST(c.clusters[1].max_idle == 3);
  BOOST_TEST(set(c, "cluster.balance=random") == "");
  BOOST_TEST((c.clusters[1].balance == Balance::random));
  BOOST_TEST(set(c, "listener.tls.min_version=1.2") == "");
  BOOST_TEST(c.listeners[1].tls->min_version == "1.2");
  BOOST_TEST(!c.listeners[0].tls.has_value());

  BOOST_TEST(set(c, "x") == "'x': expected KEY=VALUE such as limits.max_head=128KiB");
  BOOST_TEST(set(c, "limits.max_heat=1") == "limits.max_heat: unknown key, did you mean 'limits.max_head'?");
  BOOST_TEST(set(c, "limits=1").starts_with("limits: unknown key"));
  BOOST_TEST(set(c, "limits.max_head.x=1").starts_with("limits.max_head.x: unknown key"));
  BOOST_TEST(set(c, "workers=-1") == "workers: expected an integer from 0 to 1024, found '-1'");
  BOOST_TEST(set(c, "forwarding.detect_loops=1") == "forwarding.detect_loops: expected true or false, found '1'");
  c.listeners.pop_back();
  BOOST_TEST(set(c, "listener.tls.min_version=1.3") == "listener.tls.min_version: there is nothing to set it on");
}

BOOST_AUTO_TEST_CASE(units) {
  BOOST_TEST((parse_duration("250us") == 250us));
  BOOST_TEST((parse_duration("1d") == 24h));
  BOOST_TEST((parse_duration("0s") == 0s));
  for (const char* bad : {"", "s", "5", "-1s", "1.5s", "1 s", "5S", "1m30s", "300000d", "99999999999999999999s"})
    BOOST_TEST(!parse_duration(bad).has_value(), bad);
  BOOST_TEST((parse_size("64KiB") == 65536U));
  BOOST_TEST((parse_size("512B") == 512U));
  BOOST_TEST((parse_size("0") == 0U));
  for (const char* bad : {"", "KiB", "-1", "64kib", "64KB", "64K", "9223372036854775808", "8388608TiB"})
    BOOST_TEST(!parse_size(bad).has_value(), bad);
  BOOST_TEST(format_duration(90s) == "90s");
  BOOST_TEST(format_duration(120s) == "2m");
  BOOST_TEST(format_duration(48h) == "48h");
  BOOST_TEST(format_duration(1500us) == "1500us");
  BOOST_TEST(format_size(1536) == "1536");
  BOOST_TEST(format_size(65536) == "64KiB");
  BOOST_TEST(format_size(0) == "0");
}

BOOST_AUTO_TEST_SUITE_END()
