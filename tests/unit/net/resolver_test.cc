// The resolver against a small name server on loopback that answers as told.
#include "net/resolver.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "net_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

/// Answers A questions from a table; AAAA questions get an empty answer.
class NameServer final : PollHandler {
 public:
  struct Answer {
    std::vector<std::string> a;
    std::uint32_t ttl = 60;
    unsigned rcode = 0;  // 2 SERVFAIL, 3 NXDOMAIN
    bool silent = false;
  };

  explicit NameServer(Worker& w) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const Address any = *Address::parse("127.0.0.1", 0);
    BOOST_REQUIRE(::bind(fd, any.sa(), any.length()) == 0);
    sockaddr_storage ss{};
    socklen_t n = sizeof ss;
    getsockname(fd, reinterpret_cast<sockaddr*>(&ss), &n);
    at = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&ss)).text();
    BOOST_REQUIRE(poll_.open_level(w, fd, *this));
  }

  std::map<std::string, Answer> names;
  std::map<std::string, int> asked;  // A questions
  std::string at;

 private:
  void on_poll(Ready) noexcept override {
    std::array<char, 1500> in;
    sockaddr_storage from{};
    socklen_t from_n = sizeof from;
    const ssize_t n = ::recvfrom(poll_.fd(), in.data(), in.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_n);
    if (n < 12) return;
    const std::string_view q(in.data(), static_cast<std::size_t>(n));
    std::string name;
    std::size_t i = 12;
    while (i < q.size() && q[i] != 0) {
      const auto len = static_cast<std::size_t>(static_cast<unsigned char>(q[i]));
      name += (name.empty() ? "" : ".") + std::string(q.substr(i + 1, len));
      i += 1 + len;
    }
    const unsigned type = static_cast<unsigned char>(q[i + 2]);
    if (type == 1) ++asked[name];
    const Answer& answer = names[name];
    if (answer.silent) return;
    const bool with_a = type == 1 && answer.rcode == 0;
    const std::size_t count = with_a ? answer.a.size() : 0;
    std::string out(q.substr(0, 2));
    out += '\x81';
    out += static_cast<char>(0x80 | answer.rcode);
    out += std::string{0, 1, 0, static_cast<char>(count), 0, 0, 0, 0};
    out += q.substr(12, i + 5 - 12);
    for (std::size_t k = 0; k < count; ++k) {
      out += std::string{'\xc0', 12, 0, 1, 0, 1};
      for (int s = 24; s >= 0; s -= 8) out += static_cast<char>(answer.ttl >> s);
      out += std::string{0, 4};
      out += Address::parse(answer.a[k], 0)->ip_octets();
    }
    ::sendto(poll_.fd(), out.data(), out.size(), 0, reinterpret_cast<sockaddr*>(&from), from_n);
  }
  PollFd poll_;
};

struct Waiter final : ResolveWaiter {
  void on_resolved(const std::vector<Address>& addresses) noexcept override {
    ++answers;
    text.clear();
    for (const Address& a : addresses) text += (text.empty() ? "" : " ") + a.ip();
    if (then) then();
  }
  void on_resolve_failed(const std::string& detail) noexcept override {
    ++failures;
    text = detail;
  }
  bool done() const { return answers + failures != 0; }
  int answers = 0;
  int failures = 0;
  std::string text;
  std::function<void()> then;
};

