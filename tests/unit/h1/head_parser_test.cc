// Request and response heads: what is accepted, what is refused and as what.
#include "h1/head_parser.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "base/fault.h"

namespace bdata = boost::unit_test::data;
using namespace std::string_literals;

namespace twp::h1 {
namespace {

struct Row {
  const char* name;
  std::string text;
  Fault fault = Fault::none;  // none: complete
};
std::ostream& operator<<(std::ostream& o, const Row& r) { return o << r.name; }

const HttpLimits kLimits;

std::string g(const std::string& fields) { return "GET / HTTP/1.1\r\nHost: a.test\r\n" + fields + "\r\n"; }
std::string ok(const std::string& fields) { return "HTTP/1.1 200 OK\r\n" + fields + "\r\n"; }

const Row kRequests[] = {
    {"plain", g("")},
    {"http 1.0", "GET / HTTP/1.0\r\n\r\n"},
    {"unknown minor", "GET / HTTP/1.9\r\n\r\n"},
    {"unknown method", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"one empty line first", "\r\n" + g("")},
    {"four empty lines first", "\r\n\r\n\r\n\r\n" + g("")},
    {"five empty lines first", "\r\n\r\n\r\n\r\n\r\n" + g(""), Fault::bad_request_line},
    {"empty value", g("X:\r\n")},
    {"value of blanks", g("X: \t \r\n")},
    {"tab in value", g("X: a\tb\r\n")},
    {"obs-text in value", g("X: \xc3\xa9\r\n")},
    {"no blank after colon", g("X:a\r\n")},
    {"trailing blanks", g("X: a \t\r\n")},
    {"octets above 0x7f in target", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"colon in value", g("X: a:b\r\n")},
    {"every token character", g("!#$%&'*+-.^_`|~09azAZ: v\r\n")},

    {"bare LF after request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", Fault::bad_request_line},
    {"bare LF after field", "GET / HTTP/1.1\r\nHost: a\n\r\n", Fault::bad_header},
    {"bare LF as empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n", Fault::bad_header},
    {"bare CR in request line", "GET /\r HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"two blanks after method", "GET  / HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"two blanks after target", "GET /  HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"tab after method", "GET\t/ HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"blank after version", "GET / HTTP/1.1 \r\n\r\n", Fault::bad_request_line},
    {"blank first", " GET / HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"no version", "GET /\r\n\r\n", Fault::bad_request_line},
    {"no target", "GET HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"empty target", "GET  HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"lower-case version", "GET / http/1.1\r\n\r\n", Fault::bad_request_line},
    {"version without minor", "GET / HTTP/1\r\n\r\n", Fault::bad_request_line},
    {"version with two digits", "GET / HTTP/1.10\r\n\r\n", Fault::bad_request_line},
    {"version 2", "PRI * HTTP/2.0\r\n\r\n", Fault::bad_version},
    {"version 0.9", "GET / HTTP/0.9\r\n\r\n", Fault::bad_version},
    {"method is no token", "GE(T / HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"fragment in target", "GET /a#b HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"DEL in target", "GET /a\x7f HTTP/1.1\r\n\r\n", Fault::bad_request_line},
    {"NUL in target", "GET /a\0 HTTP/1.1\r\n\r\n"s, Fault::bad_request_line},

    {"A07 empty name", g(":\r\nX-Keep: 1\r\n"), Fault::bad_header},
    {"A08 NUL in value", g("X: a\0b\r\n"s), Fault::bad_header},
    {"A08 NUL in host", "GET / HTTP/1.1\r\nHost: a.test\0.b.test\r\n\r\n"s, Fault::bad_header},
    {"A08 lone CR in value", g("X: a\rb\r\n"), Fault::bad_header},
    {"lone CR ends value", g("X: a\r\rb: c\r\n"), Fault::bad_header},
    {"A09 folded value", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n",
     Fault::bad_header},
    {"folded with tab", g("X: a\r\n\tb\r\n"), Fault::bad_header},
    {"first field line starts with blank", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", Fault::bad_header},
    {"A10 blank before colon", g("Transfer-Encoding : chunked\r\n"), Fault::bad_header},
    {"A10 tab before colon", g("Content-Length\t: 5\r\n"), Fault::bad_header},
    {"no colon", g("Nothing\r\n"), Fault::bad_header},
    {"name is no token", g("X(: 1\r\n"), Fault::bad_header},
    {"name above 0x7f", g("X\xc3\xa9: 1\r\n"), Fault::bad_header},
    {"control in value", g("X: a\x01\r\n"), Fault::bad_header},
    {"DEL in value", g("X: a\x7f\r\n"), Fault::bad_header},
    {"escape in long value", g("X: 0123456789012345678901234567890\x1b[31m\r\n"), Fault::bad_header},
};

const Row kResponses[] = {
    {"plain", ok("")},
    {"no reason", "HTTP/1.1 200 \r\n\r\n"},
    {"no reason and no blank", "HTTP/1.1 200\r\n\r\n"},
    {"reason with obs-text", "HTTP/1.1 200 \xc3\xa9\r\n\r\n"},
    {"http 1.0", "HTTP/1.0 200 OK\r\n\r\n"},
    {"bare LF", "HTTP/1.1 200 OK\n\n", Fault::origin_bad_head},
    {"control in reason", "HTTP/1.1 200 O\x01K\r\n\r\n", Fault::origin_bad_head},
    {"two-digit status", "HTTP/1.1 20 OK\r\n\r\n", Fault::origin_bad_head},
    {"four-digit status", "HTTP/1.1 2000 OK\r\n\r\n", Fault::origin_bad_head},
    {"status 099", "HTTP/1.1 099 OK\r\n\r\n", Fault::origin_bad_head},
    {"status 600", "HTTP/1.1 600 OK\r\n\r\n", Fault::origin_bad_head},
    {"version 2", "HTTP/2.0 200 OK\r\n\r\n", Fault::origin_bad_head},
    {"no HTTP", "ICY 200 OK\r\n\r\n", Fault::origin_bad_head},
    {"empty line first", "\r\n" + ok(""), Fault::origin_bad_head},
    {"two blanks before status", "HTTP/1.1  200 OK\r\n\r\n", Fault::origin_bad_head},
    {"folded", ok("X: a\r\n b\r\n"), Fault::origin_bad_head},
    {"blank before colon", ok("X : a\r\n"), Fault::origin_bad_head},
    {"empty name", ok(": a\r\n"), Fault::origin_bad_head},
    {"NUL", ok("X: a\0b\r\n"s), Fault::origin_bad_head},
};

template <class Parse>
void check(const Row& row, Parse&& parse) {
  RawHead raw;
  const ParseResult r = parse(row.text, raw);
  BOOST_TEST(log_word(r.fault) == log_word(row.fault));
  BOOST_TEST((r.status == (row.fault == Fault::none ? ParseStatus::complete : ParseStatus::bad)));
  if (row.fault == Fault::none) BOOST_TEST(r.size == row.text.size());
  // A prefix is never complete, and never refused for another reason than the whole.
  for (std::size_t n = 0; n < row.text.size(); ++n) {
    RawHead part;
    const ParseResult p = parse(row.text.substr(0, n), part);
    BOOST_TEST((p.status != ParseStatus::complete || row.fault != Fault::none));
    if (p.status == ParseStatus::bad) BOOST_TEST(log_word(p.fault) == log_word(row.fault));
  }
}

BOOST_DATA_TEST_CASE(request_heads, bdata::make(kRequests), row) {
  check(row, [](std::string_view t, RawHead& raw) { return parse_request_head(t, kLimits, raw); });
}

BOOST_DATA_TEST_CASE(response_heads, bdata::make(kResponses), row) {
  check(row, [](std::string_view t, RawHead& raw) { return parse_response_head(t, kLimits, raw); });
}

BOOST_AUTO_TEST_CASE(parts_of_a_request) {
  const std::string text = "\r\nPOST /a%2Fb?x=%7C HTTP/1.0\r\nHost:  a.test \r\nX-Odd:\tq \t r\t\r\nEmpty:\r\n\r\nrest";
  RawHead raw;
  const ParseResult r = parse_request_head(text, kLimits, raw);
  BOOST_REQUIRE((r.status == ParseStatus::complete));
  BOOST_TEST(text.substr(r.size) == "rest");
  BOOST_TEST(raw.method == "POST");
  BOOST_TEST(raw.target == "/a%2Fb?x=%7C");
  BOOST_TEST(int{raw.version.minor} == 0);
  BOOST_REQUIRE(raw.fields.size() == 3u);
  BOOST_TEST(raw.fields[0].value == "a.test");
  BOOST_TEST(raw.fields[1].name == "X-Odd");
  BOOST_TEST(raw.fields[1].value == "q \t r");
  BOOST_TEST(raw.fields[2].value == "");
}

BOOST_AUTO_TEST_CASE(parts_of_a_response) {
  RawHead raw;
  const ParseResult r = parse_response_head("HTTP/1.1 404 Not  here\r\nA: b\r\n\r\n", kLimits, raw);
  BOOST_REQUIRE((r.status == ParseStatus::complete));
  BOOST_TEST(raw.status == 404);
  BOOST_TEST(raw.reason == "Not  here");
  BOOST_TEST(raw.fields.get("a") == "b");
}

BOOST_AUTO_TEST_CASE(limits_name_their_key_and_values) {
  HttpLimits l;
  l.max_target = 10;
  l.max_head = 100;
  l.max_response_head = 100;
  l.max_fields = 2;
  l.max_trailer = 20;
  struct Limit {
    std::string text;
    Fault fault;
    std::string key;
    std::uint64_t observed, limit;
  };
  const std::string long_field = "X: " + std::string(100, 'a') + "\r\n";
  const std::string three = "A: 1\r\nB: 2\r\nC: 3\r\n";
  const auto expect = [](const ParseResult& r, const Limit& want) {
    BOOST_TEST((r.status == ParseStatus::bad));
    BOOST_TEST(log_word(r.fault) == log_word(want.fault));
    BOOST_TEST(r.limit.key == want.key);
    BOOST_TEST(r.limit.observed == want.observed);
    BOOST_TEST(r.limit.limit == want.limit);
  };
  const auto request = [&](const Limit& want) {
    RawHead raw;
    expect(parse_request_head(want.text, l, raw), want);
  };
  request({"GET /0123456789 HTTP/1.1\r\n\r\n", Fault::target_too_long, "max_target", 11, 10});
  request({"GET /0123456789", Fault::target_too_long, "max_target", 11, 10});  // no need to wait for its end
  request({"GET / HTTP/1.1\r\n" + long_field + "\r\n", Fault::head_too_large, "max_head", 123, 100});
  request({"GET / HTTP/1.1\r\n" + long_field, Fault::head_too_large, "max_head", 121, 100});
  request({"GET /" + std::string(200, 'x'), Fault::target_too_long, "max_target", 201, 10});  // nor to call it a large head
  request({std::string(65, 'A'), Fault::method_too_long, "", 0, 0});
  request({std::string(200, 'A') + " / HTTP/1.1\r\n\r\n", Fault::method_too_long, "", 0, 0});
  request({"GET / HTTP/1.1\r\n" + three + "\r\n", Fault::too_many_fields, "max_fields", 3, 2});
  RawHead raw;
  expect(parse_response_head(ok(long_field), l, raw), {"", Fault::origin_head_too_large, "max_response_head", 124, 100});
  RawHead raw2;
  expect(parse_response_head(ok(three), l, raw2), {"", Fault::origin_head_too_large, "max_fields", 3, 2});
  HeaderBlock t1, t2;
  expect(parse_trailers(three + "\r\n", l, t1), {"", Fault::too_many_fields, "max_fields", 3, 2});
  expect(parse_trailers("A: 0123456789012345678\r\n\r\n", l, t2), {"", Fault::head_too_large, "max_trailer", 26, 20});
  // Exactly at the limits.
  RawHead raw3;
  BOOST_TEST((parse_request_head("GET /012345678 HTTP/1.1\r\nA: 1\r\nB: 2\r\n\r\n", l, raw3).status == ParseStatus::complete));
}

BOOST_AUTO_TEST_CASE(a_defect_behind_the_limit_is_the_limit) {
  // Otherwise the answer would depend on how the octets were cut into pieces.
  HttpLimits l;
  l.max_head = 50;
  RawHead raw;
  const ParseResult r = parse_request_head("GET / HTTP/1.1\r\nX: " + std::string(60, 'a') + "\x01\r\n\r\n", l, raw);
  BOOST_TEST(log_word(r.fault) == log_word(Fault::head_too_large));
}

BOOST_AUTO_TEST_CASE(trailer_sections) {
  const auto parse = [](std::string_view text) {
    HeaderBlock f;
    return parse_trailers(text, kLimits, f);
  };
  BOOST_TEST((parse("\r\n").status == ParseStatus::complete));
  BOOST_TEST((parse("X: 1\r\n\r\n").status == ParseStatus::complete));
  BOOST_TEST((parse("X: 1\r\n").status == ParseStatus::need_more));
  BOOST_TEST((parse("\r").status == ParseStatus::need_more));
  for (const std::string_view bad : {"\n", "X 1\r\n\r\n", "X: 1\n\r\n", "X : 1\r\n\r\n", " X: 1\r\n\r\n", ": 1\r\n\r\n", "\rX"}) {
    BOOST_TEST((parse(bad).status == ParseStatus::bad));
    BOOST_TEST(log_word(parse(bad).fault) == log_word(Fault::bad_trailer));
  }
}

BOOST_AUTO_TEST_CASE(may_be_complete_is_never_wrongly_no) {
  for (const Row& row : kRequests) {
    // Fed octet by octet, as the session does: the parser must be asked at the end at the latest.
    bool asked = false;
    for (std::size_t n = 1; n <= row.text.size(); ++n) asked |= may_be_complete(row.text.substr(0, n), n - 1);
    BOOST_TEST(asked, row.name);
  }
}

}  // namespace
}  // namespace twp::h1
