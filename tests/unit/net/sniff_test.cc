// Which protocol a cleartext connection speaks, from its first octets in whatever pieces they come.
#include "net/sniff.h"

#include <boost/test/unit_test.hpp>

#include "support/memory_transport.h"

using namespace twp;
using namespace twp::test;

namespace {

struct Rig final : SniffHandler {
  explicit Rig(SniffTimes times = {std::chrono::seconds(60), std::chrono::seconds(60)}) {
    auto [ours, theirs] = MemoryTransport::make_pair(worker);
    server = ours.get();
    peer = std::make_unique<RawPeer>(std::move(theirs));
    sniffer = std::make_unique<Sniffer>(worker, std::move(ours), *this, times);
    run_quiet(worker);
  }
  void on_sniffed(Sniffer& s, Sniffed w, Chain octets) noexcept override {
    which = w;
    transport = s.take_transport();
    while (!octets.empty()) first += octets.pop_front().text();
    worker.retire(std::move(sniffer));
  }
  void on_sniff_ended(Sniffer&) noexcept override {
    ended = true;
    worker.retire(std::move(sniffer));
  }
  void send(std::string_view octets) {
    peer->send(octets);
    run_quiet(worker);
  }

  Worker worker;
  MemoryTransport* server = nullptr;  // valid until the sniffer has ended
  std::unique_ptr<RawPeer> peer;
  std::unique_ptr<Sniffer> sniffer;
  std::unique_ptr<Transport> transport;
  Sniffed which = Sniffed::undecided;
  std::string first;
  bool ended = false;
};

constexpr std::string_view kDecides = kHttp2Preface.substr(0, kHttp2PrefaceDecides);

}  // namespace

BOOST_AUTO_TEST_SUITE(sniffing)

BOOST_AUTO_TEST_CASE(the_first_octet_that_differs_decides) {
  BOOST_CHECK(sniff("") == Sniffed::undecided);
  for (std::size_t n = 1; n < kDecides.size(); ++n) {
    BOOST_CHECK(sniff(kDecides.substr(0, n)) == Sniffed::undecided);
    std::string other(kDecides.substr(0, n));
    other.back() ^= 1;
    BOOST_CHECK(sniff(other) == Sniffed::http1);
  }
  BOOST_CHECK(sniff(kDecides) == Sniffed::http2);
  BOOST_CHECK(sniff(kHttp2Preface) == Sniffed::http2);
  BOOST_CHECK(sniff(std::string(kDecides) + "XX") ==
              Sniffed::http2);  // a bad rest is for the session to refuse
  BOOST_CHECK(sniff("G") == Sniffed::http1);
  BOOST_CHECK(sniff("PUT / HTTP/1.1\r\n") == Sniffed::http1);
  BOOST_CHECK(sniff("PRI * HTTP/1.1\r\n") == Sniffed::http1);
  BOOST_CHECK(sniff("pri * HTTP/2.0") == Sniffed::http1);
}

BOOST_AUTO_TEST_CASE(every_octet_is_handed_on_however_they_come) {
  for (const std::string_view text :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("PRIVET / HTTP/1.1\r\n\r\n"),
        kHttp2Preface, std::string_view("P")}) {
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
      Rig rig;
      std::size_t sent = 0;
      while (sent < text.size() && rig.which == Sniffed::undecided) {
        rig.send(text.substr(sent, piece));
        sent += std::min(piece, text.size() - sent);
      }
      if (text == "P") {
        BOOST_CHECK(rig.which == Sniffed::undecided);
        continue;
      }
      BOOST_CHECK(rig.which == (text == kHttp2Preface ? Sniffed::http2 : Sniffed::http1));
      BOOST_TEST(rig.first == text.substr(0, sent));
      BOOST_REQUIRE(rig.transport != nullptr);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_request_in_one_piece_is_read_once) {
  Rig rig;
  BOOST_TEST(rig.server->reads() == 0u);
  rig.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  BOOST_CHECK(rig.which == Sniffed::http1);
  BOOST_TEST(static_cast<MemoryTransport&>(*rig.transport).reads() == 1u);
}

