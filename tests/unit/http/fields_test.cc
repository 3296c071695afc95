// Known names, field blocks and what is removed hop by hop.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "http/head.h"
#include "http/header_block.h"
#include "http/header_id.h"

using namespace twp;

namespace {

std::string dump(const HeaderBlock& b) {
  std::string s;
  for (const Field& f : b) s += std::string(f.name) + ": " + std::string(f.value) + "\n";
  return s;
}

HeaderBlock block(const std::vector<std::pair<const char*, const char*>>& fields) {
  HeaderBlock b;
  for (const auto& [n, v] : fields) b.add(n, v);
  return b;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fields)

BOOST_AUTO_TEST_CASE(every_known_name_is_found_in_any_case) {
  std::mt19937 rng(1);
  for (unsigned i = 1; i < static_cast<unsigned>(HeaderId::count_); ++i) {
    const auto id = static_cast<HeaderId>(i);
    const std::string name(header_name(id));
    BOOST_REQUIRE(!name.empty());
    BOOST_TEST(lower(name) == name);
    BOOST_TEST(is_token(name));
    for (int k = 0; k < 20; ++k) {
      std::string any = name;
      for (char& c : any)
        if (c >= 'a' && c <= 'z' && rng() % 2 == 0) c = static_cast<char>(c - 32);
      BOOST_TEST((header_id(any) == id), any);
    }
    BOOST_TEST((header_id(name + "x") == HeaderId::other || header_name(header_id(name + "x")) == name + "x"));
    BOOST_TEST((header_id(name.substr(1)) == HeaderId::other || header_name(header_id(name.substr(1))) == name.substr(1)));
  }
  BOOST_TEST((header_id("") == HeaderId::other));
  BOOST_TEST((header_id("x-unheard-of") == HeaderId::other));
  BOOST_TEST((header_id("content_length") == HeaderId::other));
  BOOST_TEST((header_id("content\rlength") == HeaderId::other));  // folds to '-' with the case bit
}

BOOST_AUTO_TEST_CASE(flags_of_the_names_that_framing_depends_on) {
  using namespace header_flag;
  for (const char* n : {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "http2-settings"})
    BOOST_TEST((header_flags(header_id(n)) & hop) != 0, n);
  for (const char* n : {"content-length", "host", "cookie", "trailer", "date", "via", "authorization", "proxy-authorization"})
    BOOST_TEST((header_flags(header_id(n)) & hop) == 0, n);
  for (const char* n : {"content-length", "transfer-encoding"}) BOOST_TEST((header_flags(header_id(n)) & framing) != 0, n);
  for (const char* n : {"content-length", "transfer-encoding", "host", "authorization", "trailer", "content-encoding", "cache-control"})
    BOOST_TEST((header_flags(header_id(n)) & no_trailer) != 0, n);
  BOOST_TEST((header_flags(HeaderId::grpc_status) & no_trailer) == 0);
  BOOST_TEST((header_flags(HeaderId::host) & (single | routing)) == (single | routing));
  BOOST_TEST(header_flags(HeaderId::other) == 0);
}

BOOST_AUTO_TEST_CASE(add_find_set_remove) {
  HeaderBlock b = block({{"Host", "a"}, {"X-One", "1"}, {"ACCEPT", "x"}, {"x-one", "2"}, {"accept", "y"}});
  BOOST_TEST(b.size() == 5u);
  BOOST_TEST(b[1].name == "X-One");  // spelling is kept
  BOOST_TEST(b.has(HeaderId::accept));
  BOOST_TEST(!b.has(HeaderId::date));
  BOOST_TEST(b.find(HeaderId::accept) == 2u);
  BOOST_TEST(b.find(HeaderId::accept, 3) == 4u);
  BOOST_TEST(b.find(HeaderId::accept, 5) == HeaderBlock::npos);
  BOOST_TEST(b.find("X-ONE") == 1u);
  BOOST_TEST(b.find("X-ONE", 2) == 3u);
  BOOST_TEST(b.find("x-two") == HeaderBlock::npos);
  BOOST_TEST(b.get("x-one") == "1");
  BOOST_TEST(b.get(HeaderId::date) == "");

  b.set(HeaderId::accept, "z");
  BOOST_TEST(dump(b) == "Host: a\nX-One: 1\nACCEPT: z\nx-one: 2\n");
  b.set("X-oNe", "3");
  BOOST_TEST(dump(b) == "Host: a\nX-One: 3\nACCEPT: z\n");
  b.set(HeaderId::date, "today");
  b.set("x-two", "2");
  BOOST_TEST(dump(b) == "Host: a\nX-One: 3\nACCEPT: z\ndate: today\nx-two: 2\n");
  BOOST_TEST(b.remove(HeaderId::date) == 1u);
  BOOST_TEST(!b.has(HeaderId::date));
  BOOST_TEST(b.remove(HeaderId::date) == 0u);
  BOOST_TEST(b.remove("X-TWO") == 1u);
  BOOST_TEST(b.remove("HOST") == 1u);
  BOOST_TEST(!b.has(HeaderId::host));
  BOOST_TEST(dump(b) == "X-One: 3\nACCEPT: z\n");
  b.set_value(0, "changed");
  BOOST_TEST(b.get("x-one") == "changed");
  BOOST_TEST(b.weight() == 5u + 7 + 32 + 6 + 1 + 32);
}

BOOST_AUTO_TEST_CASE(a_block_owns_its_octets) {
  HeaderBlock b;
  {
    std::string n = "X-Gone";
    std::string v(5000, 'v');
    b.add(n, v);
    for (int i = 0; i < 200; ++i) b.add("n" + std::to_string(i), std::string(static_cast<std::size_t>(i), 'x'));
  }
  HeaderBlock copy = b.clone();
  HeaderBlock moved = std::move(b);
  BOOST_TEST(b.empty());
  BOOST_TEST(!b.has(HeaderId::other));
  const std::string want = dump(moved);
  moved.clear();
  BOOST_TEST(moved.empty());
  BOOST_TEST(dump(copy) == want);
  BOOST_TEST(copy.get("n199") == std::string(199, 'x'));
  BOOST_TEST(copy.get("x-gone").size() == 5000u);
}

BOOST_AUTO_TEST_CASE(hop_by_hop_fields_go) {
  HeaderBlock b = block({{"Host", "a.test"},
                         {"Connection", "close, X-Secret"},
                         {"Keep-Alive", "timeout=5"},
                         {"Proxy-Connection", "keep-alive"},
                         {"TE", "gzip"},
                         {"Transfer-Encoding", "chunked"},
                         {"Upgrade", "h2c"},
                         {"HTTP2-Settings", "AAA"},
                         {"x-secret", "1"},
                         {"X-Secret-Not", "2"},
                         {"Cookie", "a=b"}});
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "Host: a.test\nX-Secret-Not: 2\nCookie: a=b\n");
}

