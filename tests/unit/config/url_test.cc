#include "config/url.h"

#include <boost/test/unit_test.hpp>

using namespace twp;
using namespace twp::config;

BOOST_AUTO_TEST_SUITE(url)

BOOST_AUTO_TEST_CASE(takes_apart_every_part) {
  const auto u = parse_url("HTTPS://Origin.Test:8443/a%20b?x=1");
  BOOST_REQUIRE(u.has_value());
  BOOST_TEST((u->scheme == Scheme::https));
  BOOST_TEST(u->host == "origin.test");
  BOOST_TEST(u->port == 8443);
  BOOST_TEST(u->target == "/a%20b?x=1");
  BOOST_TEST(u->authority() == "origin.test:8443");
  BOOST_TEST(u->text() == "https://origin.test:8443");
}

BOOST_AUTO_TEST_CASE(defaults) {
  BOOST_TEST(parse_url("http://a.test")->port == 80);
  BOOST_TEST(parse_url("h2c://a.test")->port == 80);
  BOOST_TEST(parse_url("https://a.test")->port == 443);
  BOOST_TEST(parse_url("h3://a.test/")->port == 443);
  BOOST_TEST(parse_url("http://a.test")->target == "/");
  BOOST_TEST(parse_url("http://a.test?q")->target == "/?q");
  BOOST_TEST(parse_url("http://a.test:80")->authority() == "a.test");
  BOOST_TEST(parse_url("https://[::1]:80/")->authority() == "[::1]:80");
  BOOST_TEST(parse_url("http://[::1]")->host == "::1");
}

BOOST_AUTO_TEST_CASE(listen) {
  const auto u = parse_listen_url("http://127.0.0.1:0");
  BOOST_REQUIRE(u.has_value());
  BOOST_TEST(u->port == 0);
  BOOST_TEST(listen_address(*parse_listen_url("http://localhost:7")).text() == "127.0.0.1:7");
  BOOST_TEST(listen_address(*parse_listen_url("https://[::]:7")).text() == "[::]:7");
}

struct Bad {
  Result<Url> (*parse)(std::string_view);
  const char* text;
  const char* message;
};
std::ostream& operator<<(std::ostream& o, const Bad& b) { return o << b.text; }

const Bad kBad[] = {
    {parse_url, "", "'': expected a URL such as http://127.0.0.1:8080"},
    {parse_url, "127.0.0.1:80", "'127.0.0.1:80': expected a URL such as http://127.0.0.1:8080"},
    {parse_url, "ftp://a", "'ftp://a': unknown scheme 'ftp' (expected http, https, h2c or h3)"},
    {parse_url, "http://", "'http://': a host is missing"},
    {parse_url, "http:///x", "'http:///x': a host is missing"},
    {parse_url, "http://a:", "'http://a:': a port is missing after ':'"},
    {parse_url, "http://a:0", "'http://a:0': port must be 1 to 65535"},
    {parse_url, "http://a:65536", "'http://a:65536': 'a:65536': port must be 0 to 65535"},
    {parse_url, "http://u:p@a/", "'http://u:p@a/': user and password do not belong into this URL"},
    {parse_url, "http://127.0.0.300/", "'http://127.0.0.300/': '127.0.0.300' is not an IPv4 address"},
    {parse_url, "http://a/#x", "'http://a/#x': a fragment ('#') is never sent: remove it"},
    {parse_url, "http://a/b c", "'http://a/b c': blanks and control characters must be percent-encoded"},
    {parse_url, "http://::1/", "'http://::1/': '::1' is not host:port (IPv6 literals go in brackets)"},
    {parse_listen_url, "h2c://127.0.0.1:1",
     "'h2c://127.0.0.1:1': a listener is http, https or h3 (http takes HTTP/1.1 and h2c on one port)"},
    {parse_listen_url, "http://127.0.0.1:1/x", "'http://127.0.0.1:1/x': a listener has no path"},
    {parse_listen_url, "http://a.test:1",
     "'http://a.test:1': a listener needs an IP address or localhost (all interfaces: 0.0.0.0 or [::])"},
    {parse_origin_url, "http://a/x", "'http://a/x': an origin has no path: the request's own is sent"},
    {parse_origin_url, "http://a:0", "'http://a:0': port must be 1 to 65535"},
};

BOOST_AUTO_TEST_CASE(refused) {
  for (const Bad& bad : kBad) {
    const auto u = bad.parse(bad.text);
    BOOST_TEST_CONTEXT(bad.text) {
      BOOST_TEST(!u.has_value());
      if (!u) BOOST_TEST(u.error().what == bad.message);
    }
  }
}

// RFC 1035 §2.3.4.
BOOST_AUTO_TEST_CASE(lengths_of_names) {
  const std::string label(63, 'a');
  for (const std::string& host : {label + ".test", label + "." + label + "." + label + "." + std::string(61, 'b'), std::string("a.test.")}) {
    BOOST_TEST(fits_dns(host), host);
    BOOST_TEST(parse_url("http://" + host + "/").has_value(), host);
  }
  for (const std::string& host : {label + "a.test", label + "." + label + "." + label + "." + std::string(62, 'b'), std::string("a..test"),
                                  std::string(".test")}) {
    BOOST_TEST(!fits_dns(host), host);
    BOOST_TEST(!parse_url("http://" + host + "/").has_value(), host);
  }
}

BOOST_AUTO_TEST_SUITE_END()
