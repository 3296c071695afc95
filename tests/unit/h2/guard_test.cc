// The counter of suspicious events and the frame guard by themselves, with a clock of their own.
#include <boost/test/unit_test.hpp>

#include "h2/frame_guard.h"
#include "support/h2_frames.h"

namespace twp::test {
namespace {

using twp::h2::FrameGuard;
using twp::GlitchCounter;

constexpr Instant kSecond = 1'000'000'000;

struct NoStreams final : FrameGuard::Streams {
  bool is_open(std::int32_t) noexcept override { return open; }
  bool is_fairly_cancelled(std::int32_t) noexcept override { return false; }
  void catch_up() noexcept override { ++caught_up; }
  bool open = false;
  int caught_up = 0;
};

FrameGuard::Verdict look_at(FrameGuard& guard, NoStreams& streams, const std::string& octets,
                            Instant now = kSecond) {
  const auto in = std::as_bytes(std::span(octets));
  auto verdict = FrameGuard::Verdict::pass;
  for (std::size_t at = 0; at < in.size() && verdict == FrameGuard::Verdict::pass;)
    verdict = guard.look(in, at, streams, now);
  return verdict;
}

BOOST_AUTO_TEST_CASE(a_burst_is_forgiven_and_leaks_with_the_rate) {
  HttpLimits limits;
  limits.h2_glitch_burst = 10;
  limits.h2_glitch_rate = 2;
  GlitchCounter c;
  for (int i = 0; i < 10; ++i) c.add(GlitchCounter::kWhole, kSecond, limits);
  BOOST_TEST(!c.over(limits));
  c.add(GlitchCounter::kQuarter, kSecond, limits);
  BOOST_TEST(c.over(limits));
  c.add(GlitchCounter::kWhole, 2 * kSecond, limits);  // two have leaked
  BOOST_TEST(!c.over(limits));
  c.forgive();
  for (int i = 0; i < 100; ++i) {
    const Instant now = 3 * kSecond + static_cast<Instant>(i) * kSecond / 2;
    c.add(GlitchCounter::kWhole, now, limits);  // as many as are forgiven, for ever
    BOOST_TEST(!c.over(limits));
  }
}

BOOST_AUTO_TEST_CASE(a_rate_of_nothing_forgives_nothing) {
  HttpLimits limits;
  limits.h2_glitch_burst = 1;
  limits.h2_glitch_rate = 0;
  GlitchCounter c;
  c.add(GlitchCounter::kWhole, kSecond, limits);
  c.add(GlitchCounter::kQuarter, 1000 * kSecond, limits);
  BOOST_TEST(c.over(limits));
}

BOOST_AUTO_TEST_CASE(a_ping_a_second_and_an_update_for_each_data_frame_count_nothing_in_the_end) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(guard, streams, h2::hello());
  for (Instant s = 1; s < 1000; ++s) {
    guard.sent_data(100);
    look_at(guard, streams,
            h2::frame(h2::ping, 0, 0, "12345678") + h2::frame(h2::window_update, 0, 0, h2::number(100, 4)) +
                h2::frame(h2::window_update, 0, 1, h2::number(100, 4)),
            s * kSecond);
    BOOST_REQUIRE(guard.glitches.events() <= 1u);
  }
}

/// gRPC measures the way with a PING for each message that finds none under way, a thousand a second.
BOOST_AUTO_TEST_CASE(a_ping_for_each_data_frame_of_ours_is_welcome_and_one_more_is_not) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(guard, streams, h2::hello());
  const std::string ping = h2::frame(h2::ping, 0, 0, "12345678");
  for (Instant i = 0; i < 5000; ++i) {
    guard.sent_data(1024);
    look_at(guard, streams, ping, kSecond + i * 1'000'000);
  }
  BOOST_TEST(guard.glitches.events() == 0u);
  guard.sent_data(0);  // the end of a stream
  for (std::uint32_t i = 0; i < limits.h2_glitch_burst * 4 + 1; ++i) look_at(guard, streams, ping, 6 * kSecond);
  BOOST_TEST(guard.glitches.over(limits));
}

BOOST_AUTO_TEST_CASE(what_pings_are_saved_up_is_bounded) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(guard, streams, h2::hello());
  for (int i = 0; i < 100'000; ++i) guard.sent_data(1);
  for (int i = 0; i < 2000; ++i) look_at(guard, streams, h2::frame(h2::ping, 0, 0, "12345678"));
  BOOST_TEST(guard.glitches.over(limits));
}

BOOST_AUTO_TEST_CASE(a_closed_stream_and_one_that_was_never_opened_are_told_apart) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(
      guard, streams,
      h2::hello() + h2::frame(h2::headers, h2::end_headers, 1) + h2::frame(h2::headers, h2::end_headers, 7));
  BOOST_TEST((look_at(guard, streams, h2::frame(h2::data, 0, 1)) == FrameGuard::Verdict::stream_closed));
  BOOST_TEST((look_at(guard, streams, h2::frame(h2::headers, h2::end_headers, 5)) ==
              FrameGuard::Verdict::protocol_error));
  BOOST_TEST((look_at(guard, streams, h2::frame(h2::data, 0, 9)) ==
              FrameGuard::Verdict::pass));  // idle: nghttp2's business
  BOOST_TEST(streams.caught_up == 2);
}

BOOST_AUTO_TEST_CASE(resets_of_ours_are_remembered_and_forgotten_on_the_safe_side) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(guard, streams, h2::hello() + h2::frame(h2::headers, h2::end_headers, 4001));
  for (std::int32_t id = 1; id < 2001; id += 2) guard.we_reset(id);
  for (const std::uint32_t id : {1u, 1001u, 1999u})  // long forgotten, or remembered: passed over either way
    BOOST_TEST((look_at(guard, streams, h2::frame(h2::data, 0, id)) == FrameGuard::Verdict::pass));
  BOOST_TEST((look_at(guard, streams, h2::frame(h2::data, 0, 4001)) == FrameGuard::Verdict::stream_closed));
}

BOOST_AUTO_TEST_CASE(a_header_block_is_open_until_its_last_octet) {
  const HttpLimits limits;
  FrameGuard guard(limits, true);
  NoStreams streams;
  look_at(guard, streams, h2::hello());
  const std::string frames =
      h2::frame(h2::headers, 0, 1, "abc") + h2::frame(h2::continuation, h2::end_headers, 1, "defg");
  for (std::size_t i = 0; i < frames.size(); ++i) {
    look_at(guard, streams, frames.substr(i, 1), (10 + i) * kSecond);
    BOOST_TEST(guard.in_header_block() == (i >= 8 && i + 1 < frames.size()));
    if (guard.in_header_block()) BOOST_TEST(guard.header_block_since() == 18 * kSecond);
  }
}

}  // namespace
}  // namespace twp::test