BOOST_AUTO_TEST_CASE(te_trailers_survives) {
  HeaderBlock b = block({{"TE", "gzip;q=0.5, Trailers"}, {"Connection", "TE"}});
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "te: trailers\n");
}

// A second TE line must count too: a list may be spread over lines (RFC 9110 §5.3).
BOOST_AUTO_TEST_CASE(te_trailers_on_the_second_line) {
  HeaderBlock b = block({{"TE", "gzip"}, {"TE", "trailers"}});
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "te: trailers\n");
}

BOOST_AUTO_TEST_CASE(connection_cannot_hide_length_or_host) {
  HeaderBlock b = block({{"Host", "a.test"}, {"Content-Length", "5"}, {"Connection", "Content-Length, host, close"}});
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "Host: a.test\nContent-Length: 5\n");
}

BOOST_AUTO_TEST_CASE(several_connection_lines) {
  HeaderBlock b = block({{"Connection", "x-a"}, {"X-A", "1"}, {"X-B", "2"}, {"connection", "x-b, , \"q\""}, {"X-C", "3"}});
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "X-C: 3\n");
}

// However many Connection lines there are, what each lists goes.
BOOST_AUTO_TEST_CASE(many_connection_lines) {
  HeaderBlock b;
  for (int i = 0; i < 40; ++i) b.add("Connection", "x-" + std::to_string(i));
  for (int i = 0; i < 40; ++i) b.add("X-" + std::to_string(i), "v");
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "");
}