struct Fixture {
  Fixture() {
    hosts = (std::filesystem::temp_directory_path() / "twp-hosts-XXXXXX").string();
    ::close(mkstemp(hosts.data()));
    std::ofstream(hosts) << "127.0.0.9 fixed.test\n";
    options.servers = server.at;
    options.hosts_file = hosts;
    options.timeout = std::chrono::milliseconds(300);
    options.tries = 2;
    options.min_ttl = std::chrono::milliseconds(200);
    options.negative_ttl = std::chrono::milliseconds(300);
    start();
  }
  ~Fixture() {
    resolver.reset();
    std::filesystem::remove(hosts);
  }
  void start() { resolver = std::make_unique<Resolver>(w, options); }
  /// Asks and waits for the answer.
  std::string ask(const std::string& name) {
    Waiter waiter;
    resolver->resolve(name, waiter);
    BOOST_REQUIRE(turn_until(w, [&] { return waiter.done(); }));
    return waiter.text;
  }
  /// Lets the worker's clock pass `ms`.
  void pass(unsigned ms) {
    const Instant until = w.now() + ms * 1'000'000u;
    BOOST_REQUIRE(turn_until(w, [&] { return w.now() > until; }));
  }
  Worker w;
  NameServer server{w};
  ResolverOptions options;
  std::string hosts;
  std::unique_ptr<Resolver> resolver;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(resolver, Fixture)

BOOST_AUTO_TEST_CASE(literals_at_once) {
  for (const char* ip : {"127.0.0.1", "::1", "2001:db8::5"}) {
    Waiter waiter;
    resolver->resolve(ip, waiter);
    BOOST_TEST(waiter.answers == 1);
    BOOST_TEST(waiter.text == ip);
  }
  Waiter empty;
  resolver->resolve("", empty);
  BOOST_TEST(empty.failures == 1);
}

BOOST_AUTO_TEST_CASE(hosts_file) {
  BOOST_TEST(ask("fixed.test") == "127.0.0.9");
  BOOST_TEST(server.asked["fixed.test"] == 0);
}

BOOST_AUTO_TEST_CASE(several_addresses_port_zero) {
  server.names["a.test"].a = {"127.0.0.2", "127.0.0.3"};
  const std::string got = ask("A.test");
  BOOST_TEST((got == "127.0.0.2 127.0.0.3" || got == "127.0.0.3 127.0.0.2"), got);
}

BOOST_AUTO_TEST_CASE(cached_until_the_ttl_is_over) {
  server.names["a.test"] = {{"127.0.0.2"}, 1, 0, false};
  BOOST_TEST(ask("a.test") == "127.0.0.2");
  server.names["a.test"].a = {"127.0.0.3"};
  Waiter cached;
  resolver->resolve("a.test", cached);
  BOOST_TEST(cached.text == "127.0.0.2");  // before resolve() returned
  BOOST_TEST(server.asked["a.test"] == 1);
  pass(1050);
  BOOST_TEST(ask("a.test") == "127.0.0.3");
  BOOST_TEST(server.asked["a.test"] == 2);
}

BOOST_AUTO_TEST_CASE(a_ttl_of_zero_counts_as_the_least) {
  server.names["a.test"] = {{"127.0.0.2"}, 0, 0, false};
  ask("a.test");
  ask("a.test");
  BOOST_TEST(server.asked["a.test"] == 1);
  pass(250);
  ask("a.test");
  BOOST_TEST(server.asked["a.test"] == 2);
}

BOOST_AUTO_TEST_CASE(equal_questions_are_joined) {
  server.names["a.test"].a = {"127.0.0.2"};
  Waiter many[5];
  for (Waiter& m : many) resolver->resolve("a.test", m);
  BOOST_REQUIRE(turn_until(w, [&] { return many[4].done(); }));
  for (Waiter& m : many) BOOST_TEST(m.answers == 1);
  BOOST_TEST(server.asked["a.test"] == 1);
}

BOOST_AUTO_TEST_CASE(no_such_name_is_remembered_for_a_while) {
  server.names["gone.test"].rcode = 3;
  const std::string text = ask("gone.test");
  BOOST_TEST(text.find("cannot resolve 'gone.test': ") == 0u, text);
  const int asked = server.asked["gone.test"];
  Waiter again;
  resolver->resolve("gone.test", again);
  BOOST_TEST(again.failures == 1);  // at once
  BOOST_TEST(server.asked["gone.test"] == asked);
  server.names["gone.test"] = {{"127.0.0.4"}, 60, 0, false};
  pass(350);
  BOOST_TEST(ask("gone.test") == "127.0.0.4");
}

BOOST_AUTO_TEST_CASE(no_address) {
  server.names["empty.test"] = {};
  BOOST_TEST(ask("empty.test").find("cannot resolve 'empty.test': ") == 0u);
}

BOOST_AUTO_TEST_CASE(a_silent_server_times_out) {
  server.names["slow.test"].silent = true;
  const Instant begin = monotonic_now();
  const std::string text = ask("slow.test");
  BOOST_TEST(text.find("cannot resolve 'slow.test': ") == 0u, text);
  const Instant took = monotonic_now() - begin;
  BOOST_TEST(took >= 550'000'000u);  // two tries of 300 ms
  BOOST_TEST(took < 3'000'000'000u);
}

BOOST_AUTO_TEST_CASE(old_addresses_serve_while_the_server_is_down) {
  server.names["a.test"] = {{"127.0.0.2"}, 0, 0, false};
  BOOST_TEST(ask("a.test") == "127.0.0.2");
  server.names["a.test"].silent = true;
  pass(250);
  BOOST_TEST(ask("a.test") == "127.0.0.2");
  // Known to be down: at once now.
  Waiter again;
  resolver->resolve("a.test", again);
  BOOST_TEST(again.text == "127.0.0.2");
  server.names["a.test"] = {{"127.0.0.5"}, 60, 0, false};
  pass(350);
  BOOST_TEST(ask("a.test") == "127.0.0.5");
}

BOOST_AUTO_TEST_CASE(old_addresses_serve_after_a_second_of_silence) {
  options.timeout = std::chrono::seconds(10);
  start();
  server.names["a.test"] = {{"127.0.0.2"}, 0, 0, false};
  BOOST_TEST(ask("a.test") == "127.0.0.2");
  server.names["a.test"].silent = true;
  pass(250);
  const Instant begin = monotonic_now();
  BOOST_TEST(ask("a.test") == "127.0.0.2");
  BOOST_TEST(monotonic_now() - begin < 5'000'000'000u);
  Waiter again;  // the question is still open
  resolver->resolve("a.test", again);
  BOOST_TEST(again.text == "127.0.0.2");
}

BOOST_AUTO_TEST_CASE(old_addresses_do_not_outlive_their_time) {
  options.stale_for = std::chrono::milliseconds(100);
  start();
  server.names["a.test"] = {{"127.0.0.2"}, 0, 0, false};
  ask("a.test");
  server.names["a.test"].silent = true;
  pass(350);
  BOOST_TEST(ask("a.test").find("cannot resolve") == 0u);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_gone_takes_its_addresses_along) {
  server.names["a.test"] = {{"127.0.0.2"}, 0, 0, false};
  ask("a.test");
  server.names["a.test"].rcode = 3;
  pass(250);
  BOOST_TEST(ask("a.test").find("cannot resolve") == 0u);
}

BOOST_AUTO_TEST_CASE(a_waiter_that_dies_is_not_told) {
  server.names["a.test"].a = {"127.0.0.2"};
  auto gone = std::make_unique<Waiter>();
  Waiter stays;
  resolver->resolve("a.test", *gone);
  resolver->resolve("a.test", stays);
  gone.reset();
  BOOST_REQUIRE(turn_until(w, [&] { return stays.done(); }));
  BOOST_TEST(stays.text == "127.0.0.2");
}

BOOST_AUTO_TEST_CASE(a_waiter_may_kill_another_and_ask_again_from_inside) {
  server.names["a.test"].a = {"127.0.0.2"};
  server.names["b.test"].a = {"127.0.0.3"};
  Waiter first, next;
  auto victim = std::make_unique<Waiter>();
  first.then = [&] {
    victim.reset();
    resolver->resolve("b.test", next);
  };
  resolver->resolve("a.test", first);
  resolver->resolve("a.test", *victim);
  BOOST_REQUIRE(turn_until(w, [&] { return next.done(); }));
  BOOST_TEST(next.text == "127.0.0.3");
}

BOOST_AUTO_TEST_CASE(nobody_is_told_after_the_resolver_is_gone) {
  server.names["slow.test"].silent = true;
  Waiter waiter;
  resolver->resolve("slow.test", waiter);
  w.turn(Duration::zero());
  resolver.reset();
  for (int i = 0; i < 10; ++i) w.turn(std::chrono::milliseconds(1));
  BOOST_TEST(!waiter.done());
  BOOST_TEST(!waiter.linked());
}

BOOST_AUTO_TEST_CASE(bad_servers_fail_every_question_in_words) {
  options.servers = "not an address";
  start();
  const std::string text = ask("a.test");
  BOOST_TEST(text.find("cannot resolve 'a.test': the resolver cannot start: ") == 0u, text);
}

BOOST_AUTO_TEST_CASE(many_names_do_not_stay_for_ever) {
  for (int i = 0; i < 10000; ++i) server.names["n" + std::to_string(i) + ".test"] = {{"127.0.0.2"}, 60, 0, false};
  for (int i = 0; i < 4200; ++i) ask("n" + std::to_string(i) + ".test");
  // The first ones were forgotten, the last one was not.
  const int last = server.asked["n4199.test"];
  ask("n4199.test");
  BOOST_TEST(server.asked["n4199.test"] == last);
  ask("n0.test");
  BOOST_TEST(server.asked["n0.test"] == 2);
}

BOOST_AUTO_TEST_SUITE_END()
