#include "origin/websocket.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace twp::ws {
namespace {

std::uint8_t octet(std::byte b) noexcept { return static_cast<std::uint8_t>(b); }

bool known(unsigned opcode) noexcept { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

}  // namespace

std::size_t encode_header(const FrameHeader& h, std::span<std::byte, kMaxHeader> out) noexcept {
  std::size_t n = 2;
  const auto mask_bit = h.masked ? std::byte{0x80} : std::byte{0};
  out[0] = static_cast<std::byte>((h.fin ? 0x80u : 0u) | static_cast<unsigned>(h.opcode));
  const auto big_endian = [&](unsigned octets) {
    for (unsigned i = octets; i-- > 0;) out[n++] = static_cast<std::byte>(h.length >> (8 * i));
  };
  if (h.length < 126) {
    out[1] = static_cast<std::byte>(h.length) | mask_bit;
  } else if (h.length <= 0xffff) {
    out[1] = std::byte{126} | mask_bit;
    big_endian(2);
  } else {
    out[1] = std::byte{127} | mask_bit;
    big_endian(8);
  }
  if (h.masked)
    for (const std::uint8_t m : h.mask) out[n++] = static_cast<std::byte>(m);
  return n;
}

void apply_mask(std::span<std::byte> data, const Mask& mask, std::uint64_t offset) noexcept {
  std::array<std::uint8_t, 8> turned{};
  for (std::size_t i = 0; i < 8; ++i) turned[i] = mask[(offset + i) % 4];
  const auto wide = std::bit_cast<std::uint64_t>(turned);
  std::size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    std::uint64_t v;
    std::memcpy(&v, data.data() + i, 8);
    v ^= wide;
    std::memcpy(data.data() + i, &v, 8);
  }
  for (; i < data.size(); ++i) data[i] ^= static_cast<std::byte>(turned[i % 8]);
}

std::string control_frame(Opcode opcode, std::string_view payload, const Mask* mask) {
  payload = payload.substr(0, kMaxControl);
  FrameHeader h{opcode, true, mask != nullptr, mask != nullptr ? *mask : Mask{}, payload.size()};
  std::array<std::byte, kMaxHeader> head{};
  const std::size_t n = encode_header(h, head);
  std::string out(reinterpret_cast<const char*>(head.data()), n);
  out += payload;
  if (mask != nullptr) apply_mask(std::as_writable_bytes(std::span(out).subspan(n)), *mask, 0);
  return out;
}

std::string close_frame(CloseCode code, const Mask* mask) {
  if (code == CloseCode::none) return control_frame(Opcode::close, {}, mask);
  const auto v = static_cast<unsigned>(code);
  const std::array<char, 2> payload{static_cast<char>(v >> 8), static_cast<char>(v)};
  return control_frame(Opcode::close, {payload.data(), 2}, mask);
}

