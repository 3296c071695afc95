// HTTP/2 frames as octets: made by hand to be a peer that may do anything, and read back.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace twp::test::h2 {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Type : std::uint8_t {
  data,
  headers,
  priority,
  rst_stream,
  settings,
  push_promise,
  ping,
  goaway,
  window_update,
  continuation
};
enum Flag : std::uint8_t {
  none = 0,
  ack = 1,
  end_stream = 1,
  end_headers = 4,
  padded = 8,
  with_priority = 32
};

inline std::string number(std::uint64_t v, int octets) {
  std::string s;
  while (octets-- != 0) s.push_back(static_cast<char>((v >> (8 * octets)) & 0xff));
  return s;
}

inline std::string frame(std::uint8_t type, unsigned flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  return number(payload.size(), 3) + number(type, 1) + number(flags, 1) + number(stream, 4) +
         std::string(payload);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

/// HPACK without tables and without Huffman: every field a literal. `never`: marked never-indexed.
inline std::string hpack(const Fields& fields, bool never = false) {
  std::string out;
  const auto text = [&](std::string_view s) {
    if (s.size() < 127) {
      out.push_back(static_cast<char>(s.size()));
    } else {
      out.push_back(127);
      std::size_t n = s.size() - 127;
      for (; n >= 128; n >>= 7) out.push_back(static_cast<char>((n & 127) | 128));
      out.push_back(static_cast<char>(n));
    }
    out.append(s);
  };
  for (const auto& [name, value] : fields) {
    out.push_back(never ? 0x10 : 0);
    text(name);
    text(value);
  }
  return out;
}

inline std::string open_headers(std::uint32_t stream, const Fields& fields) {
  return frame(headers, end_headers, stream, hpack(fields));
}
inline std::string whole_headers(std::uint32_t stream, const Fields& fields) {
  return frame(headers, end_headers | end_stream, stream, hpack(fields));
}
inline Fields get(std::string_view path = "/", std::string_view method = "GET") {
  return {{":method", std::string(method)},
          {":scheme", "http"},
          {":authority", "a.test"},
          {":path", std::string(path)}};
}
inline Fields with(Fields fields, std::initializer_list<std::pair<std::string, std::string>> more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}
inline std::string setting(std::uint16_t id, std::uint32_t value) { return number(id, 2) + number(value, 4); }
inline std::string hello(std::string_view entries = {}) {
  return std::string(kPreface) + frame(settings, none, 0, entries);
}

struct Frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
  Fields fields;  ///< of HEADERS

  std::uint32_t u32(std::size_t at) const {
    std::uint32_t v = 0;
    for (std::size_t i = at; i < at + 4 && i < payload.size(); ++i)
      v = v << 8 | static_cast<std::uint8_t>(payload[i]);
    return v;
  }
  std::string_view field(std::string_view name) const {
    for (const auto& f : fields)
      if (f.first == name) return f.second;
    return {};
  }
};

/// Reads frames out of octets that come in pieces, in the order of one connection.
class FrameReader {
 public:
  FrameReader() { nghttp2_hd_inflate_new(&inflater_); }
  ~FrameReader() { nghttp2_hd_inflate_del(inflater_); }
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// Skips the client preface first.
  void expect_preface() { skip_ = kPreface.size(); }
  std::vector<Frame> read(std::string_view octets) {
    in_.append(octets);
    std::vector<Frame> out;
    if (skip_ != 0 && in_.size() >= skip_) in_.erase(0, std::exchange(skip_, 0));
    while (skip_ == 0 && in_.size() >= 9) {
      const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(in_[i]); };
      const std::size_t n = std::size_t{at(0)} << 16 | std::size_t{at(1)} << 8 | at(2);
      if (in_.size() < 9 + n) break;
      Frame f;
      f.type = at(3);
      f.flags = at(4);
      f.stream = (std::uint32_t{at(5)} & 0x7f) << 24 | std::uint32_t{at(6)} << 16 |
                 std::uint32_t{at(7)} << 8 | at(8);
      f.payload = in_.substr(9, n);
      in_.erase(0, 9 + n);
      if (f.type == headers || f.type == continuation) inflate(f);
      out.push_back(std::move(f));
    }
    return out;
  }

 private:
  void inflate(Frame& f) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(f.payload.data());
    std::size_t n = f.payload.size();
    const bool final = (f.flags & end_headers) != 0;
    for (;;) {
      nghttp2_nv nv;
      int flags = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_, &nv, &flags, p, n, final ? 1 : 0);
      if (used < 0) return;
      p += used;
      n -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
        f.fields.emplace_back(std::string(reinterpret_cast<const char*>(nv.name), nv.namelen),
                              std::string(reinterpret_cast<const char*>(nv.value), nv.valuelen));
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
        nghttp2_hd_inflate_end_headers(inflater_);
        return;
      }
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && n == 0) return;
    }
  }

  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string in_;
  std::size_t skip_ = 0;
};

/// Everything that one end of a connection has sent.
class FrameLog {
 public:
  void take(std::string_view octets) {
    for (Frame& f : reader.read(octets)) frames.push_back(std::move(f));
  }
  /// The first frame of `type` (on `stream`, unless it is 0); null when there is none.
  const Frame* find(std::uint8_t type, std::uint32_t stream = 0) const {
    for (const Frame& f : frames)
      if (f.type == type && (stream == 0 || f.stream == stream)) return &f;
    return nullptr;
  }
  /// Error code of the first RST_STREAM of `stream` or, with 0, of the last GOAWAY; -1 when there is none.
  std::int64_t error(std::uint32_t stream) const {
    std::int64_t code = -1;
    for (const Frame& f : frames) {
      if (stream == 0 && f.type == goaway) code = f.u32(4);
      if (stream != 0 && f.type == rst_stream && f.stream == stream) return f.u32(0);
    }
    return code;
  }
  /// All DATA of `stream`.
  std::string body(std::uint32_t stream) const {
    std::string out;
    for (const Frame& f : frames)
      if (f.type == data && f.stream == stream) out += f.payload;
    return out;
  }
  bool ended(std::uint32_t stream) const {
    for (const Frame& f : frames)
      if (f.stream == stream && (f.type == data || f.type == headers) && (f.flags & end_stream) != 0) return true;
    return false;
  }
  std::size_t count(std::uint8_t type) const {
    std::size_t n = 0;
    for (const Frame& f : frames) n += f.type == type;
    return n;
  }

  FrameReader reader;
  std::vector<Frame> frames;
};

}  // namespace twp::test::h2
