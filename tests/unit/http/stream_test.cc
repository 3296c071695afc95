// The legal order of calls on a stream, row by row.
#include "http/stream.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "base/log.h"

using namespace twp;

namespace {

struct FakeStream final : Stream {
  Session& session() const noexcept override { std::abort(); }
  std::uint64_t id() const noexcept override { return 1; }
  void do_send_head(const Head& h, End e) override { said += h.is_interim() ? 'i' : e == End::yes ? 'H' : 'h'; }
  void do_send_body(Slice, End e) override { said += e == End::yes ? 'B' : 'b'; }
  void do_send_trailers(const HeaderBlock&) override { said += 't'; }
  void do_consume(std::size_t) noexcept override { said += 'c'; }
  void do_reset(Fault f) override { said += f == Fault::internal ? '!' : 'r'; }
  void again() { rearm(nullptr); }
  std::string said;
};

/// Plays a script of calls; what reached the wire comes back.
std::string play(std::string_view script) {
  FakeStream s;
  set_log_level(LogLevel::error);
  for (const char c : script) {
    switch (c) {
      case 'i': s.send_head(Head::interim(100), End::no); break;
      case 'h': s.send_head(Head::response(200), End::no); break;
      case 'H': s.send_head(Head::response(200), End::yes); break;
      case 'b': s.send_body(Slice::copy_of("x"), End::no); break;
      case 'B': s.send_body(Slice::copy_of("x"), End::yes); break;
      case '0': s.send_body(Slice(), End::no); break;
      case 'E': s.send_body(Slice(), End::yes); break;
      case 't': s.send_trailers(HeaderBlock()); break;
      case 'c': s.consume(1); break;
      case 'r': s.reset(Fault::cancelled); break;
      case 'n': s.again(); break;
      default: std::abort();
    }
  }
  return s.said;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream)

BOOST_AUTO_TEST_CASE(legal_orders_reach_the_wire) {
  for (const char* ok : {"H", "hB", "hbbB", "ht", "hbt", "iiH", "ihbB", "chcbcBc", "cH"}) BOOST_TEST(play(ok) == ok);
  BOOST_TEST(play("hE") == "hB");
  BOOST_TEST(play("h0b0B") == "hbB");  // nothing to say, nothing said
  BOOST_TEST(play("0H") == "H");
  BOOST_TEST(play("HnH") == "HH");
}

BOOST_AUTO_TEST_CASE(a_call_out_of_order_resets_and_sends_nothing) {
  BOOST_TEST(play("b") == "!");
  BOOST_TEST(play("B") == "!");
  BOOST_TEST(play("t") == "!");
  BOOST_TEST(play("hh") == "h!");
  BOOST_TEST(play("hH") == "h!");
  BOOST_TEST(play("hi") == "h!");
  for (const char* after : {"i", "h", "H", "b", "B", "t"}) {
    BOOST_TEST(play(std::string("H") + after) == "H!", after);
    BOOST_TEST(play(std::string("hB") + after) == "hB!", after);
    BOOST_TEST(play(std::string("ht") + after) == "ht!", after);
  }
}

BOOST_AUTO_TEST_CASE(after_a_reset_everything_is_quietly_nothing) {
  BOOST_TEST(play("rihHbBtcr") == "r");
  BOOST_TEST(play("hbr" "bBt") == "hbr");
  BOOST_TEST(play("Hr") == "Hr");
  BOOST_TEST(play("rnH") == "rH");
}

BOOST_AUTO_TEST_SUITE_END()
