#include "support/h3_raw.h"

namespace twp::test::h3 {
namespace {

/// An integer with a prefix of `bits` (RFC 9204 §4.1.1).
std::string prefixed(std::uint8_t first, unsigned bits, std::size_t v) {
  const std::size_t most = (std::size_t{1} << bits) - 1;
  std::string out;
  if (v < most) return {static_cast<char>(first | v)};
  out.push_back(static_cast<char>(first | most));
  for (v -= most; v >= 128; v >>= 7) out.push_back(static_cast<char>(v | 128));
  out.push_back(static_cast<char>(v));
  return out;
}

}  // namespace

std::string varint(std::uint64_t v) {
  const unsigned size = v < 64 ? 0 : v < 16384 ? 1 : v < (1u << 30) ? 2 : 3;
  const unsigned octets = 1u << size;
  std::string out(octets, '\0');
  for (unsigned i = 0; i < octets; ++i) out[octets - 1 - i] = static_cast<char>(v >> (8 * i));
  out[0] = static_cast<char>(out[0] | static_cast<char>(size << 6));
  return out;
}

std::string frame(std::uint64_t type, std::string_view payload) {
  return varint(type) + varint(payload.size()) + std::string(payload);
}

std::string section(const Lines& lines) {
  std::string out(2, '\0');
  for (const auto& [name, value] : lines)
    out += prefixed(0x20, 3, name.size()) + std::string(name) + prefixed(0, 7, value.size()) +
           std::string(value);
  return out;
}

void RawPeer::send(std::int64_t id, std::string octets, bool fin) {
  Out& o = out_[id];
  if (!octets.empty()) o.pieces.push_back(std::move(octets));
  o.fin |= fin;
  conn->flush_soon();
}

std::int64_t RawPeer::open(bool bidirectional, std::string octets, bool fin) {
  const std::int64_t id = conn->open_stream(bidirectional);
  if (id >= 0) send(id, std::move(octets), fin);
  return id;
}

void RawPeer::greet(std::string_view settings) {
  control = open(false, varint(0) + frame(kSettings, settings));
}

std::string RawPeer::close_code() const {
  const std::size_t at = detail.find("error 0x");
  return at == std::string::npos ? "" : detail.substr(at + 6, detail.find_first_of(": ", at + 6) - at - 6);
}

void RawPeer::on_data(std::int64_t id, std::span<const std::byte> octets, bool fin) noexcept {
  in[id].append(reinterpret_cast<const char*>(octets.data()), octets.size());
  if (fin) ended[id] = true;
  if (!credit) return;
  conn->credit(id, octets.size());
  conn->credit_connection(octets.size());
}

void RawPeer::on_over(Fault why, const std::string& text) noexcept {
  over = true;
  fault = why;
  detail = text;
}

QuicOutput::Piece RawPeer::next() noexcept {
  for (auto& [id, o] : out_) {
    if (o.stuck) continue;
    if (o.next < o.pieces.size()) {
      std::string& s = o.pieces[o.next];
      piece_ = {s.data() + o.at, s.size() - o.at};
      return {id, std::span<const iovec>(&piece_, 1), o.fin && o.next + 1 == o.pieces.size()};
    }
    if (o.fin && !o.fin_sent) return {id, {}, true};
  }
  return {};
}

void RawPeer::wrote(std::int64_t id, std::size_t n) noexcept {
  Out& o = out_[id];
  if (o.next < o.pieces.size()) {
    o.at += n;
    if (o.at < o.pieces[o.next].size()) return;
    o.at = 0;
    ++o.next;
  }
  if (o.fin && o.next == o.pieces.size()) o.fin_sent = true;
}

void RawPeer::stopped(std::int64_t id) noexcept {
  stops[id] = true;
  out_.erase(id);
}

}  // namespace twp::test::h3
