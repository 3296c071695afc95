// Where a body ends: requests, responses, chunks.
#include "h1/body_framing.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

namespace bdata = boost::unit_test::data;
using namespace std::string_literals;

namespace twp::h1 {
namespace {

const HttpLimits kLimits;

struct Row {
  const char* name;
  std::string fields;
  Fault fault = Fault::none;
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  int minor = 1;
  // responses
  Method method = Method::get;
  int status = 200;
  bool must_close = false;
};
std::ostream& operator<<(std::ostream& o, const Row& r) { return o << r.name; }

constexpr Fault kBad = Fault::bad_framing;
constexpr Fault kOriginBad = Fault::origin_bad_framing;

const Row kRequests[] = {
    {"nothing", ""},
    {"length", "Content-Length: 5\r\n", Fault::none, Framing::length, 5},
    {"length 0", "Content-Length: 0\r\n", Fault::none, Framing::length, 0},
    {"leading zeros", "Content-Length: 005\r\n", Fault::none, Framing::length, 5},
    {"chunked", "Transfer-Encoding: chunked\r\n", Fault::none, Framing::chunked},
    {"chunked in capitals", "Transfer-Encoding: CHUNKED\r\n", Fault::none, Framing::chunked},
    {"largest length", "Content-Length: 9223372036854775807\r\n", Fault::none, Framing::length, 9223372036854775807u},

    {"A01 length and chunked", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", kBad},
    {"A01 chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", kBad},
    {"A02 empty element", "Transfer-Encoding: ,chunked\r\n", kBad},
    {"empty element behind", "Transfer-Encoding: chunked,\r\n", kBad},
    {"A03 empty length first", "Content-Length:\r\nContent-Length: 43\r\n", kBad},
    {"A03 empty length", "Content-Length:\r\n", kBad},
    {"two equal lengths", "Content-Length: 5\r\nContent-Length: 5\r\n", kBad},
    {"two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", kBad},
    {"list of lengths", "Content-Length: 5, 5\r\n", kBad},
    {"plus", "Content-Length: +5\r\n", kBad},
    {"minus", "Content-Length: -5\r\n", kBad},
    {"hex", "Content-Length: 0x5\r\n", kBad},
    {"junk", "Content-Length: 5a\r\n", kBad},
    {"blank inside", "Content-Length: 5 5\r\n", kBad},
    {"2^63", "Content-Length: 9223372036854775808\r\n", kBad},
    {"2^64", "Content-Length: 18446744073709551616\r\n", kBad},
    {"2^64 + 5", "Content-Length: 18446744073709551621\r\n", kBad},
    {"chunked twice", "Transfer-Encoding: chunked, chunked\r\n", kBad},
    {"chunked on two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", kBad},
    {"identity behind", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", kBad},
    {"chunked not last", "Transfer-Encoding: chunked, gzip\r\n", kBad},
    {"identity", "Transfer-Encoding: identity\r\n", kBad},
    {"quoted", "Transfer-Encoding: \"chunked\"\r\n", kBad},
    {"xchunked", "Transfer-Encoding: xchunked\r\n", kBad},
    {"parameter", "Transfer-Encoding: chunked;a=b\r\n", kBad},
    {"vertical name", "Transfer-Encoding: chunked chunked\r\n", kBad},
    {"empty", "Transfer-Encoding:\r\n", kBad},
    {"coding that we do not know", "Transfer-Encoding: gzip, chunked\r\n", Fault::transfer_coding},
    {"chunked in 1.0", "Transfer-Encoding: chunked\r\n", kBad, Framing::none, 0, 0},
    {"length in 1.0", "Content-Length: 5\r\n", Fault::none, Framing::length, 5, 0},
};

const Row kResponses[] = {
    {"nothing", "", Fault::none, Framing::until_close, 0, 1, Method::get, 200, true},
    {"length", "Content-Length: 5\r\n", Fault::none, Framing::length, 5},
    {"equal lengths", "Content-Length: 5\r\nContent-Length: 5\r\n", Fault::none, Framing::length, 5},
    {"equal list", "Content-Length: 5, 5\r\n", Fault::none, Framing::length, 5},
    {"A17 two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", kOriginBad},
    {"two lengths in a list", "Content-Length: 5, 6\r\n", kOriginBad},
    {"empty element", "Content-Length: 5,\r\n", kOriginBad},
    {"empty length", "Content-Length:\r\n", kOriginBad},
    {"negative", "Content-Length: -1\r\n", kOriginBad},
    {"chunked", "Transfer-Encoding: chunked\r\n", Fault::none, Framing::chunked},
    {"A17 chunked and length", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Fault::none, Framing::chunked, 0, 1,
     Method::get, 200, true},
    {"unknown coding", "Transfer-Encoding: gzip, chunked\r\n", kOriginBad},
    {"empty element before chunked", "Transfer-Encoding: ,chunked\r\n", kOriginBad},
    {"chunked in 1.0", "Transfer-Encoding: chunked\r\n", kOriginBad, Framing::none, 0, 0},
    {"A16 HEAD with chunked", "Transfer-Encoding: chunked\r\n", Fault::none, Framing::none, 0, 1, Method::head},
    {"A16 HEAD with length", "Content-Length: 10\r\n", Fault::none, Framing::none, 0, 1, Method::head},
    {"A16 304 with length", "Content-Length: 10\r\n", Fault::none, Framing::none, 0, 1, Method::get, 304},
    {"HEAD with two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", kOriginBad, Framing::none, 0, 1, Method::head},
    {"304 with a bad length", "Content-Length: x\r\n", kOriginBad, Framing::none, 0, 1, Method::get, 304},
    {"204", "Content-Length: 10\r\n", Fault::none, Framing::none, 0, 1, Method::get, 204},
    {"103", "", Fault::none, Framing::none, 0, 1, Method::get, 103},
    {"CONNECT 200", "Content-Length: 10\r\n", Fault::none, Framing::tunnel, 0, 1, Method::connect},
    {"CONNECT 403", "Content-Length: 10\r\n", Fault::none, Framing::length, 10, 1, Method::connect, 403},
};

void check(const Row& row, const FramingDecision& d) {
  BOOST_TEST(log_word(d.fault) == log_word(row.fault));
  if (row.fault != Fault::none) return;
  BOOST_TEST(static_cast<int>(d.framing) == static_cast<int>(row.framing));
  if (row.framing == Framing::length) BOOST_TEST(d.length == row.length);
  BOOST_TEST(d.must_close == row.must_close);
}

BOOST_DATA_TEST_CASE(request_bodies, bdata::make(kRequests), row) {
  RawHead raw;
  const std::string text = "POST / HTTP/1." + std::to_string(row.minor) + "\r\n" + row.fields + "\r\n";
  BOOST_REQUIRE((parse_request_head(text, kLimits, raw).status == ParseStatus::complete));
  check(row, request_framing(raw));
}

BOOST_DATA_TEST_CASE(response_bodies, bdata::make(kResponses), row) {
  RawHead raw;
  const std::string text =
      "HTTP/1." + std::to_string(row.minor) + " " + std::to_string(row.status) + " x\r\n" + row.fields + "\r\n";
  BOOST_REQUIRE((parse_response_head(text, kLimits, raw).status == ParseStatus::complete));
  check(row, response_framing(raw, row.method));
}

/// Feeds `pieces` and returns the body, "!" when refused, "..." appended when the end has not come, and "|rest".
std::string decode(const std::vector<std::string>& pieces) {
  ChunkDecoder d;
  std::string body;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Slice in = Slice::copy_of(pieces[i]);
    for (bool more = true; more && !in.empty();) {
      switch (d.next(in)) {
        case ChunkDecoder::Event::bad: return "!";
        case ChunkDecoder::Event::need_more: more = false; break;
        case ChunkDecoder::Event::trailers: {
          std::string rest(in.text());
          for (++i; i < pieces.size(); ++i) rest += pieces[i];
          return body + "|" + rest;
        }
        case ChunkDecoder::Event::data: {
          const std::size_t n = d.data_size(in);
          BOOST_REQUIRE(n != 0u);
          BOOST_REQUIRE(n <= in.size());
          d.took(n);
          body += in.split(n).text();
        }
      }
    }
  }
  return body + "...";
}

struct Chunks {
  const char* name;
  std::string text;
  std::string want;
};
std::ostream& operator<<(std::ostream& o, const Chunks& r) { return o << r.name; }

const Chunks kChunks[] = {
    {"one", "5\r\nhello\r\n0\r\n", "hello|"},
    {"two", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello|\r\n"},
    {"trailers behind", "1\r\na\r\n0\r\nX: 1\r\n\r\n", "a|X: 1\r\n\r\n"},
    {"hex", "a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n", "01234567890123456789a|"},
    {"leading zeros", "0005\r\nhello\r\n000\r\n", "hello|"},
    {"chunks inside data", "9\r\n0\r\n\r\n1\r\nx\r\n0\r\n", "0\r\n\r\n1\r\nx|"},
    {"extension", "5;a=b\r\nhello\r\n0;c\r\n", "hello|"},
    {"quoted extension", "5;a=\"x;\\\"y\"\r\nhello\r\n0\r\n", "hello|"},
    {"extension with obs-text", "1;a=\"\xc3\xa9\"\r\nx\r\n0\r\n", "x|"},
    {"not yet", "5\r\nhel", "hel..."},
    {"A04 LF in extension", "2;\nxx\r\n45\r\n0\r\n\r\n", "!"},
    {"CR in extension", "2;a\rb\r\nxx\r\n0\r\n", "!"},
    {"LF in quoted extension", "2;a=\"\n\"\r\nxx\r\n0\r\n", "!"},
    {"CR LF in quoted extension", "2;a=\"\r\n\"\r\nxx\r\n0\r\n", "!"},
    {"CR LF behind backslash", "2;a=\"\\\r\n\"\r\nxx\r\n0\r\n", "!"},
    {"NUL in extension", "2;a\0\r\nxx\r\n0\r\n"s, "!"},
    {"A05 plus", "+1\r\nZ\r\n0\r\n\r\n", "!"},
    {"minus", "-1\r\nZ\r\n0\r\n\r\n", "!"},
    {"A05 0x", "0x1\r\nZ\r\n0\r\n\r\n", "!"},
    {"A05 blank first", " 1\r\nZ\r\n0\r\n\r\n", "!"},
    {"A05 1g", "1g\r\nZ\r\n0\r\n\r\n", "!"},
    {"A05 1zz", "1zz\r\nZ\r\n0\r\n\r\n", "!"},
    {"blank behind", "1 \r\nZ\r\n0\r\n", "!"},
    {"tab behind", "1\t\r\nZ\r\n0\r\n", "!"},
    {"underscore", "1_0\r\nZ\r\n0\r\n", "!"},
    {"no size", "\r\nZ\r\n0\r\n", "!"},
    {"only extension", ";a\r\nZ\r\n0\r\n", "!"},
    {"A06 more than the size", "5\r\nAAAAAXXX\r\n0\r\n\r\n", "!"},
    {"less than the size", "5\r\nAAA\r\n0\r\n\r\n", "!"},
    {"LF after size", "5\nhello\r\n0\r\n", "!"},
    {"LF after data", "5\r\nhello\n0\r\n", "!"},
    {"CR alone after data", "5\r\nhello\r0\r\n", "!"},
    {"CR alone after size", "5\rhello\r\n0\r\n", "!"},
    {"15 digits", "000000000000005\r\nhello\r\n0\r\n", "hello|"},
    {"16 digits", "0000000000000005\r\nhello\r\n0\r\n", "!"},
    {"2^64 + 1", "10000000000000001\r\nZ\r\n0\r\n", "!"},
    {"all f", "ffffffffffffffff\r\nZ\r\n0\r\n", "!"},
    {"endless extension", "1;" + std::string(5000, 'a') + "\r\nZ\r\n0\r\n", "!"},
};

BOOST_DATA_TEST_CASE(chunked_bodies, bdata::make(kChunks), row) {
  // A refused text shows whatever came before; only that it is refused counts.
  const auto whole = decode({row.text});
  BOOST_TEST((row.want == "!" ? whole == "!" : whole == row.want), whole);
  for (std::size_t i = 0; i <= row.text.size(); ++i)
    BOOST_TEST(decode({row.text.substr(0, i), row.text.substr(i)}) == whole);
  std::vector<std::string> octets;
  for (const char c : row.text) octets.emplace_back(1, c);
  BOOST_TEST(decode(octets) == whole);
}

BOOST_AUTO_TEST_CASE(a_decoder_is_used_again_after_reset) {
  ChunkDecoder d;
  Slice bad = Slice::copy_of("x");
  BOOST_TEST((d.next(bad) == ChunkDecoder::Event::bad));
  Slice more = Slice::copy_of("1\r\n");
  BOOST_TEST((d.next(more) == ChunkDecoder::Event::bad));  // stays bad
  d.reset();
  Slice good = Slice::copy_of("1\r\nx");
  BOOST_TEST((d.next(good) == ChunkDecoder::Event::data));
}

BOOST_AUTO_TEST_CASE(the_longest_chunk_has_its_size) {
  ChunkDecoder d;
  Slice in = Slice::copy_of("fffffffffffffff\r\nabc");
  BOOST_TEST((d.next(in) == ChunkDecoder::Event::data));
  BOOST_TEST(d.data_size(in) == 3u);
}

}  // namespace
}  // namespace twp::h1
