// Between field sections as HTTP/2 has them and the canonical Head (http/head.h says what canonical means).
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "http/head.h"
#include "http/limits.h"

namespace twp::h2 {

inline constexpr std::size_t kMostPseudo = 5;  ///< pseudo-header fields of a head

/// Collects the field lines of one section as they are decompressed, then makes a head or trailers of them.
/// What nghttp2's own checks let through and RFC 9113 §8 forbids is refused here.
class FieldReader {
 public:
  /// `max_octets` and `max_fields` bound what is kept; counting goes on behind them.
  void begin(bool response, std::uint32_t max_octets, std::uint32_t max_fields) noexcept;
  /// One line. False: so far over the limits that the rest need not even be decompressed.
  bool add(std::string_view name, std::string_view value, bool never_index) noexcept;
  /// Whether what came so far in a field block of at least `wire` octets is more than any honest encoder makes of
  /// them: a decompression bomb, of which nothing more is to be decoded.
  bool is_bomb(std::size_t wire) const noexcept {
    return (octets_ > kBombOctets && octets_ / kBombRatio > wire) || too_many_lines();
  }

  Method method() const noexcept { return method_from(method_); }
  /// Turns what was collected into `head`. `ended`: nothing follows the head. Fault::none on success; `limit` is
  /// set when a limit was passed. `tls` is the scheme of a CONNECT, which names none.
  Fault to_request(const HttpLimits& limits, bool tls, bool ended, Head& head, LimitHit& limit) noexcept;
  /// `request` is the method it answers.
  Fault to_response(Method request, bool ended, Head& head, LimitHit& limit) noexcept;
  Fault to_trailers(HeaderBlock& trailers, LimitHit& limit) noexcept;

 private:
  /// The table that we let a peer fill holds 4 KiB, by the same measure as octets_ has (RFC 7541 §4.1). Four times that
  /// from a few octets takes references to one entry again and again.
  static constexpr std::uint64_t kBombOctets = 16 * 1024;
  static constexpr std::uint64_t kBombRatio = 16;
  /// Times the limit up to which a section is decompressed only to be answered with a status.
  static constexpr std::uint64_t kHopeless = 4;

  enum class Pseudo : std::uint8_t { method, scheme, authority, path, protocol, status, unknown };

  bool too_many_lines() const noexcept { return lines_ > std::uint64_t{max_fields_} * kHopeless + kMostPseudo; }
  bool add_pseudo(std::string_view name, std::string_view value) noexcept;
  Fault over_limit(LimitHit& limit) const noexcept;
  Fault read_target(bool tls, Head& head) noexcept;
  Fault read_authority(Head& head) noexcept;
  Fault read_length(bool ended, Head& head) noexcept;
  void finish_fields(Head& head) noexcept;

  HeaderBlock fields_;
  std::string_view method_, scheme_, authority_, path_, protocol_;
  std::uint64_t octets_ = 0;
  std::uint32_t lines_ = 0;
  std::uint32_t max_octets_ = 0;
  std::uint32_t max_fields_ = 0;
  std::uint16_t status_ = 0;
  std::uint8_t seen_ = 0;  // bits by Pseudo
  bool response_ = false;
  bool malformed_ = false;
};

/// Field lines ready to be submitted; views into the arena they were made in, into static text or into nothing.
using EncodedFields = std::span<nghttp2_nv>;

/// The lines of a request, interim or final response head, copied into `arena`.
EncodedFields encode_head(const Head& head, Arena& arena) noexcept;
EncodedFields encode_trailers(const HeaderBlock& fields, Arena& arena) noexcept;

}  // namespace twp::h2
