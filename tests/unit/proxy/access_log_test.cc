#include "proxy/access_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/log.h"

using namespace twp;

namespace {

std::string contents(const std::string& file) {
  std::ifstream in(file);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

struct File {
  std::string name = "/tmp/twp_access_log_test." + std::to_string(::getpid()) + "." + std::to_string(++count);
  ~File() { std::remove(name.c_str()); }
  static inline int count = 0;
};

ExchangeRecord simple() {
  ExchangeRecord r;
  r.wall = 1'769'860'800'123'000'000;
  r.started = 1'000'000;
  r.ended = 3'500'000;
  static const Address kClient = *Address::parse("127.0.0.1", 5555);
  r.client = &kClient;
  r.method = "GET";
  r.scheme = "http";
  r.authority = "a.test";
  r.path = "/";
  r.status = 200;
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(access_log)

BOOST_AUTO_TEST_CASE(the_least_line) {
  File f;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  BOOST_REQUIRE(log.has_value());
  (*log)->on_exchange_done(simple());
  (*log)->flush();
  BOOST_TEST(contents(f.name) ==
             R"({"time":"2026-01-31T12:00:00.123Z","client":"127.0.0.1:5555","method":"GET","scheme":"http","host":"a.test",)"
             R"("path":"/","version":"HTTP/1.1","status":200,"fault":"ok","request_octets":0,"response_octets":0,"duration_us":2500})"
             "\n");
}

BOOST_AUTO_TEST_CASE(every_member) {
  File f;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  const Address origin = *Address::parse("::1", 8080);
  ExchangeRecord r = simple();
  r.request_sent = 1'500'000;
  r.response = 3'000'000;
  r.tls = true;
  r.tls_version = "TLSv1.3";
  r.cipher = "TLS_AES_128_GCM_SHA256";
  r.sni = "a.test";
  r.client_subject = "CN=alice";
  r.client_version = {1, 0};
  r.user_agent = "u";
  r.referer = "r";
  r.fault = Fault::origin_reset;
  r.detail = "d";
  r.generated = true;
  r.request_octets = 1;
  r.response_octets = 18446744073709551615ULL;
  r.tunnel = true;
  r.protocol = "websocket";
  r.cluster = "c";
  r.origin = "o:1";
  r.origin_address = &origin;
  r.reused = r.replayed = true;
  (*log)->on_exchange_done(r);
  (*log)->flush();
  BOOST_TEST(contents(f.name) ==
             R"({"time":"2026-01-31T12:00:00.123Z","client":"127.0.0.1:5555","method":"GET","scheme":"http","host":"a.test","path":"/",)"
             R"("version":"HTTP/1.0","status":200,"fault":"origin-reset","detail":"d","generated":true,"request_octets":1,)"
             R"("response_octets":18446744073709551615,"duration_us":2500,"wait_us":500,"origin_us":1500,"cluster":"c",)"
             R"("origin":"o:1","origin_address":"[::1]:8080","reused":true,"replayed":true,"tls":"TLSv1.3",)"
             R"("cipher":"TLS_AES_128_GCM_SHA256","sni":"a.test","client_subject":"CN=alice","protocol":"websocket","tunnel":true,)"
             R"("user_agent":"u","referer":"r"})"
             "\n");
}

// A23: nothing that a peer sends can end the line, forge a member or reach a terminal.
BOOST_AUTO_TEST_CASE(every_octet_is_escaped_where_it_must_be) {
  File f;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  for (int c = 0; c < 256; ++c) {
    const std::string octet(1, static_cast<char>(c));
    ExchangeRecord r = simple();
    r.path = octet;
    r.method = octet;
    r.authority = octet;
    r.user_agent = octet;
    r.referer = octet;
    r.detail = octet;
    r.origin = octet;
    r.sni = octet;
    (*log)->on_exchange_done(r);
  }
  (*log)->flush();
  std::istringstream in(contents(f.name));
  int c = 0;
  for (std::string line; std::getline(in, line); ++c) {
    for (const char x : line) BOOST_REQUIRE((x >= 0x20 && x < 0x7f));
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, c == '"' || c == '\\' ? "\\%c" : c < 0x20 || c >= 0x7f ? "\\u%04x" : "%c", c);
    BOOST_TEST(line.find("\"path\":\"" + std::string(escaped) + "\",") != std::string::npos, line);
    BOOST_TEST(line.find("\"user_agent\":\"" + std::string(escaped) + "\",") != std::string::npos, line);
  }
  BOOST_TEST(c == 256);
}

BOOST_AUTO_TEST_CASE(refused_requests) {
  File f;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  PeerInfo client;
  client.remote = *Address::parse("127.0.0.1", 7);
  (*log)->on_rejected(client, Fault::head_too_large);
  (*log)->flush();
  const std::string line = contents(f.name);
  BOOST_TEST(line.find(R"("client":"127.0.0.1:7","status":431,"fault":"head-too-large","generated":true})") != std::string::npos, line);
}

BOOST_AUTO_TEST_CASE(one_turn_is_one_write_and_64_kib_do_not_wait) {
  File f;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  (*log)->on_exchange_done(simple());
  (*log)->on_exchange_done(simple());
  BOOST_TEST(contents(f.name).empty());
  w.turn(Duration(0));
  const std::size_t two = contents(f.name).size();
  BOOST_TEST(two > 0);
  BOOST_TEST(two % 2 == 0);
  for (std::size_t n = 0; n < 64 * 1024; n += two / 2) (*log)->on_exchange_done(simple());
  BOOST_TEST(contents(f.name).size() > 64 * 1024);
}

BOOST_AUTO_TEST_CASE(rotation) {
  File f, rotated;
  Worker w;
  auto log = AccessLog::open(w, f.name);
  (*log)->on_exchange_done(simple());
  BOOST_REQUIRE(std::rename(f.name.c_str(), rotated.name.c_str()) == 0);
  BOOST_TEST((*log)->reopen(f.name).has_value());
  const std::size_t one = contents(rotated.name).size();
  BOOST_TEST(one > 0);  // what was held went to the old file
  BOOST_TEST(contents(f.name).empty());
  (*log)->on_exchange_done(simple());
  (*log)->flush();
  BOOST_TEST(contents(f.name).size() == one);
  BOOST_TEST(contents(rotated.name).size() == one);

  const auto bad = (*log)->reopen("/nonexistent/log");
  BOOST_REQUIRE(!bad.has_value());
  BOOST_TEST(bad.error().what == "cannot open '/nonexistent/log' for the access log: No such file or directory");
  (*log)->on_exchange_done(simple());
  (*log)->flush();
  BOOST_TEST(contents(f.name).size() == 2 * one);  // the old file stays

  BOOST_TEST((*log)->reopen("").has_value());
  (*log)->on_exchange_done(simple());
  (*log)->flush();
  BOOST_TEST(contents(f.name).size() == 2 * one);
}

BOOST_AUTO_TEST_CASE(a_full_disk_loses_lines_and_nothing_else) {
  Worker w;
  auto log = AccessLog::open(w, "/dev/full");
  BOOST_REQUIRE(log.has_value());
  for (int i = 0; i < 3; ++i) {
    (*log)->on_exchange_done(simple());
    w.turn(Duration(0));
  }
}

// Workers share a file: every line arrives whole.
BOOST_AUTO_TEST_CASE(workers_share_a_pipe) {
  File f;
  BOOST_REQUIRE(::mkfifo(f.name.c_str(), 0600) == 0);
  std::string got;
  const int keep = ::open(f.name.c_str(), O_RDWR | O_CLOEXEC);
  BOOST_REQUIRE(keep >= 0);
  const std::string long_path(9000, 'x');
  std::thread reader([&] {
    const int fd = ::open(f.name.c_str(), O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    std::size_t lines = 0;
    while (lines < 400) {
      const ssize_t n = ::read(fd, buffer, sizeof buffer);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
      lines += static_cast<std::size_t>(std::count(buffer, buffer + n, '\n'));
    }
    ::close(fd);
  });
  const auto work = [&] {
    Worker w;
    auto log = AccessLog::open(w, f.name);
    for (int i = 0; i < 200; ++i) {
      ExchangeRecord r = simple();
      r.path = long_path;
      (*log)->on_exchange_done(r);
      if (i % 5 == 0) w.turn(Duration(0));
    }
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  reader.join();
  ::close(keep);
  std::istringstream in(got);
  std::string first;
  std::getline(in, first);
  int lines = 1;
  for (std::string line; std::getline(in, line); ++lines) BOOST_REQUIRE(line == first);
  BOOST_TEST(lines == 400);
}

BOOST_AUTO_TEST_SUITE_END()
