// Between field sections as HTTP/2 and HTTP/3 have them and the canonical Head (http/head.h says what canonical means). Both
// wires have the same rules (RFC 9113 §8, RFC 9114 §4); they differ in how a line is compressed, which is not seen here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ascii.h"
#include "http/head.h"
#include "http/limits.h"

namespace twp {

inline constexpr std::size_t kMostPseudo = 5;  ///< pseudo-header fields of a head

/// Collects the field lines of one section as they are decompressed, then makes a head or trailers of them.
/// What a library's own checks let through and RFC 9113 §8 or RFC 9114 §4 forbids is refused here.
class FieldReader {
 public:
  /// `version` is what the heads will say they were received with.
  explicit FieldReader(HttpVersion version) noexcept : version_(version) {}

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
  /// The table that we let a peer fill holds 4 KiB, by the same measure as octets_ has (RFC 7541 §4.1, RFC 9204 §3.2.1). Four times that
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

  HttpVersion version_;
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

/// Connection-specific: never on these wires (RFC 9113 §8.2.2, RFC 9114 §4.2).
bool is_connection_field(HeaderId id) noexcept;
/// A fact that no table may keep: what came as one, what is secret, what never comes twice (RFC 7541 §7.1.3, RFC 9204 §7.1).
bool must_not_index(const Field& f) noexcept;
/// Lower case (RFC 9113 §8.2.1, RFC 9114 §4.2), copied into `arena`; known names are static.
std::string_view wire_name(const Field& f, Arena& arena) noexcept;

/// Calls `line(name, value, must_not_index)` for each line of a request, interim or final response head as these wires have
/// it. Names are static or in `arena`; values are the head's.
template <class F>
void for_each_line(const Head& head, Arena& arena, F&& line) noexcept {
  if (head.is_request()) {
    line(":method", head.method_name, false);
    if (!head.is_connect() || !head.protocol.empty()) {
      line(":scheme", head.scheme, false);
      line(":path", head.path, false);
    }
    if (!head.authority.empty()) line(":authority", head.authority, false);
    if (!head.protocol.empty()) line(":protocol", head.protocol, false);
  } else {
    char status[20];
    line(":status", std::string_view(status, write_decimal(status, head.status)), false);
  }
  for (const Field& f : head.fields) {
    // The handshake is in the pseudo-header fields; the key proves nothing here (RFC 8441 §5, RFC 9220 §3).
    if (f.id == HeaderId::sec_websocket_key || f.id == HeaderId::sec_websocket_accept) continue;
    if (!is_connection_field(f.id)) line(wire_name(f, arena), f.value, must_not_index(f));
  }
}

}  // namespace twp