BOOST_AUTO_TEST_CASE(listed_fields_go_whatever_else_is_there) {
  HeaderBlock b;
  b.add("X-Keep", "1");
  for (int i = 0; i < 300; ++i) b.add("x-" + std::to_string(i), "v");
  b.add("X-7", "again");
  b.add("Date", "d");
  b.add("X-Last", "2");
  std::string list = "nothing-here, date";
  for (int i = 0; i < 300; ++i) list += ", X-" + std::to_string(i);
  b.add("Connection", list);
  remove_hop_by_hop(b);
  BOOST_TEST(dump(b) == "X-Keep: 1\nX-Last: 2\n");
}

/// CPU seconds of remove_hop_by_hop() for a 64 KiB head of `fields` fields whose Connection lists 16,000 names; the best
/// of some rounds, for other work disturbs the caches.
double seconds_for(int fields) {
  std::string list;
  for (int i = 0; list.size() < 64 * 1024; ++i) list += "y" + std::to_string(i % 1000) + ",";
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    std::clock_t spent = 0;
    for (int i = 0; i < 5; ++i) {
      HeaderBlock b;
      for (int f = 0; f < fields; ++f) b.add("x" + std::to_string(f), "");
      b.add("Connection", list);
      const std::clock_t begin = std::clock();
      remove_hop_by_hop(b);
      spent += std::clock() - begin;
      BOOST_REQUIRE(b.size() == static_cast<std::size_t>(fields));
    }
    best = std::min(best, static_cast<double>(spent) / CLOCKS_PER_SEC);
  }
  return best;
}

BOOST_AUTO_TEST_CASE(a_long_connection_list_is_not_asked_of_every_field) {
  const double few = seconds_for(4);
  const double many = seconds_for(255);
  BOOST_TEST(many < 8 * few + 0.001, "255 fields: " << many << " s, 4 fields: " << few << " s");
}

BOOST_AUTO_TEST_CASE(cookies_are_joined_where_the_first_one_was) {
  HeaderBlock b = block({{"Cookie", "a=1"}, {"X", "y"}, {"cookie", "b=2; c=3"}, {"COOKIE", "d=4"}});
  join_cookies(b);
  BOOST_TEST(dump(b) == "Cookie: a=1; b=2; c=3; d=4\nX: y\n");
  HeaderBlock one = block({{"Cookie", "a=1"}});
  join_cookies(one);
  BOOST_TEST(dump(one) == "Cookie: a=1\n");
  // Empty ones leave nothing behind: a value that ended with a blank would be malformed in HTTP/2.
  HeaderBlock empty = block({{"Cookie", ""}, {"Cookie", "a=1"}, {"Cookie", ""}, {"Cookie", "b=2"}, {"Cookie", ""}});
  join_cookies(empty);
  BOOST_TEST(dump(empty) == "Cookie: a=1; b=2\n");
  HeaderBlock nothing = block({{"Cookie", ""}, {"Cookie", ""}});
  join_cookies(nothing);
  BOOST_TEST(dump(nothing) == "Cookie: \n");
}

BOOST_AUTO_TEST_CASE(heads_are_cloned_whole) {
  Head h = Head::request(Method::post, "https", "a.test:8443", "/p?q", BodySize::exactly(7));
  h.fields.add("X-A", "1");
  h.protocol = h.fields.arena().copy("websocket");
  Head copy = h.clone();
  h = Head();
  BOOST_TEST(copy.authority == "a.test:8443");
  BOOST_TEST(copy.path == "/p?q");
  BOOST_TEST(copy.scheme == "https");
  BOOST_TEST(copy.protocol == "websocket");
  BOOST_TEST(copy.method_name == "POST");
  BOOST_TEST((copy.body.is_exact() && copy.body.n == 7));
  BOOST_TEST(copy.fields.get("x-a") == "1");
  const Head none = Head().clone();  // nothing set: empty views all over
  BOOST_TEST(none.authority == "");
  BOOST_TEST(Head::interim(103).is_interim());
  BOOST_TEST(reason_phrase(404) == "Not Found");
  BOOST_TEST(reason_phrase(299) == "");
  BOOST_TEST(response_has_no_body(Method::head, 200));
  BOOST_TEST(response_has_no_body(Method::get, 304));
  BOOST_TEST(response_has_no_body(Method::get, 103));
  BOOST_TEST(!response_has_no_body(Method::get, 200));
}

BOOST_AUTO_TEST_SUITE_END()
