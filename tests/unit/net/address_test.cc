#include "net/address.h"

#include <boost/test/unit_test.hpp>

using namespace twp;

BOOST_AUTO_TEST_SUITE(address)

BOOST_AUTO_TEST_CASE(literals) {
  BOOST_TEST(Address::parse("127.0.0.1", 80)->text() == "127.0.0.1:80");
  BOOST_TEST(Address::parse("::1", 443)->text() == "[::1]:443");
  BOOST_TEST(Address::parse("2001:DB8::0001", 1)->ip() == "2001:db8::1");
  for (const char* bad : {"", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4.", "::g", "fe80::1%eth0", "[::1]",
                          "1:2:3:4:5:6:7:8:9", "0000:0000:0000:0000:0000:0000:0000:00000000000000000000000001"})
    BOOST_TEST(!Address::parse(bad, 1).has_value(), bad);
  BOOST_TEST(!Address().valid());
}

BOOST_AUTO_TEST_CASE(equality_and_loopback) {
  BOOST_TEST((*Address::parse("1.2.3.4", 1) == *Address::parse("1.2.3.4", 1)));
  BOOST_TEST(!(*Address::parse("1.2.3.4", 1) == *Address::parse("1.2.3.4", 2)));
  BOOST_TEST(!(*Address::parse("1.2.3.4", 1) == *Address::parse("::ffff:1.2.3.4", 1)));
  for (const char* yes : {"127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"}) BOOST_TEST(Address::parse(yes, 0)->is_loopback(), yes);
  for (const char* no : {"128.0.0.1", "::2", "::ffff:128.0.0.1", "0.0.0.0"}) BOOST_TEST(!Address::parse(no, 0)->is_loopback(), no);
}

BOOST_AUTO_TEST_CASE(networks) {
  const auto in = [](const char* net, const char* ip) { return Cidr::parse(net)->contains(*Address::parse(ip, 0)); };
  BOOST_TEST(in("10.0.0.0/8", "10.255.0.1"));
  BOOST_TEST(!in("10.0.0.0/8", "11.0.0.1"));
  BOOST_TEST(in("10.1.2.3", "10.1.2.3"));
  BOOST_TEST(!in("10.1.2.3", "10.1.2.2"));
  BOOST_TEST(in("192.168.4.0/22", "192.168.7.255"));
  BOOST_TEST(!in("192.168.4.0/22", "192.168.8.0"));
  BOOST_TEST(in("10.0.0.0/8", "::ffff:10.1.1.1"));
  BOOST_TEST(in("2001:db8::/33", "2001:db8:7fff::1"));
  BOOST_TEST(!in("2001:db8::/33", "2001:db8:8000::1"));
  BOOST_TEST(in("0.0.0.0/0", "9.9.9.9"));
  BOOST_TEST(!in("0.0.0.0/0", "2001:db8::1"));
  BOOST_TEST(in("::/0", "2001:db8::1"));
  for (const char* bad : {"", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "10.0.0/8", "a.test/8"})
    BOOST_TEST(!Cidr::parse(bad).has_value(), bad);
  BOOST_TEST(Cidr::parse("10.0.0.0/33").error().what == "'10.0.0.0/33': prefix length must be 0 to 32");
}

BOOST_AUTO_TEST_CASE(host_and_port) {
  const auto hp = [](const char* text, std::uint16_t port) {
    const auto r = parse_host_port(text, port);
    return r ? r->host + "|" + std::to_string(r->port) + (r->is_ipv6_literal ? "|6" : "") : "error: " + r.error().what;
  };
  BOOST_TEST(hp("a.test", 80) == "a.test|80");
  BOOST_TEST(hp("a.test:8080", 80) == "a.test|8080");
  BOOST_TEST(hp("[::1]", 443) == "::1|443|6");
  BOOST_TEST(hp("[2001:db8::1]:0", 443) == "2001:db8::1|0|6");
  BOOST_TEST(hp("127.0.0.1:65535", 0) == "127.0.0.1|65535");
  for (const char* bad : {"", ":80", "a.test:", "a.test:65536", "a.test:-1", "a.test:80x", "::1", "[::1", "[::1]80", "[a.test]:1",
                          "[127.0.0.1]:1", "u@a.test:1", "a test:1", "a.test/x:1", "a.test:000080", "[::1%eth0]:1"})
    BOOST_TEST(hp(bad, 80).starts_with("error"), bad);
  BOOST_TEST(hp("a.test", 0).starts_with("error"));
}

BOOST_AUTO_TEST_CASE(authorities) {
  for (const char* good : {"a.test", "a.test:", "a.test:0", "a.test:65535", "[::1]:443", "127.0.0.1", "x_y.test", "a%20b"})
    BOOST_TEST(valid_authority(good), good);
  for (const char* bad : {"", ":", ":80", "a:b", "a:1:2", "u@a", "u:p@a.test", "a b", "a/b", "a?b", "a#b", "a\\b", "a\tb", "[::1", "::1",
                          "a.test:65536", "a.test:123456", "\"a\"", "a\x80", "<a>"})
    BOOST_TEST(!valid_authority(bad), bad);
  BOOST_TEST(!valid_authority(std::string_view("a\0b", 3)));
}

BOOST_AUTO_TEST_SUITE_END()
