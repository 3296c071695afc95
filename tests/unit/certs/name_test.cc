#include "certs/name.h"

#include "unit/certs/certs_support.h"

namespace twp::certs::test {
namespace {

std::string refused(const std::string& text) { return error_of(parse_name(text)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(name)

BOOST_AUTO_TEST_CASE(dns_names_are_lower_case_without_trailing_dot) {
  BOOST_TEST(must(parse_name("A.Test")).text == "a.test");
  BOOST_TEST(must(parse_name("a.test.")).text == "a.test");
  BOOST_TEST(must(parse_name("localhost")).text == "localhost");
  BOOST_TEST(must(parse_name("_dmarc.my_host.test")).text == "_dmarc.my_host.test");
  BOOST_TEST(must(parse_name("*.a.test")).text == "*.a.test");
  BOOST_TEST(must(parse_name("bücher.test")).text == "xn--bcher-kva.test");
  BOOST_TEST(must(parse_name("1.2.3.4a")).text == "1.2.3.4a");
}

BOOST_AUTO_TEST_CASE(addresses_are_addresses) {
  const Name v4 = must(parse_name("192.0.2.1"));
  BOOST_CHECK(v4.kind == Name::Kind::ip);
  BOOST_TEST(v4.octets == std::string("\xc0\x00\x02\x01", 4));
  for (const char* text : {"2001:db8::1", "[2001:db8::1]", "2001:0DB8:0:0:0:0:0:1"}) {
    const Name v6 = must(parse_name(text));
    BOOST_CHECK(v6.kind == Name::Kind::ip);
    BOOST_TEST(v6.text == "2001:db8::1");
    BOOST_TEST(v6.octets.size() == 16u);
  }
}

BOOST_AUTO_TEST_CASE(wrong_names_say_why) {
  BOOST_TEST(contains(refused(""), "empty"));
  BOOST_TEST(contains(refused("."), "empty"));
  BOOST_TEST(contains(refused("a..test"), "empty label"));
  BOOST_TEST(contains(refused(".a.test"), "empty label"));
  BOOST_TEST(contains(refused(std::string(64, 'a') + ".test"), "63 are allowed"));
  BOOST_TEST(contains(refused("1.2.3.999"), "not a valid IPv4 address"));
  BOOST_TEST(contains(refused("1.2.3"), "not a valid IPv4 address"));
  BOOST_TEST(contains(refused("1:2:3"), "not a valid IPv6 address"));
  BOOST_TEST(contains(refused("[::1"), "not a valid IPv6 address"));
  BOOST_TEST(contains(refused("[192.0.2.1]"), "not a valid IPv6 address"));
  BOOST_TEST(contains(refused("fe80::1%eth0"), "not a valid IPv6 address"));
  BOOST_TEST(contains(refused(std::string("::1\0x", 5)), "not a valid IPv6 address"));
  BOOST_TEST(contains(refused("https://a.test"), "not a URL"));
  BOOST_TEST(contains(refused("a.test:443"), "without a port"));
  BOOST_TEST(contains(refused("me@a.test"), "not a mail address"));
  BOOST_TEST(contains(refused("a.*.test"), "may only be the first label"));
  BOOST_TEST(contains(refused("f*.a.test"), "must be the whole first label"));
  BOOST_TEST(contains(refused("*"), "needs a domain"));
  BOOST_TEST(contains(refused("a b.test"), "only letters"));
  BOOST_TEST(contains(refused(std::string("a\0.test", 7)), "only letters"));
  std::string longest;
  for (int i = 0; i < 64; ++i) longest += "aaa.";
  BOOST_TEST(contains(refused(longest), "253 are allowed"));
  BOOST_TEST(!contains(refused("a\x1b[31m.test"), "\x1b"));
}

BOOST_AUTO_TEST_CASE(lists_keep_order_and_drop_duplicates) {
  const std::vector<Name> all = names({"b.test", "a.test", "B.TEST.", "::1", "[0::1]"});
  BOOST_REQUIRE_EQUAL(all.size(), 3u);
  BOOST_TEST(all[0].text == "b.test");
  BOOST_TEST(all[2].text == "::1");
  BOOST_TEST(contains(error_of(parse_names({})), "at least one"));
  BOOST_TEST(contains(error_of(parse_names(std::vector<std::string>(257, "a.test"))), "256 are allowed"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
