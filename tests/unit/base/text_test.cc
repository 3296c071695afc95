// Character classes, lists, numbers, time and the log.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

using namespace twp;

namespace {

std::vector<std::string> elements(std::string_view list) {
  std::vector<std::string> out;
  for_each_list_element(list, [&](std::string_view s) {
    out.emplace_back(s);
    return true;
  });
  return out;
}

/// What `f` writes to standard error.
template <class F>
std::string standard_error(F f) {
  char name[] = "/tmp/twp-log-XXXXXX";
  const int file = mkstemp(name);
  const int old = ::dup(STDERR_FILENO);
  ::dup2(file, STDERR_FILENO);
  f();
  ::dup2(old, STDERR_FILENO);
  ::close(old);
  ::close(file);
  std::ostringstream text;
  text << std::ifstream(name).rdbuf();
  ::unlink(name);
  return text.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(character_classes) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool alnum = (i >= '0' && i <= '9') || (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z');
    const bool token = alnum || (i != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
    BOOST_TEST(is_token_char(c) == token, i);
    BOOST_TEST(is_value_char(c) == (i == '\t' || (i >= 0x20 && i != 0x7f)), i);
    BOOST_TEST(is_target_char(c) == (i > 0x20 && i != 0x7f && i != '#'), i);
    BOOST_TEST(is_digit(c) == (i >= '0' && i <= '9'), i);
    BOOST_TEST(to_lower(c) == (i >= 'A' && i <= 'Z' ? static_cast<char>(i + 32) : c), i);
  }
  BOOST_TEST(!is_token(""));
  BOOST_TEST(is_token("X-Foo_1"));
  BOOST_TEST(!is_token("X Foo"));
  BOOST_TEST(is_field_value(""));
  BOOST_TEST(!is_field_value("a\rb"));
  BOOST_TEST(!is_field_value(std::string_view("a\0b", 3)));
}

BOOST_AUTO_TEST_CASE(comparing) {
  BOOST_TEST(iequals("Content-LENGTH", "content-length"));
  BOOST_TEST(!iequals("a", "ab"));
  BOOST_TEST(!iequals("@", "`"));  // differ by the case bit, but are no letters
  BOOST_TEST(!iequals("[", "{"));
  BOOST_TEST(istarts_with("Bearer x", "bearer "));
  BOOST_TEST(!istarts_with("B", "bearer"));
  BOOST_TEST(trim_ows(" \t a b\t ") == "a b");
  BOOST_TEST(trim_ows(" \t ") == "");
  BOOST_TEST(lower("ABC-xyz\xC4") == "abc-xyz\xC4");
}

BOOST_AUTO_TEST_CASE(lists) {
  using V = std::vector<std::string>;
  const auto check = [](std::string_view list, const V& want) {
    const V got = elements(list);
    BOOST_TEST(got == want, boost::test_tools::per_element());
  };
  check("", {});
  check(" , ,,\t", {});
  check("a", {"a"});
  check("a, b ,c,", {"a", "b", "c"});
  check("\"a,b\", c", {"\"a,b\"", "c"});
  check("x=\"a\\\",b\",c", {"x=\"a\\\",b\"", "c"});
  check("\"never closed, b", {"\"never closed, b"});
  check("\"ends in backslash\\", {"\"ends in backslash\\"});
  BOOST_TEST(list_contains("Keep-Alive, CLOSE", "close"));
  BOOST_TEST(!list_contains("closed", "close"));
  BOOST_TEST(!list_contains("\"close\"", "close"));
  int seen = 0;
  for_each_list_element("a,b,c", [&](std::string_view) { return ++seen < 2; });
  BOOST_TEST(seen == 2);
}

BOOST_AUTO_TEST_CASE(numbers) {
  BOOST_TEST(parse_decimal("0").value() == 0u);
  BOOST_TEST(parse_decimal("18446744073709551615").value() == 18446744073709551615u);
  BOOST_TEST(parse_decimal("000000000000000000000000000001").value() == 1u);
  for (const char* bad : {"", "18446744073709551616", "99999999999999999999", "+1", "-1", " 1", "1 ", "0x1", "1.0", "1,1"})
    BOOST_TEST(!parse_decimal(bad).has_value(), bad);
  BOOST_TEST(parse_hex("fFfFfFfFfFfFfFfF").value() == 18446744073709551615u);
  BOOST_TEST(parse_hex("0A").value() == 10u);
  BOOST_TEST(parse_hex("00000000000000000000001").value() == 1u);
  for (const char* bad : {"", "10000000000000000", "g", "0x1", "-1", "+1", " 1"}) BOOST_TEST(!parse_hex(bad).has_value(), bad);
  for (const std::uint64_t v : {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{10}, std::uint64_t{1234567890}, ~std::uint64_t{0}}) {
    char buf[20];
    BOOST_TEST(std::string(buf, write_decimal(buf, v)) == std::to_string(v));
    std::ostringstream hex;
    hex << std::hex << v;
    BOOST_TEST(std::string(buf, write_hex(buf, v)) == hex.str());
  }
}

BOOST_AUTO_TEST_CASE(json) {
  std::string out;
  append_json_escaped(out, "a\"b\\c\n\x01\x7f\xff z");
  BOOST_TEST(out == "a\\\"b\\\\c\\u000a\\u0001\\u007f\\u00ff z");
}

BOOST_AUTO_TEST_CASE(time_texts) {
  BOOST_TEST(http_date(784111777ull * 1'000'000'000u) == "Sun, 06 Nov 1994 08:49:37 GMT");
  BOOST_TEST(iso8601(784111777ull * 1'000'000'000u + 123'456'789u) == "1994-11-06T08:49:37.123Z");
  const Instant a = monotonic_now();
  BOOST_TEST(a != kNever);
  BOOST_TEST(monotonic_now() >= a);
}

BOOST_AUTO_TEST_CASE(fault_table) {
  for (unsigned i = 0; i < static_cast<unsigned>(Fault::count_); ++i) {
    const FaultInfo& f = info(static_cast<Fault>(i));
    BOOST_TEST(!f.log_word.empty());
    BOOST_TEST((f.http_status == 0 || (f.http_status >= 400 && f.http_status <= 599)), f.name);
    for (unsigned k = 0; k < i; ++k) BOOST_TEST(info(static_cast<Fault>(k)).log_word != f.log_word);
  }
  BOOST_TEST(info(Fault::head_too_large).http_status == 431);
  BOOST_TEST((info(Fault::connect_refused).retry == Retry::always));
}

BOOST_AUTO_TEST_CASE(nothing_a_peer_sends_forges_a_log_line) {
  set_log_program("twp-test");
  const std::string got = standard_error([] { log(LogLevel::warning, "bad\ntwp-test: error: forged\x1b[31m\x7f\xe9"); });
  BOOST_TEST(got == "twp-test: warning: bad\\x0atwp-test: error: forged\\x1b[31m\\x7f\\xe9\n");
}

BOOST_AUTO_TEST_CASE(levels) {
  set_log_level(LogLevel::warning);
  BOOST_TEST(standard_error([] { log(LogLevel::info, "no"); }) == "");
  BOOST_TEST(standard_error([] { log(LogLevel::error, "yes"); }) != "");
  set_log_level(LogLevel::info);
}

BOOST_AUTO_TEST_CASE(limited_messages) {
  const std::string got = standard_error([] {
    for (int i = 0; i < 1000; ++i) log_limited(LogLevel::warning, "again");
  });
  const auto lines = std::count(got.begin(), got.end(), '\n');
  BOOST_TEST(lines >= 10);
  BOOST_TEST(lines <= 22);  // the loop may straddle two seconds
}

BOOST_AUTO_TEST_SUITE_END()
