#include "origin/websocket.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace twp::ws;

namespace {

std::span<const std::byte> octets(std::string_view s) { return std::as_bytes(std::span(s)); }

// Writes down what the reader finds.
struct Log final : ReaderEvents {
  std::string text;
  void on_frame(const FrameHeader& h) noexcept override {
    text += "[" + std::to_string(static_cast<int>(h.opcode)) + (h.fin ? "F" : "") + " " + std::to_string(h.length) + "]";
  }
  void on_payload(std::span<const std::byte> o, bool end) noexcept override {
    text.append(reinterpret_cast<const char*>(o.data()), o.size());
    if (end) text += ";";
  }
  void on_control(Opcode opcode, std::span<const std::byte> p) noexcept override {
    text += "<" + std::to_string(static_cast<int>(opcode)) + " " + std::string(reinterpret_cast<const char*>(p.data()), p.size()) + ">";
  }
};

std::string frame(unsigned first, std::string payload, bool masked = true) {
  FrameHeader h{static_cast<Opcode>(first & 15), (first & 128) != 0, masked, {1, 2, 3, 4}, payload.size()};
  std::array<std::byte, kMaxHeader> out{};
  std::string text(reinterpret_cast<const char*>(out.data()), 0);
  const std::size_t n = encode_header(h, out);
  text.assign(reinterpret_cast<const char*>(out.data()), n);
  text[0] = static_cast<char>(first);  // also bits that encode_header never sets
  if (masked) apply_mask(std::as_writable_bytes(std::span(payload)), h.mask, 0);
  return text + payload;
}

struct Case {
  std::string name, input, log;
  CloseCode code;
};

std::vector<Case> cases() {
  const auto ok = CloseCode::none;
  const auto bad = CloseCode::protocol_error;
  std::vector<Case> c{
      {"text", frame(0x81, "abc"), "[1F 3]abc;", ok},
      {"empty", frame(0x82, ""), "[2F 0];", ok},
      {"fragments", frame(0x01, "a") + frame(0x00, "b") + frame(0x80, "c"), "[1 1]a;[0 1]b;[0F 1]c;", ok},
      {"ping between fragments", frame(0x01, "a") + frame(0x89, "p") + frame(0x80, "c"), "[1 1]a;<9 p>[0F 1]c;", ok},
      {"pong unasked", frame(0x8a, "x"), "<10 x>", ok},
      {"ping of 125", frame(0x89, std::string(125, 'x')), "<9 " + std::string(125, 'x') + ">", ok},
      {"ping of 126", frame(0x89, std::string(126, 'x')), "", bad},
      {"fragmented ping", frame(0x09, "x"), "", bad},
      {"rsv1", frame(0xc1, "x"), "", bad},
      {"rsv2", frame(0xa1, "x"), "", bad},
      {"rsv3", frame(0x91, "x"), "", bad},
      {"unmasked", frame(0x81, "x", false), "", bad},
      {"continuation of nothing", frame(0x80, "x"), "", bad},
      {"text inside a message", frame(0x01, "a") + frame(0x81, "b"), "[1 1]a;", bad},
      {"continuation after the end", frame(0x81, "a") + frame(0x80, "b"), "[1F 1]a;", bad},
      {"close", frame(0x88, std::string("\x03\xe8", 2)), std::string("<8 \x03\xe8>", 6), ok},
      {"close without code", frame(0x88, ""), "<8 >", ok},
      {"close of one octet", frame(0x88, "x"), "", bad},
      {"close 1005", frame(0x88, std::string("\x03\xed", 2)), "", bad},
      {"close 1016", frame(0x88, std::string("\x03\xf8", 2)), "", bad},
      {"close 2999", frame(0x88, std::string("\x0b\xb7", 2)), "", bad},
      {"close with a reason that is not UTF-8", frame(0x88, std::string("\x03\xe8\xff", 3)), "", CloseCode::bad_data},
      {"nothing is read after close", frame(0x88, "") + frame(0x81, "abc"), "<8 >", ok},
      {"126 octets in the 64-bit form", std::string("\x82\xff\0\0\0\0\0\0\0\x7e\1\2\3\4", 14), "", bad},
      {"125 octets in the 16-bit form", std::string("\x82\xfe\0\x7d\1\2\3\4", 8), "", bad},
      {"a length with the top bit", std::string("\x82\xff\x80\0\0\0\0\0\0\0\1\2\3\4", 14), "", bad},
      {"text that is not UTF-8", frame(0x81, "\xce\xba\xff"), "[1F 3]", CloseCode::bad_data},
      {"text that ends inside a character", frame(0x81, "\xce"), "[1F 1]", CloseCode::bad_data},
      {"a character over two fragments", frame(0x01, "\xce") + frame(0x80, "\xba"), "[1 1]\xce;[0F 1]\xba;", ok},
      {"binary may be anything", frame(0x82, "\xff\xfe"), "[2F 2]\xff\xfe;", ok},
  };
  for (const unsigned opcode : {3u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 14u, 15u})
    c.push_back({"reserved opcode " + std::to_string(opcode), frame(0x80 | opcode, ""), "", bad});
  return c;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(websocket)

BOOST_AUTO_TEST_CASE(frames_whole_and_octet_by_octet) {
  for (const Case& c : cases()) {
    Log whole;
    Reader reader(Reader::Role::server);
    BOOST_TEST((reader.feed(octets(c.input), whole) == c.code), c.name);
    // A bad octet in a frame may be found before the piece with the good ones is handed on.
    if (c.code == CloseCode::none) BOOST_TEST(whole.text == c.log, c.name << ": " << whole.text);
    else BOOST_TEST(whole.text.starts_with(c.log), c.name << ": " << whole.text);

    Log chopped;
    Reader slow(Reader::Role::server);
    CloseCode code = CloseCode::none;
    for (std::size_t i = 0; i < c.input.size(); ++i) code = slow.feed(octets(std::string_view(c.input).substr(i, 1)), chopped);
    BOOST_TEST((code == c.code), c.name);
    if (c.code == CloseCode::none) BOOST_TEST(chopped.text == c.log, c.name << ": " << chopped.text);
    BOOST_TEST(slow.dead() == (c.code != CloseCode::none || slow.closed()));
  }
}

BOOST_AUTO_TEST_CASE(a_client_refuses_masked_frames) {
  Log log;
  BOOST_TEST((Reader(Reader::Role::client).feed(octets(frame(0x81, "x")), log) == CloseCode::protocol_error));
  BOOST_TEST((Reader(Reader::Role::client).feed(octets(frame(0x81, "x", false)), log) == CloseCode::none));
}

BOOST_AUTO_TEST_CASE(long_frames_are_streamed) {
  for (const std::size_t n : {126u, 65535u, 65536u, 300'000u}) {
    Log log;
    Reader reader(Reader::Role::server);
    const std::string payload(n, 'z');
    BOOST_TEST((reader.feed(octets(frame(0x82, payload)), log) == CloseCode::none));
    BOOST_TEST((log.text == "[2F " + std::to_string(n) + "]" + payload + ";"));
    BOOST_TEST(reader.idle());
  }
}

BOOST_AUTO_TEST_CASE(headers_take_the_shortest_form) {
  std::array<std::byte, kMaxHeader> out{};
  const auto size = [&](std::uint64_t n, bool masked) { return encode_header({Opcode::binary, true, masked, {}, n}, out); };
  BOOST_TEST(size(125, false) == 2u);
  BOOST_TEST(size(126, false) == 4u);
  BOOST_TEST(size(65535, false) == 4u);
  BOOST_TEST(size(65536, false) == 10u);
  BOOST_TEST(size(125, true) == 6u);
  BOOST_TEST(size(65536, true) == 14u);
}

BOOST_AUTO_TEST_CASE(masks_go_on_where_they_stopped) {
  const Mask mask{0x11, 0x22, 0x33, 0x44};
  std::string whole(100, 'a');
  std::string pieces = whole;
  apply_mask(std::as_writable_bytes(std::span(whole)), mask, 0);
  for (std::size_t at = 0, n = 1; at < pieces.size(); at += n, n = n % 13 + 1) {
    n = std::min(n, pieces.size() - at);
    apply_mask(std::as_writable_bytes(std::span(pieces).subspan(at, n)), mask, at);
  }
  BOOST_TEST(whole == pieces);
}

BOOST_AUTO_TEST_CASE(utf8_table) {
  struct {
    const char* text;
    bool ok, complete;
  } const table[] = {
      {"", true, true},          {"abc", true, true},          {"\xc2\xa2", true, true},       {"\xe2\x82\xac", true, true},
      {"\xf0\x90\x8d\x88", true, true}, {"\xf4\x8f\xbf\xbf", true, true}, {"\xed\x9f\xbf", true, true}, {"\xee\x80\x80", true, true},
      {"\xc0\xaf", false, false}, {"\xc1\xbf", false, false},   {"\xe0\x80\xaf", false, false}, {"\xf0\x80\x80\xaf", false, false},
      {"\xed\xa0\x80", false, false}, {"\xed\xbf\xbf", false, false}, {"\xf4\x90\x80\x80", false, false}, {"\xf5\x80\x80\x80", false, false},
      {"\x80", false, false},    {"\xff", false, false},       {"\xc2", true, false},          {"\xe2\x82", true, false},
      {"\xe2z", false, false},   {"\xf0\x9f\x98", true, false},
  };
  for (const auto& t : table) {
    Utf8 u;
    BOOST_TEST(u.feed(octets(t.text)) == t.ok);
    BOOST_TEST(u.complete() == t.complete);
  }
}

BOOST_AUTO_TEST_CASE(close_codes) {
  for (const int c : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999})
    BOOST_TEST(valid_close_code(static_cast<std::uint16_t>(c)), c);
  for (const int c : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535})
    BOOST_TEST(!valid_close_code(static_cast<std::uint16_t>(c)), c);
}

BOOST_AUTO_TEST_SUITE_END()
