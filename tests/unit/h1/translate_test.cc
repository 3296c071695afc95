// Parsed heads to canonical ones, and back to octets.
#include "h1/translate.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "h1/head_writer.h"
#include "support/recorder.h"

namespace bdata = boost::unit_test::data;

namespace twp::h1 {
namespace {

const HttpLimits kLimits;

struct Parsed {
  Fault fault = Fault::none;
  Head head;
  MessageInfo info;
};

Parsed request(std::string text, bool tls = false) {
  Parsed p;
  RawHead raw;
  const ParseResult r = parse_request_head(text, kLimits, raw);
  p.fault = r.fault;
  if (r.status == ParseStatus::complete) p.fault = to_request(std::move(raw), text, tls, p.head, p.info);
  std::fill(text.begin(), text.end(), '#');  // the head owns its octets
  return p;
}

Parsed response(std::string text, Method method = Method::get, bool websocket = false) {
  Parsed p;
  RawHead raw;
  const ParseResult r = parse_response_head(text, kLimits, raw);
  p.fault = r.fault;
  if (r.status == ParseStatus::complete) p.fault = to_response(std::move(raw), text, method, websocket, p.head, p.info);
  std::fill(text.begin(), text.end(), '#');
  return p;
}

std::string text_of(const Chain& chain) {
  std::string out(chain.size(), '\0');
  chain.peek(std::as_writable_bytes(std::span(out)));
  return out;
}

struct Target {
  std::string line;  // method and target
  std::string host;  // Host field, "-" for none
  Fault fault = Fault::none;
  std::string scheme, authority, path;
};
std::ostream& operator<<(std::ostream& o, const Target& t) { return o << t.line << " Host: " << t.host; }

const Target kTargets[] = {
    {"GET /", "a.test", Fault::none, "http", "a.test", "/"},
    {"GET /a%2Fb%2520c/%c3%a9?x=%7C", "a.test:81", Fault::none, "http", "a.test:81", "/a%2Fb%2520c/%c3%a9?x=%7C"},
    {"GET //x", "a.test", Fault::none, "http", "a.test", "//x"},
    {"GET http://b.test/admin", "a.test", Fault::none, "http", "b.test", "/admin"},
    {"GET HTTP://b.test/admin", "a.test", Fault::none, "http", "b.test", "/admin"},
    {"GET https://b.test/", "a.test", Fault::none, "https", "b.test", "/"},
    {"GET http://b.test", "b.test", Fault::none, "http", "b.test", "/"},
    {"GET http://b.test?q=1", "b.test", Fault::none, "http", "b.test", "/?q=1"},
    {"GET http://b.test?q=/1", "b.test", Fault::none, "http", "b.test", "/?q=/1"},
    {"GET http://[::1]:8080/", "[::1]:8080", Fault::none, "http", "[::1]:8080", "/"},
    {"OPTIONS *", "a.test", Fault::none, "http", "a.test", "*"},
    {"OPTIONS http://b.test", "a.test", Fault::none, "http", "b.test", "*"},
    {"OPTIONS http://b.test/", "a.test", Fault::none, "http", "b.test", "/"},
    {"CONNECT b.test:443", "b.test:443", Fault::none, "http", "b.test:443", ""},
    {"CONNECT [2001:db8::1]:443", "[2001:db8::1]:443", Fault::none, "http", "[2001:db8::1]:443", ""},
    {"GET *", "a.test", Fault::bad_target},
    {"GET b.test/", "a.test", Fault::bad_target},
    {"GET ftp://b.test/", "a.test", Fault::bad_target},
    {"GET http:///x", "a.test", Fault::bad_target},
    {"GET http://", "a.test", Fault::bad_target},
    {"GET http://user@b.test/", "a.test", Fault::bad_target},
    {"GET http://user:pw@b.test/", "a.test", Fault::bad_target},
    {"GET http://b.test:99999/", "a.test", Fault::bad_target},
    {"GET http://[::1/", "a.test", Fault::bad_target},
    {"GET http://::1/", "a.test", Fault::bad_target},
    {"CONNECT b.test", "b.test", Fault::bad_target},
    {"CONNECT b.test:", "b.test", Fault::bad_target},
    {"CONNECT [::1]", "[::1]", Fault::bad_target},
    {"CONNECT /", "b.test", Fault::bad_target},
    {"CONNECT http://b.test:443/", "b.test", Fault::bad_target},
    {"CONNECT u@b.test:443", "b.test", Fault::bad_target},
    {"GET /", "-", Fault::bad_host},
    {"GET /", "", Fault::bad_host},
    {"GET /", "a.test\r\nHost: a.test", Fault::bad_host},
    {"GET /", "a.test\r\nHost: b.test", Fault::bad_host},
    {"GET /", "a.test, b.test", Fault::bad_host},
    {"GET /", "a.test b.test", Fault::bad_host},
    {"GET /", "a.test/x", Fault::bad_host},
    {"GET /", "user@a.test", Fault::bad_host},
    {"GET /", "a.test:x", Fault::bad_host},
    {"GET /", "http://a.test", Fault::bad_host},
    {"GET http://b.test/", "-", Fault::bad_host},
    {"GET http://b.test/", "bad host", Fault::bad_host},
};

BOOST_DATA_TEST_CASE(targets, bdata::make(kTargets), row) {
  const Parsed p = request(row.line + " HTTP/1.1\r\n" + (row.host == "-" ? "" : "Host: " + row.host + "\r\n") + "\r\n");
  BOOST_TEST(log_word(p.fault) == log_word(row.fault));
  if (row.fault != Fault::none) return;
  BOOST_TEST(p.head.scheme == row.scheme);
  BOOST_TEST(p.head.authority == row.authority);
  BOOST_TEST(p.head.path == row.path);
  BOOST_TEST(!p.head.fields.has(HeaderId::host));
  BOOST_TEST(p.head.method_name == row.line.substr(0, row.line.find(' ')));
}

// RFC 9110 §7.6.1: what Connection names is gone from the trailers as well.
BOOST_AUTO_TEST_CASE(trailers_that_connection_lists_are_removed) {
  HeaderBlock trailers;
  for (const char* name : {"X-T", "x-u", "X-Kept", "Host"}) trailers.add(name, "1");
  h1::clean_trailers(trailers, "x-t, X-U");
  BOOST_TEST(trailers.size() == 1u);
  BOOST_TEST(trailers[0].name == "X-Kept");
}

BOOST_AUTO_TEST_CASE(http_1_0_needs_no_host) {
  const Parsed p = request("GET / HTTP/1.0\r\n\r\n");
  BOOST_TEST(log_word(p.fault) == "ok");
  BOOST_TEST(p.head.authority == "");
  BOOST_TEST(!p.info.keep_alive);
  BOOST_TEST(log_word(request("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n").fault) == "bad-host");
  BOOST_TEST(int{request("GET / HTTP/1.7\r\nHost: a\r\n\r\n").head.version.minor} == 1);
}

BOOST_AUTO_TEST_CASE(tls_decides_the_scheme) {
  BOOST_TEST(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true).head.scheme == "https");
}

std::string fields_of(const std::string& lines) {
  const Parsed p = request("GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n");
  return p.fault == Fault::none ? test::describe(p.head.fields, true) : std::string(log_word(p.fault));
}

BOOST_AUTO_TEST_CASE(connection_specific_fields_go) {
  BOOST_TEST(fields_of("X-A: 1\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nTE: gzip\r\nx-b: 2\r\n") ==
             "X-A: 1\nx-b: 2\n");
  BOOST_TEST(fields_of("Connection: close, X-Drop ,x-also\r\nX-Drop: 1\r\nX-Keep: 2\r\nX-ALSO: 3\r\n") == "X-Keep: 2\n");
  BOOST_TEST(fields_of("Connection: a\r\nX: 1\r\nConnection: b\r\nA: 1\r\nB: 2\r\n") == "X: 1\n");
  BOOST_TEST(fields_of("Connection: TE\r\nTE: trailers, deflate;q=0.5\r\n") == "te: trailers\n");
  BOOST_TEST(fields_of("TE: trailers\r\n") == "te: trailers\n");
  // A51
  BOOST_TEST(fields_of("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n") == "");
  // A21: nothing that decides framing or routing can be listed away.
  BOOST_TEST(fields_of("Connection: close, content-length, host\r\nContent-Length: 0\r\n") == "Content-Length: 0\n");
}

BOOST_AUTO_TEST_CASE(any_number_of_connection_lines_counts) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "Connection: x" + std::to_string(i) + "\r\n";
  for (int i = 0; i < 40; ++i) lines += "X" + std::to_string(i) + ": 1\r\n";
  BOOST_TEST(fields_of(lines) == "");
}

