// WebSocket framing, RFC 6455 §5: what an endpoint needs above the octets of a tunnel. The opening
// handshake is the session's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace twp::ws {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// Close codes that this code sends itself (RFC 6455 §7.4.1). `none` is "no code given".
enum class CloseCode : std::uint16_t { none = 0, normal = 1000, protocol_error = 1002, bad_data = 1007 };

inline constexpr std::size_t kMaxHeader = 14;    ///< octets of the longest frame header
inline constexpr std::size_t kMaxControl = 125;  ///< octets of payload in a control frame, §5.5

using Mask = std::array<std::uint8_t, 4>;

struct FrameHeader {
  Opcode opcode = Opcode::binary;
  bool fin = true;
  bool masked = false;
  Mask mask{};
  std::uint64_t length = 0;  ///< octets of payload, below 2^63

  bool is_control() const noexcept { return (static_cast<unsigned>(opcode) & 8u) != 0; }
};

/// Writes `h` with the shortest length form. Returns the octets used.
std::size_t encode_header(const FrameHeader& h, std::span<std::byte, kMaxHeader> out) noexcept;

/// XORs `data` with the mask, of which `offset` octets of payload have been used before (§5.3).
void apply_mask(std::span<std::byte> data, const Mask& mask, std::uint64_t offset) noexcept;

/// A whole control frame with a payload of at most kMaxControl octets. `mask` null: from a server.
std::string control_frame(Opcode opcode, std::string_view payload, const Mask* mask = nullptr);
/// A close frame; CloseCode::none gives an empty payload.
std::string close_frame(CloseCode code, const Mask* mask = nullptr);

/// §7.4: codes that may appear on the wire. 1004, 1005, 1006 and 1015 may not.
bool valid_close_code(std::uint16_t code) noexcept;

/// Checks UTF-8 (RFC 3629: shortest form, no surrogates, at most U+10FFFF) octet by octet, so that a bad message fails
/// at its first bad octet.
class Utf8 {
 public:
  /// False at the first octet that cannot be part of UTF-8; stays false.
  bool feed(std::span<const std::byte> octets) noexcept;
  /// True when no character is left half.
  bool complete() const noexcept { return need_ == 0 && ok_; }
  void reset() noexcept { *this = Utf8(); }

 private:
  unsigned need_ = 0;           // continuation octets to come
  std::uint8_t low_ = 0x80;     // range of the next one
  std::uint8_t high_ = 0xbf;
  bool ok_ = true;
};

/// What Reader finds. Payload is unmasked.
class ReaderEvents {
 public:
  /// A text, binary or continuation frame begins.
  virtual void on_frame(const FrameHeader& h) noexcept = 0;
  /// Octets of that frame, in order; `end` with the last ones (also for an empty frame).
  virtual void on_payload(std::span<const std::byte> octets, bool end) noexcept = 0;
  /// A whole ping, pong or close frame. After close the reader takes nothing more.
  virtual void on_control(Opcode opcode, std::span<const std::byte> payload) noexcept = 0;

 protected:
  ~ReaderEvents() = default;
};

/// Takes a stream of octets apart into frames. Any length is streamed: at most a header and a control payload are held.
class Reader {
 public:
  enum class Role : std::uint8_t { server, client };  ///< server: frames must be masked; client: must not (§5.1)

  explicit Reader(Role role) noexcept : role_(role) {}

  /// Feeds octets. CloseCode::none: all is well; else the code to fail the connection with, after which the reader is
  /// dead (§7.1.7).
  CloseCode feed(std::span<const std::byte> octets, ReaderEvents& events) noexcept;
  /// The peer has sent a valid close frame.
  bool closed() const noexcept { return closed_; }
  bool dead() const noexcept { return closed_ || failed_ != CloseCode::none; }
  /// True between messages: nothing of a frame or of a fragmented message is outstanding.
  bool idle() const noexcept { return have_ == 0 && !in_payload_ && !in_message_; }

 private:
  std::size_t header_octets_needed() const noexcept;
  CloseCode begin_frame(ReaderEvents& events) noexcept;
  CloseCode take_payload(std::span<const std::byte>& octets, ReaderEvents& events) noexcept;
  CloseCode pass_data(std::span<const std::byte> octets, ReaderEvents& events) noexcept;
  CloseCode end_control(ReaderEvents& events) noexcept;

  Role role_;
  bool in_payload_ = false;
  bool in_message_ = false;    // a fragmented message is open
  bool message_text_ = false;
  bool closed_ = false;
  CloseCode failed_ = CloseCode::none;
  std::size_t have_ = 0;       // octets in header_
  std::array<std::byte, kMaxHeader> header_{};
  FrameHeader frame_;
  std::uint64_t done_ = 0;     // payload octets of frame_ seen
  std::array<std::byte, kMaxControl> control_{};
  Utf8 utf8_;
};

}  // namespace twp::ws
