// WebSocket frames from a peer. Oracle: the same frames, payloads and verdict however the octets are cut; frames written
// again are read as the same; a text message that is accepted is UTF-8.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "origin/websocket.h"

namespace {

using namespace twp::ws;

/// A plain decoder to hold the reader's against.
bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const unsigned c = static_cast<unsigned char>(s[i++]);
    if (c < 0x80) continue;
    const unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc0 || c > 0xf7 || s.size() - i < more) return false;
    unsigned long v = c & (0x3fu >> more);
    for (unsigned k = 0; k < more; ++k) {
      const unsigned d = static_cast<unsigned char>(s[i++]);
      if ((d & 0xc0) != 0x80) return false;
      v = v << 6 | (d & 0x3f);
    }
    if (v < (more == 1 ? 0x80u : more == 2 ? 0x800u : 0x10000u) || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) return false;
  }
  return true;
}

/// Whole frames only: how much of a broken one is passed on before the defect depends on the pieces.
struct Log final : ReaderEvents {
  explicit Log(Reader::Role r) : role(r) {}
  Reader::Role role;
  std::string text;     // what happened, one line each
  std::string rewritten;
  std::string message;
  FrameHeader frame;
  std::string payload;
  bool open = false;
  bool in_text = false;

  void write(const FrameHeader& h, std::string_view body) {
    FrameHeader out = h;
    out.length = body.size();
    std::array<std::byte, kMaxHeader> head{};
    const std::size_t n = encode_header(out, head);
    rewritten.append(reinterpret_cast<const char*>(head.data()), n);
    std::string octets(body);
    if (out.masked) apply_mask(std::as_writable_bytes(std::span(octets)), out.mask, 0);
    rewritten += octets;
  }
  void on_frame(const FrameHeader& h) noexcept override {
    if (open || h.is_control()) std::abort();
    open = true;
    frame = h;
    payload.clear();
    if (h.opcode != Opcode::continuation) {
      message.clear();
      in_text = h.opcode == Opcode::text;
    }
  }
  void on_payload(std::span<const std::byte> o, bool end) noexcept override {
    if (!open) std::abort();
    payload.append(reinterpret_cast<const char*>(o.data()), o.size());
    if (payload.size() > frame.length || end != (payload.size() == frame.length)) std::abort();
    if (!end) return;
    open = false;
    message += payload;
    if (frame.fin && in_text && !is_utf8(message)) std::abort();
    text += std::to_string(static_cast<int>(frame.opcode)) + (frame.fin ? "F " : " ") + payload + "\n";
    write(frame, payload);
  }
  void on_control(Opcode opcode, std::span<const std::byte> p) noexcept override {
    if (open || p.size() > kMaxControl) std::abort();
    const std::string body(reinterpret_cast<const char*>(p.data()), p.size());
    text += std::to_string(static_cast<int>(opcode)) + "C " + body + "\n";
    write({opcode, true, role == Reader::Role::server, {9, 8, 7, 6}, 0}, body);
  }
};

struct Outcome {
  std::string text, rewritten;
  CloseCode code = CloseCode::none;
  bool closed = false, idle = false;
};

Outcome play(std::string_view octets, Reader::Role role, std::size_t piece) {
  Reader reader(role);
  Log log(role);
  CloseCode code = CloseCode::none;
  for (std::size_t i = 0; i < octets.size(); i += piece) {
    code = reader.feed(std::as_bytes(std::span(octets.substr(i, piece))), log);
    if (code != CloseCode::none && !reader.dead()) std::abort();
  }
  return {log.text, log.rewritten, code, reader.closed(), reader.idle()};
}

bool same(const Outcome& a, const Outcome& b) { return a.text == b.text && a.code == b.code && a.closed == b.closed; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 20000) return 0;
  const std::string_view octets(reinterpret_cast<const char*>(data), size);
  for (const auto role : {Reader::Role::server, Reader::Role::client}) {
    const Outcome whole = play(octets, role, std::max<std::size_t>(size, 1));
    for (const std::size_t piece : {1u, 3u, 100u, 5000u})
      if (!same(play(octets, role, piece), whole)) std::abort();
    const Outcome again = play(whole.rewritten, role, 7);
    if (again.text != whole.text || again.closed != whole.closed || again.code != CloseCode::none) std::abort();
  }
  return 0;
}