BOOST_AUTO_TEST_CASE(cookies_are_joined) {
  BOOST_TEST(fields_of("Cookie: a=1\r\nX: y\r\nCookie: b=2\r\n") == "Cookie: a=1; b=2\nX: y\n");
}

BOOST_AUTO_TEST_CASE(persistence) {
  const auto keep = [](const std::string& version, const std::string& lines) {
    return request("GET / HTTP/" + version + "\r\nHost: a\r\n" + lines + "\r\n").info.keep_alive;
  };
  BOOST_TEST(keep("1.1", ""));
  BOOST_TEST(!keep("1.1", "Connection: close\r\n"));
  BOOST_TEST(!keep("1.1", "Connection: x, CLOSE\r\n"));
  BOOST_TEST(!keep("1.1", "Connection: x\r\nConnection: close\r\n"));
  BOOST_TEST(!keep("1.0", ""));
  BOOST_TEST(keep("1.0", "Connection: Keep-Alive\r\n"));
  BOOST_TEST(!keep("1.0", "Connection: keep-alive, close\r\n"));
}

BOOST_AUTO_TEST_CASE(expectations) {
  const auto expect = [](const std::string& version, const std::string& lines) {
    return request("POST / HTTP/" + version + "\r\nHost: a\r\n" + lines + "\r\n");
  };
  BOOST_TEST(expect("1.1", "Expect: 100-Continue\r\nContent-Length: 1\r\n").info.expect_continue);
  BOOST_TEST(!expect("1.1", "Expect: 100-continue\r\n").info.expect_continue);
  BOOST_TEST(!expect("1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n").info.expect_continue);
  BOOST_TEST(log_word(expect("1.1", "Expect: x\r\n").fault) == "expectation");
  const Parsed old = expect("1.0", "Expect: 100-continue\r\nContent-Length: 1\r\n");
  BOOST_TEST(!old.info.expect_continue);
  BOOST_TEST(!old.head.fields.has(HeaderId::expect));
}