BOOST_AUTO_TEST_CASE(undecided_it_holds_no_memory) {
  const std::size_t before = BlockPool::local().live_blocks();
  Rig warm;
  warm.send("P");
  const std::size_t one = BlockPool::local().live_blocks();
  std::vector<std::unique_ptr<Rig>> more;
  for (int i = 0; i < 50; ++i) more.emplace_back(std::make_unique<Rig>())->send("PRI * HTTP/2.0\r\n\r");
  BOOST_TEST(BlockPool::local().live_blocks() == one);
  BOOST_TEST(one <= before + 2);
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_ends_it) {
  for (const std::string_view octets : {"", "PRI"}) {
    for (const bool reset : {false, true}) {
      Rig rig;
      if (!octets.empty()) rig.send(octets);
      if (reset)
        rig.peer->reset();
      else
        rig.peer->finish();
      run_quiet(rig.worker);
      BOOST_TEST(rig.ended);
      BOOST_CHECK(rig.which == Sniffed::undecided);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_request_behind_which_the_client_ends_its_side_is_whole) {
  Rig rig;
  rig.peer->send("GET / HTTP/1.0\r\n\r\n");
  rig.peer->finish();
  run_quiet(rig.worker);
  BOOST_TEST(rig.first == "GET / HTTP/1.0\r\n\r\n");
  BOOST_TEST(!rig.ended);
}

BOOST_AUTO_TEST_CASE(it_waits_so_long_for_the_first_octet_and_so_long_for_the_rest) {
  const Duration quick = std::chrono::milliseconds(20), slow = std::chrono::seconds(60);
  Rig idle({quick, slow});
  BOOST_TEST(run_until(idle.worker, [&] { return idle.ended; }));
  Rig slow_head({slow, quick});
  run_quiet(slow_head.worker);
  BOOST_TEST(!slow_head.ended);
  slow_head.send("PRI");
  BOOST_TEST(run_until(slow_head.worker, [&] { return slow_head.ended; }));
  BOOST_TEST(run_until(slow_head.worker, [&] { return slow_head.peer->over(); }));
}

/// Octet after octet does not move the deadline.
BOOST_AUTO_TEST_CASE(the_head_time_runs_from_the_first_octet) {
  Rig rig({std::chrono::seconds(60), std::chrono::milliseconds(60)});
  const Instant begin = monotonic_now();
  std::size_t sent = 0;
  BOOST_TEST(run_until(rig.worker, [&] {
    if (sent < kDecides.size() - 1 && monotonic_now() - begin > sent * 20'000'000u)
      rig.peer->send(kDecides.substr(sent++, 1));
    return rig.ended;
  }));
  BOOST_TEST(sent < 10u);
}

BOOST_AUTO_TEST_CASE(draining_gives_a_request_that_crosses_it_a_moment) {
  const auto quick = std::chrono::milliseconds(20);
  Rig crossing, silent, begun;
  crossing.sniffer->drain(quick);
  crossing.send("GET / HTTP/1.1\r\n\r\n");
  BOOST_CHECK(crossing.which == Sniffed::http1);
  silent.sniffer->drain(quick);
  BOOST_TEST(run_until(silent.worker, [&] { return silent.ended; }));
  begun.send("PRI * ");
  begun.sniffer->drain(Duration::zero());
  run_quiet(begun.worker);
  BOOST_TEST(!begun.ended);
  begun.send(kDecides.substr(6));
  BOOST_CHECK(begun.which == Sniffed::http2);
}

BOOST_AUTO_TEST_CASE(closing_tells_nobody) {
  Rig rig;
  rig.sniffer->close(Fault::shutdown);
  run_quiet(rig.worker);
  BOOST_TEST(!rig.ended);
  BOOST_TEST(rig.peer->was_reset());
}

BOOST_AUTO_TEST_SUITE_END()
