// gRPC's message framing over HTTP: a flag, four octets of length, the message. Shared with the load generator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace twp::grpc {

/// Status codes of gRPC that this code sends or looks for.
enum class Status : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
};

inline constexpr std::size_t kPrefix = 5;  ///< octets before each message
inline constexpr std::uint64_t kMaxMessage =
    4 * 1024 * 1024;  ///< the limit that gRPC's own implementations start with
inline constexpr std::string_view kContentType = "application/grpc";

/// "application/grpc", with a "+proto" or parameters behind it or not.
bool is_content_type(std::string_view value) noexcept;

/// The prefix of an uncompressed message of `length` octets.
std::array<std::byte, kPrefix> prefix(std::uint32_t length) noexcept;

class ReaderEvents {
 public:
  /// Octets of the current message; `end` with its last ones. An empty message is one call with nothing.
  virtual void on_message(std::span<const std::byte> octets, bool end) noexcept = 0;

 protected:
  ~ReaderEvents() = default;
};

/// Takes a body apart as it comes.
class Reader {
 public:
  /// Not ok: the first defect, and so for ever. A compressed message is `unimplemented`, one longer than `max`
  /// `resource_exhausted`, a flag that is neither 0 nor 1 `internal`.
  Status feed(std::span<const std::byte> octets, ReaderEvents& events,
              std::uint64_t max = kMaxMessage) noexcept;
  /// No message is left half.
  bool between_messages() const noexcept { return have_ == 0 && !in_message_ && failed_ == Status::ok; }
  std::uint64_t messages() const noexcept { return messages_; }  ///< complete ones

 private:
  Status begin(std::uint64_t max) noexcept;

  std::array<std::byte, kPrefix> head_{};
  std::size_t have_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t messages_ = 0;
  bool in_message_ = false;
  Status failed_ = Status::ok;
};

}  // namespace twp::grpc