bool valid_close_code(std::uint16_t code) noexcept {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

bool Utf8::feed(std::span<const std::byte> octets) noexcept {
  for (const std::byte b : octets) {
    const std::uint8_t c = octet(b);
    if (!ok_) return false;
    if (need_ != 0) {
      ok_ = c >= low_ && c <= high_;
      low_ = 0x80, high_ = 0xbf;
      --need_;
    } else if (c >= 0x80) {
      // The first continuation octet's range excludes overlong forms, surrogates and what lies above U+10FFFF.
      need_ = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
      ok_ = c >= 0xc2 && c <= 0xf4;
      if (c == 0xe0) low_ = 0xa0;
      if (c == 0xed) high_ = 0x9f;
      if (c == 0xf0) low_ = 0x90;
      if (c == 0xf4) high_ = 0x8f;
    }
  }
  return ok_;
}

std::size_t Reader::header_octets_needed() const noexcept {
  if (have_ < 2) return 2;
  const unsigned second = octet(header_[1]);
  const unsigned length = second & 127;
  return 2u + (length == 126 ? 2u : length == 127 ? 8u : 0u) + ((second & 128) != 0 ? 4u : 0u);
}

CloseCode Reader::begin_frame(ReaderEvents& events) noexcept {
  const unsigned first = octet(header_[0]);
  const unsigned second = octet(header_[1]);
  frame_ = {};
  frame_.fin = (first & 0x80) != 0;
  frame_.masked = (second & 0x80) != 0;
  if ((first & 0x70) != 0 || !known(first & 15)) return CloseCode::protocol_error;  // no extension was agreed on
  if (frame_.masked != (role_ == Role::server)) return CloseCode::protocol_error;
  frame_.opcode = static_cast<Opcode>(first & 15);
  std::size_t at = 2;
  frame_.length = second & 127;
  if (frame_.length >= 126) {
    const std::size_t wide = frame_.length == 126 ? 2 : 8;
    frame_.length = 0;
    for (std::size_t i = 0; i < wide; ++i) frame_.length = frame_.length << 8 | octet(header_[at++]);
    // §5.2: the shortest form, and the top bit is 0.
    if (frame_.length < (wide == 2 ? 126u : 65536u) || frame_.length >> 63 != 0) return CloseCode::protocol_error;
  }
  if (frame_.masked)
    for (auto& m : frame_.mask) m = octet(header_[at++]);
  have_ = 0;
  done_ = 0;
  in_payload_ = true;
  if (frame_.is_control()) {
    if (!frame_.fin || frame_.length > kMaxControl) return CloseCode::protocol_error;
    return frame_.length == 0 ? end_control(events) : CloseCode::none;
  }
  if ((frame_.opcode == Opcode::continuation) != in_message_) return CloseCode::protocol_error;
  if (!in_message_) {
    message_text_ = frame_.opcode == Opcode::text;
    utf8_.reset();
  }
  in_message_ = true;
  events.on_frame(frame_);
  return frame_.length == 0 ? pass_data({}, events) : CloseCode::none;
}

CloseCode Reader::pass_data(std::span<const std::byte> octets, ReaderEvents& events) noexcept {
  const bool end = done_ == frame_.length;
  if (message_text_ && !utf8_.feed(octets)) return CloseCode::bad_data;
  if (end) {
    in_payload_ = false;
    if (frame_.fin) {
      if (message_text_ && !utf8_.complete()) return CloseCode::bad_data;
      in_message_ = false;
    }
  }
  events.on_payload(octets, end);
  return CloseCode::none;
}

CloseCode Reader::end_control(ReaderEvents& events) noexcept {
  in_payload_ = false;
  const auto payload = std::span(control_).first(static_cast<std::size_t>(frame_.length));
  if (frame_.opcode == Opcode::close) {
    if (payload.size() == 1) return CloseCode::protocol_error;
    if (payload.size() >= 2) {
      if (!valid_close_code(static_cast<std::uint16_t>(octet(payload[0]) << 8 | octet(payload[1]))))
        return CloseCode::protocol_error;
      Utf8 reason;
      if (!reason.feed(payload.subspan(2)) || !reason.complete()) return CloseCode::bad_data;
    }
    closed_ = true;
  }
  events.on_control(frame_.opcode, payload);
  return CloseCode::none;
}

CloseCode Reader::take_payload(std::span<const std::byte>& octets, ReaderEvents& events) noexcept {
  std::array<std::byte, 4096> plain;
  auto n = static_cast<std::size_t>(std::min<std::uint64_t>(frame_.length - done_, octets.size()));
  if (frame_.is_control()) {
    const auto into = std::span(control_).subspan(static_cast<std::size_t>(done_), n);
    std::copy_n(octets.begin(), n, into.begin());
    if (frame_.masked) apply_mask(into, frame_.mask, done_);
    octets = octets.subspan(n);
    done_ += n;
    return done_ == frame_.length ? end_control(events) : CloseCode::none;
  }
  std::span<const std::byte> piece = octets.first(n);
  if (frame_.masked) {
    n = std::min(n, plain.size());
    std::copy_n(octets.begin(), n, plain.begin());
    apply_mask(std::span(plain).first(n), frame_.mask, done_);
    piece = std::span(plain).first(n);
  }
  octets = octets.subspan(n);
  done_ += n;
  return pass_data(piece, events);
}

CloseCode Reader::feed(std::span<const std::byte> octets, ReaderEvents& events) noexcept {
  while (!octets.empty() && !dead()) {
    if (in_payload_) {
      failed_ = take_payload(octets, events);
      continue;
    }
    const std::size_t n = std::min(header_octets_needed() - have_, octets.size());
    std::copy_n(octets.begin(), n, header_.begin() + static_cast<std::ptrdiff_t>(have_));
    have_ += n;
    octets = octets.subspan(n);
    // Two octets tell how long the header is; it is complete when that many are there.
    if (have_ >= 2 && have_ == header_octets_needed()) failed_ = begin_frame(events);
  }
  return failed_;
}

}  // namespace twp::ws