BOOST_AUTO_TEST_CASE(lengths_leave_in_our_own_words) {
  for (const char* text : {"5", "05", "0000000000005"}) {
    const Parsed p = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::string(text) + "\r\n\r\n");
    BOOST_TEST(log_word(p.fault) == "ok");
    BOOST_TEST(p.head.fields.get(HeaderId::content_length) == "5");
    BOOST_TEST(p.head.body.n == 5u);
  }
  const Parsed zero = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n");
  BOOST_TEST(zero.head.fields.get(HeaderId::content_length) == "0");
}

BOOST_AUTO_TEST_CASE(websocket_handshakes) {
  const std::string rest = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
  const auto upgrade = [&](const std::string& lines) { return request("GET /chat HTTP/1.1\r\nHost: a\r\n" + lines + rest + "\r\n"); };
  // A49
  for (const char* lines : {"Connection: keep-alive, uPgRade\r\nUpgrade: WebSocket\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
                            "Connection: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"}) {
    const Parsed p = upgrade(lines);
    BOOST_TEST(p.info.websocket);
    BOOST_TEST(p.head.is_connect());
    BOOST_TEST(p.head.method_name == "CONNECT");
    BOOST_TEST(p.head.protocol == "websocket");
    BOOST_TEST(p.head.path == "/chat");
    BOOST_TEST(p.head.fields.get(HeaderId::sec_websocket_key) == "dGhlIHNhbXBsZSBub25jZQ==");
    BOOST_TEST((p.info.framing == Framing::tunnel));
  }
  for (const char* lines : {"Upgrade: websocket\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n",
                            "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
                            "Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n",
                            "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n"}) {
    const Parsed p = upgrade(lines);
    BOOST_TEST(log_word(p.fault) == "ok");
    BOOST_TEST(!p.info.websocket);
    BOOST_TEST(p.head.method_name == "GET");
    BOOST_TEST(!p.head.fields.has(HeaderId::upgrade));
  }
  // Without a key it is an ordinary request.
  BOOST_TEST(!request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").info.websocket);
  BOOST_TEST(!request("GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" + rest + "\r\n").info.websocket);
  BOOST_TEST(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455 §1.3
  BOOST_TEST(websocket_key().size() == 24u);
  BOOST_TEST(websocket_key() != websocket_key());
}

BOOST_AUTO_TEST_CASE(connect_has_no_body) {
  const auto connect = [](const std::string& lines) {
    return log_word(request("CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n" + lines + "\r\n").fault);
  };
  BOOST_TEST(connect("") == "ok");
  BOOST_TEST(connect("Content-Length: 0\r\n") == "ok");
  BOOST_TEST(connect("Content-Length: 5\r\n") == "bad-framing");
  BOOST_TEST(connect("Transfer-Encoding: chunked\r\n") == "bad-framing");
}

BOOST_AUTO_TEST_CASE(responses) {
  const auto fields = [](const std::string& head, Method m = Method::get) {
    const Parsed p = response("HTTP/1.1 " + head + "\r\n\r\n", m);
    return p.fault == Fault::none ? test::describe(p.head.fields, true) : std::string(log_word(p.fault));
  };
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nX: 1") == "Content-Length: 5\nX: 1\n");
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5, 5") == "Content-Length: 5\n");
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked") == "");
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5, 5", Method::head) == "Content-Length: 5\n");
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", Method::head) == "");
  BOOST_TEST(fields("200 OK\r\nContent-Length: 5\r\nContent-Length: 6", Method::head) == "origin-bad-framing");
  BOOST_TEST(fields("304 Not Modified\r\nContent-Length: 10") == "Content-Length: 10\n");
  BOOST_TEST(fields("204 No Content\r\nContent-Length: 10") == "");
  BOOST_TEST(fields("103 Early Hints\r\nLink: </s>\r\nContent-Length: 3") == "Link: </s>\n");
  BOOST_TEST(fields("200 OK\r\nConnection: close, X-A\r\nX-A: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2") == "");
  BOOST_TEST(fields("101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c") == "origin-bad-head");

  const Parsed close = response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
  BOOST_TEST(!close.info.keep_alive);
  BOOST_TEST((response("HTTP/1.1 103 x\r\n\r\n").head.kind == HeadKind::interim));
  BOOST_TEST(response("HTTP/1.1 404 Not  here\r\n\r\n").head.reason == "Not  here");
  BOOST_TEST(!response("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").info.keep_alive);
  BOOST_TEST(response("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n").info.keep_alive);
}

BOOST_AUTO_TEST_CASE(websocket_answers) {
  const std::string switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
  const Parsed yes = response(switched, Method::connect, true);
  BOOST_TEST(yes.head.status == 200);
  BOOST_TEST(yes.head.is_connect());
  BOOST_TEST((yes.info.framing == Framing::tunnel));
  BOOST_TEST(log_word(response(switched, Method::connect, false).fault) == "origin-bad-head");
  BOOST_TEST(log_word(response(switched, Method::get, false).fault) == "origin-bad-head");
  BOOST_TEST(log_word(response("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", Method::connect, true).fault) ==
             "origin-bad-head");
  const Parsed plain = response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", Method::connect, true);
  BOOST_TEST(!plain.head.is_connect());
  BOOST_TEST(plain.head.body.n == 2u);
  BOOST_TEST((response("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n", Method::connect, true).info.framing == Framing::length));
}

BOOST_AUTO_TEST_CASE(trailers_are_cleaned) {
  HeaderBlock t;
  for (const char* name : {"Content-Length", "Host", "Transfer-Encoding", "Authorization", "Cookie", "Set-Cookie", "TE", "Connection",
                           "Content-Type", "X-Forwarded-For", "Trailer", "Cache-Control", "Content-Encoding"})
    t.add(name, "1");
  t.add("X-T", "1");
  t.add("grpc-status", "0");
  clean_trailers(t, {});
  BOOST_TEST(test::describe(t, true) == "X-T: 1\ngrpc-status: 0\n");
}

BOOST_AUTO_TEST_CASE(written_requests) {
  const auto write = [](Head h, WriteInfo info) {
    Chain out;
    write_request(out, h, info);
    return text_of(out);
  };
  WriteInfo none;
  BOOST_TEST(write(Head::request(Method::get, "http", "a.test", "/x"), none) == "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  Head post = Head::request(Method::post, "http", "a.test", "/", BodySize::exactly(5));
  post.fields.add("X-Spelling", "1");
  WriteInfo length;
  length.framing = Framing::length;
  length.length = 5;
  BOOST_TEST(write(post.clone(), length) == "POST / HTTP/1.1\r\nHost: a.test\r\nX-Spelling: 1\r\nContent-Length: 5\r\n\r\n");
  post.fields.add(HeaderId::content_length, "5");
  BOOST_TEST(write(post.clone(), length) == "POST / HTTP/1.1\r\nHost: a.test\r\nX-Spelling: 1\r\ncontent-length: 5\r\n\r\n");
  WriteInfo chunked;
  chunked.framing = Framing::chunked;
  chunked.close = true;
  post.fields.add(HeaderId::te, "trailers");
  BOOST_TEST(write(post.clone(), chunked) ==
             "POST / HTTP/1.1\r\nHost: a.test\r\nX-Spelling: 1\r\nte: trailers\r\nTransfer-Encoding: chunked\r\nConnection: TE, close\r\n\r\n");
  BOOST_TEST(write(Head::request(Method::connect, "http", "[::1]:443", ""), none) ==
             "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
  Head big = Head::request(Method::get, "http", "a.test", "/");
  const std::string value(40000, 'v');
  big.fields.add("X", value);
  BOOST_TEST(write(big.clone(), none) == "GET / HTTP/1.1\r\nHost: a.test\r\nX: " + value + "\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(written_responses) {
  const auto write = [](const Head& h, WriteInfo info, std::string_view key = {}) {
    Chain out;
    write_response(out, h, info, key);
    return text_of(out);
  };
  WriteInfo length;
  length.framing = Framing::length;
  BOOST_TEST(write(Head::response(200), length) == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  Head odd = Head::response(299);
  odd.reason = "Odd";
  length.close = true;
  BOOST_TEST(write(odd, length) == "HTTP/1.1 299 Odd\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  Head head = Head::response(200);
  head.fields.add("Content-Length", "10");
  WriteInfo announced;
  announced.no_framing_fields = true;
  announced.keep_alive = true;
  BOOST_TEST(write(head, announced) == "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: keep-alive\r\n\r\n");
  BOOST_TEST(write(Head::interim(100), {}) == "HTTP/1.1 100 Continue\r\n\r\n");
  WriteInfo websocket;
  websocket.framing = Framing::tunnel;
  websocket.websocket = true;
  BOOST_TEST(write(Head::response(200), websocket, "dGhlIHNhbXBsZSBub25jZQ==") ==
             "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
             "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(written_chunks) {
  Chain out;
  write_chunk_size(out, 0xabc);
  HeaderBlock trailers;
  trailers.add("X-T", "1");
  trailers.add("content-length", "9");
  write_last_chunk(out, &trailers);
  write_last_chunk(out, nullptr);
  BOOST_TEST(text_of(out) == "abc\r\n0\r\nX-T: 1\r\n\r\n0\r\n\r\n");
}

}  // namespace
}  // namespace twp::h1
