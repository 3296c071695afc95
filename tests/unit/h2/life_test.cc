// The server role over time: timeouts, draining, half close, priorities, what a lost client leaves behind.
#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "support/h2_rig.h"

namespace twp::test {
namespace {

using namespace std::chrono_literals;

bool until_gone(H2ServerRig& rig) {
  const bool gone = run_until(rig.worker, [&] { return rig.owner.gone; });
  run_quiet(rig.worker);
  rig.collect();
  return gone;
}

BOOST_AUTO_TEST_CASE(a_server_says_hello_with_its_settings) {
  H2ServerRig rig;
  rig.greet();
  const std::string& s = rig.find(h2::settings)->payload;
  BOOST_TEST(s.find(h2::setting(3, 100)) != std::string::npos);
  BOOST_TEST(s.find(h2::setting(4, 256 * 1024)) != std::string::npos);
  BOOST_TEST(s.find(h2::setting(6, 64 * 1024)) != std::string::npos);
  BOOST_TEST(s.find(h2::setting(8, 1)) != std::string::npos);
  BOOST_TEST(s.find(h2::setting(9, 1)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_idle_connection_ends_with_goaway_whatever_pings_say) {
  HttpLimits limits;
  limits.keep_alive_timeout = 60ms;
  H2ServerRig rig(limits);
  rig.greet();
  int pings = 0;
  const auto ping_and_look = [&] {
    if (pings++ < 300) rig.peer->send(h2::frame(h2::ping, 0, 0, "12345678"));
    return rig.owner.gone;
  };
  BOOST_TEST(run_until(rig.worker, ping_and_look, 3s));
  BOOST_TEST(log_word(rig.owner.fault) == "ok");
}

BOOST_AUTO_TEST_CASE(an_idle_connection_says_goaway) {
  HttpLimits limits;
  limits.keep_alive_timeout = 30ms;
  H2ServerRig rig(limits);
  rig.greet();
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(rig.error(0) == 0);
  BOOST_TEST(rig.peer->eof());
}

BOOST_AUTO_TEST_CASE(a_client_that_says_nothing_ends) {
  HttpLimits limits;
  limits.head_timeout = 30ms;
  H2ServerRig rig(limits);
  rig.start();
  rig.play(h2::kPreface.substr(0, 10));
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(log_word(rig.owner.fault) == "head-timeout");
}

BOOST_AUTO_TEST_CASE(a_head_that_does_not_end_is_not_waited_for) {
  HttpLimits limits;
  limits.head_timeout = 30ms;
  H2ServerRig rig(limits);
  rig.greet();
  rig.play(h2::frame(h2::headers, 0, 1, h2::hpack(h2::get())));
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(rig.error(0) == 11);
  BOOST_TEST(rig.acceptor.streams.empty());
}

BOOST_AUTO_TEST_CASE(settings_that_are_not_acknowledged_end_the_connection) {
  HttpLimits limits;
  limits.h2_settings_timeout = 30ms;
  H2ServerRig rig(limits);
  rig.start();
  rig.play(h2::hello() + h2::whole_headers(1, h2::get()));
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(rig.error(0) == 4);  // SETTINGS_TIMEOUT
  BOOST_TEST(rig.stream().gone);
  BOOST_TEST(log_word(rig.owner.fault) == "client-closed");
  // Acknowledged in time, nothing ends.
  H2ServerRig good(limits);
  good.greet();
  BOOST_TEST(!run_until(good.worker, [&] { return good.owner.gone; }, 90ms));
}

BOOST_AUTO_TEST_CASE(a_client_that_is_about_to_run_out_of_ids_is_sent_away_in_time) {
  H2ServerRig rig;
  rig.greet();
  rig.play(h2::whole_headers(0x7fffffff - 2002, h2::get()));
  BOOST_TEST(rig.count(h2::goaway) == 0u);
  rig.play(h2::whole_headers(0x7fffffff - 2000, h2::get()));
  BOOST_REQUIRE(rig.count(h2::goaway) == 1u);
  BOOST_TEST(rig.error(0) == 0);
  // What comes until it has heard of it is served, up to the very last id.
  rig.play(h2::whole_headers(0x7fffffff, h2::get()));
  BOOST_REQUIRE(rig.acceptor.streams.size() == 3u);
  const h2::Frame* ping = rig.find(h2::ping);
  BOOST_REQUIRE(ping != nullptr);
  rig.play(h2::frame(h2::ping, h2::ack, 0, ping->payload));
  for (std::size_t i = 0; i < 3; ++i) rig.stream(i).respond(200, "ok");
  rig.settle();
  BOOST_TEST(rig.body(0x7fffffff) == "ok");
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(log_word(rig.stream(i).fault) == "ok");
  BOOST_TEST(rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(an_upload_that_drips_is_answered) {
  HttpLimits limits;
  limits.min_body_rate = 1'000'000;
  limits.body_rate_window = 40ms;
  H2ServerRig rig(limits);
  rig.greet();
  rig.play(h2::open_headers(1, h2::get("/", "POST")) + h2::frame(h2::data, 0, 1, "drop"));
  BOOST_TEST(run_until(rig.worker, [&] { return rig.stream().gone; }));
  run_quiet(rig.worker);
  rig.collect();
  BOOST_TEST(log_word(rig.stream().fault) == "too-slow");
  BOOST_REQUIRE(rig.find(h2::headers, 1) != nullptr);
  BOOST_TEST(rig.find(h2::headers, 1)->field(":status") == "408");
  BOOST_TEST(!rig.owner.gone);
}

/// Chats, watches, subscriptions: who leads them says something when there is something to say.
BOOST_AUTO_TEST_CASE(a_conversation_has_no_rate) {
  HttpLimits limits;
  limits.min_body_rate = 1'000'000;
  limits.body_rate_window = 20ms;
  for (const bool grpc : {false, true}) {
    H2ServerRig rig(limits);
    rig.greet();
    h2::Fields fields = h2::get("/", "POST");
    if (grpc) fields = h2::with(fields, {{"content-type", "application/grpc+proto"}});
    rig.play(h2::open_headers(1, fields) + h2::frame(h2::data, h2::none, 1, "hi"));
    if (!grpc) rig.stream().send_head(Head::response(200, BodySize::unknown()), End::no);
    BOOST_TEST(!run_until(rig.worker, [&] { return rig.stream().gone; }, 100ms));
  }
}

BOOST_AUTO_TEST_CASE(an_upload_that_waits_for_us_is_not_slow) {
  HttpLimits limits;
  limits.min_body_rate = 1'000'000;
  limits.body_rate_window = 20ms;
  H2ServerRig rig(limits);
  rig.greet();
  rig.play(h2::open_headers(1, h2::with(h2::get("/", "POST"), {{"expect", "100-continue"}})));
  BOOST_TEST(!run_until(rig.worker, [&] { return rig.stream().gone; }, 100ms));
}

BOOST_AUTO_TEST_CASE(draining_says_so_twice) {
  H2ServerRig rig;
  rig.greet();
  rig.play(h2::whole_headers(1, h2::get()));
  rig.owner.session()->drain();
  run_quiet(rig.worker);
  rig.collect();
  BOOST_REQUIRE(rig.count(h2::goaway) == 1u);
  BOOST_TEST(rig.find(h2::goaway)->u32(0) == 0x7fffffffu);
  // A request that crossed it is still taken.
  rig.play(h2::whole_headers(3, h2::get()));
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
  const h2::Frame* ping = rig.find(h2::ping);
  BOOST_REQUIRE(ping != nullptr);
  rig.play(h2::frame(h2::ping, h2::ack, 0, ping->payload));
  BOOST_REQUIRE(rig.count(h2::goaway) == 2u);
  BOOST_TEST(rig.frames.back().u32(0) == 3u);
  // One that came behind it is not; its body is passed over.
  rig.play(h2::open_headers(5, h2::get("/", "POST")) + h2::frame(h2::data, h2::end_stream, 5, "x"));
  BOOST_TEST(rig.acceptor.streams.size() == 2u);
  BOOST_TEST(!rig.owner.gone);
  rig.stream(0).respond(200, "a");
  rig.stream(1).respond(200, "b");
  rig.play({});
  BOOST_TEST(rig.body(1) == "a");
  BOOST_TEST(rig.body(3) == "b");
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(rig.count(h2::goaway) == 2u);
}

BOOST_AUTO_TEST_CASE(draining_does_not_wait_for_a_silent_client) {
  H2ServerRig rig;
  rig.greet();
  rig.owner.session()->drain();
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(rig.count(h2::goaway) == 2u);
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_ends_its_streams) {
  for (const bool reset : {false, true}) {
    H2ServerRig rig;
    rig.greet();
    rig.play(h2::whole_headers(1, h2::get()) + h2::open_headers(3, h2::get("/", "POST")));
    if (reset)
      rig.peer->reset();
    else
      rig.peer->finish();
    run_quiet(rig.worker);
    BOOST_TEST(rig.owner.gone);
    BOOST_TEST(log_word(rig.stream(0).fault) == (reset ? "client-reset" : "client-closed"));
    BOOST_TEST(rig.stream(1).gone);
  }
}

BOOST_AUTO_TEST_CASE(the_last_words_of_a_client_are_answered) {
  H2ServerRig rig;
  rig.start();
  rig.peer->send(h2::hello() + h2::frame(h2::goaway, 0, 0, h2::number(0, 8)));
  rig.peer->finish();
  run_quiet(rig.worker);
  rig.collect();
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(rig.find(h2::settings) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_response_leaves_by_urgency) {
  H2ServerRig rig;
  rig.greet(h2::setting(4, 1 << 20));
  rig.play(h2::whole_headers(1, h2::with(h2::get(), {{"priority", "u=5"}})) +
           h2::whole_headers(3, h2::with(h2::get(), {{"priority", "u=1"}})));
  BOOST_TEST(rig.stream(0).head->fields.get(HeaderId::priority) == "u=5");
  rig.stream(0).respond(200, std::string(20'000, 'a'));
  rig.stream(1).respond(200, std::string(20'000, 'b'));
  rig.play({});
  std::vector<std::uint32_t> order;
  for (const h2::Frame& f : rig.frames)
    if (f.type == h2::data) order.push_back(f.stream);
  BOOST_REQUIRE(order.size() == 4u);
  BOOST_TEST(order[0] == 3u);
  BOOST_TEST(order[1] == 3u);
  BOOST_TEST(order[2] == 1u);
}

BOOST_AUTO_TEST_CASE(a_priority_update_changes_the_order) {
  H2ServerRig rig;
  rig.greet(h2::setting(4, 1 << 20));
  rig.play(h2::whole_headers(1, h2::get()) + h2::whole_headers(3, h2::get()) +
           h2::frame(0x10, 0, 0, h2::number(3, 4) + "u=0"));
  rig.stream(0).respond(200, std::string(20'000, 'a'));
  rig.stream(1).respond(200, std::string(20'000, 'b'));
  rig.play({});
  const h2::Frame* first = rig.find(h2::data);
  BOOST_REQUIRE(first != nullptr);
  BOOST_TEST(first->stream == 3u);
}

BOOST_AUTO_TEST_CASE(no_frame_is_larger_than_a_tls_record) {
  H2ServerRig rig;
  rig.greet(h2::setting(4, 1 << 20) + h2::setting(5, 1 << 20));
  rig.play(h2::frame(h2::window_update, 0, 0, h2::number(1 << 20, 4)) + h2::whole_headers(1, h2::get()));
  rig.stream().respond(200, std::string(100'000, 'a'));
  rig.play({});
  BOOST_TEST(rig.body(1).size() == 100'000u);
  for (const h2::Frame& f : rig.frames) BOOST_TEST(f.payload.size() <= 16375u);
}

BOOST_AUTO_TEST_CASE(window_updates_come_with_credit_only) {
  HttpLimits limits;
  limits.stream_window = 65535;
  H2ServerRig rig(limits);
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  rig.greet();
  rig.frames.clear();
  rig.play(h2::open_headers(1, h2::get("/", "POST")));
  for (int i = 0; i < 3; ++i) rig.play(h2::frame(h2::data, 0, 1, std::string(16000, 'x')));
  BOOST_TEST(rig.find(h2::window_update, 1) == nullptr);
  rig.stream().give_credit(48'000);
  rig.play({});
  BOOST_REQUIRE(rig.find(h2::window_update, 1) != nullptr);
  BOOST_TEST(rig.find(h2::window_update, 1)->u32(0) == 48'000u);
}

BOOST_AUTO_TEST_CASE(a_flood_lets_others_have_their_turn) {
  H2ServerRig rig;
  rig.greet();
  std::string resets;
  for (std::uint32_t id = 1; id < 2 * 90; id += 2)
    resets += h2::whole_headers(id, h2::get()) + h2::frame(h2::rst_stream, 0, id, h2::number(8, 4));
  BOOST_TEST_REQUIRE(resets.size() < kBlockSize);  // one read
  rig.peer->send(resets + h2::whole_headers(181, h2::get()));
  std::size_t before = 0;
  for (int turns = 0; turns < 100 && rig.acceptor.streams.size() < 91; ++turns) {
    rig.worker.turn(0ms);
    BOOST_TEST(rig.acceptor.streams.size() <= before + 17);
    before = rig.acceptor.streams.size();
  }
  BOOST_TEST(rig.acceptor.streams.size() == 91u);
  BOOST_TEST(!rig.owner.gone);
}

BOOST_AUTO_TEST_CASE(small_frames_let_others_have_their_turn) {
  HttpLimits limits;
  H2ServerRig rig(limits);
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  rig.greet();
  // WINDOW_UPDATE, which alone is not suspicious for some time, and a request behind them: not in the same turn.
  std::string frames;
  for (int i = 0; i < 300; ++i) frames += h2::frame(h2::window_update, 0, 0, h2::number(1, 4));
  rig.peer->send(frames + h2::whole_headers(1, h2::get()));
  rig.worker.turn(0ms);
  rig.worker.turn(0ms);
  BOOST_TEST(rig.acceptor.streams.empty());
  rig.settle();
  BOOST_TEST(rig.acceptor.streams.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_streams_of_a_lost_client_end_over_several_turns) {
  H2ServerRig rig;
  rig.acceptor.setup = [](Recorder& r) { r.consume = false; };
  rig.greet();
  std::string frames;
  for (std::uint32_t id = 1; id < 2 * 100; id += 2) frames += h2::whole_headers(id, h2::get());
  rig.play(frames);
  BOOST_TEST_REQUIRE(rig.acceptor.streams.size() == 100u);
  const auto ended = [&] { return std::ranges::count_if(rig.acceptor.streams, [](const auto& s) { return s->gone; }); };
  rig.peer.reset();
  std::ptrdiff_t before = 0;
  for (int turns = 0; turns < 100 && !rig.owner.gone; ++turns) {
    rig.worker.turn(0ms);
    BOOST_TEST(ended() <= before + 8);  // one turn's reading and its flush
    before = ended();
  }
  BOOST_TEST(rig.owner.gone);
  BOOST_TEST(ended() == 100);
}

BOOST_AUTO_TEST_CASE(a_failing_transport_ends_a_server_once_at_any_call) {
  for (unsigned nth = 1; nth < 12; ++nth) {
    for (const bool read : {true, false}) {
      H2ServerRig rig;
      rig.acceptor.setup = [](Recorder& r) { r.on_request = [](Recorder& s) { s.respond(200, "hello"); }; };
      rig.start();
      if (read)
        rig.transport->fail_read_at(nth);
      else
        rig.transport->fail_write_at(nth);
      rig.play(h2::hello() + h2::frame(h2::settings, h2::ack, 0));
      for (std::uint32_t id = 1; id < 21; id += 2) rig.play(h2::open_headers(id, h2::get("/", "POST")));
      rig.peer->reset();
      run_quiet(rig.worker);
      BOOST_TEST(rig.owner.gone);
      for (const auto& s : rig.acceptor.streams) BOOST_TEST(s->gone);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_answer_that_nobody_waits_for_is_not_dripped_for_ever) {
  HttpLimits limits;
  limits.h2_detached_timeout = 60ms;
  limits.body_rate_window = 10ms;  // how often streams are looked after
  limits.min_body_rate = 1'000'000;
  limits.h2_glitch_burst = 1'000'000;
  H2ServerRig rig(limits);
  rig.greet(h2::setting(4, 0));
  rig.play(h2::whole_headers(1, h2::get()));
  rig.stream().respond(200, std::string(500'000, 'x'));
  rig.stream().reset(Fault::idle_timeout);  // what is queued still leaves
  BOOST_TEST(run_until(rig.worker, [&] {
    rig.peer->send(h2::frame(h2::window_update, 0, 1, h2::number(1, 4)));
    rig.collect();
    return rig.error(1) != -1;
  }));
  rig.settle();
  BOOST_TEST(!rig.ended(1));
  // Long before the window of the connection is used up, which would stop it too.
  BOOST_TEST(rig.body(1).size() > 1u);
  BOOST_TEST(rig.body(1).size() < 30'000u);
  BOOST_TEST(rig.owner.session()->active() == 0u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_nobody_takes_is_given_up) {
  HttpLimits limits;
  limits.stream_idle_timeout = 50ms;
  limits.keep_alive_timeout = 60ms;
  H2ServerRig rig(limits);
  rig.greet(h2::setting(4, 1 << 20));
  rig.play(h2::frame(h2::window_update, 0, 0, h2::number(1 << 20, 4)) + h2::whole_headers(1, h2::get()));
  rig.transport->set_write_space(1000);
  rig.peer->pause();
  rig.stream().respond(200, std::string(500'000, 'x'));
  BOOST_TEST(until_gone(rig));
  BOOST_TEST(log_word(rig.stream().fault) == "idle");
}

}  // namespace
}  // namespace twp::test
