#include "tls/client_hello.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/ascii.h"

namespace twp {
namespace {

using Status = ClientHello::Status;

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxFragment = 16 * 1024;
constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kClientHello = 1;
constexpr std::uint16_t kServerName = 0;
constexpr std::uint16_t kAlpn = 16;
constexpr std::uint16_t kSupportedVersions = 43;

// A cursor that goes empty and stays bad instead of reading past the end.
class Reader {
 public:
  explicit Reader(std::string_view s) noexcept : rest_(s) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return rest_.empty(); }

  std::size_t number(unsigned width) noexcept {
    std::size_t v = 0;
    for (const char c : bytes(width)) v = v << 8 | static_cast<unsigned char>(c);
    return v;
  }
  std::string_view bytes(std::size_t n) noexcept {
    if (n > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto part = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return part;
  }
  /// Octets with a length of `width` octets in front.
  std::string_view vector(unsigned width) noexcept { return bytes(number(width)); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// RFC 8701: 0x0a0a, 0x1a1a ... 0xfafa.
bool is_grease(std::size_t v) noexcept { return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff); }

bool read_name(Reader ext, ClientHello& out) {
  Reader list(ext.vector(2));
  while (ext.ok() && ext.at_end() && !list.at_end()) {
    const std::size_t type = list.number(1);
    const auto name = list.vector(2);
    if (!list.ok()) return false;
    if (type != 0 || !out.sni.empty()) continue;
    if (name.empty() || name.size() > 255 || name.find('\0') != std::string_view::npos) return false;
    out.sni = lower(name);
    if (out.sni.ends_with('.')) out.sni.pop_back();
  }
  return ext.ok() && ext.at_end() && list.ok();
}

bool read_alpn(Reader ext, ClientHello& out) {
  Reader list(ext.vector(2));
  while (list.ok() && !list.at_end()) {
    const auto name = list.vector(1);
    if (!list.ok() || name.empty()) return false;
    out.alpn.emplace_back(name);
  }
  return ext.ok() && ext.at_end() && list.ok();
}

bool read_versions(Reader ext, ClientHello& out) {
  Reader list(ext.vector(1));
  out.versions.clear();
  while (list.ok() && !list.at_end()) {
    const std::size_t v = list.number(2);
    if (list.ok() && !is_grease(v)) out.versions.push_back(static_cast<std::uint16_t>(v));
  }
  return ext.ok() && ext.at_end() && list.ok();
}

bool read_extensions(Reader all, ClientHello& out) {
  bool seen_name = false;
  bool seen_alpn = false;
  bool seen_versions = false;
  // RFC 8446 §4.2: an extension comes at most once.
  const auto first = [](bool& seen) { return !std::exchange(seen, true); };
  while (!all.at_end()) {
    const std::size_t type = all.number(2);
    const Reader ext(all.vector(2));
    if (!all.ok()) return false;
    if (type == kServerName && !(first(seen_name) && read_name(ext, out))) return false;
    if (type == kAlpn && !(first(seen_alpn) && read_alpn(ext, out))) return false;
    if (type == kSupportedVersions && !(first(seen_versions) && read_versions(ext, out))) return false;
  }
  return all.ok();
}

bool read_body(Reader r, ClientHello& out) {
  const std::size_t legacy = r.number(2);
  r.bytes(32);                                     // random
  if (r.vector(1).size() > 32) return false;       // session id
  const auto suites = r.vector(2);
  if (suites.empty() || suites.size() % 2 != 0) return false;
  if (r.vector(1).empty() || !r.ok()) return false;  // compression methods
  out.versions.push_back(static_cast<std::uint16_t>(legacy));
  if (r.at_end()) return true;                     // TLS 1.2 allows a hello without extensions
  const auto extensions = r.vector(2);
  return r.ok() && r.at_end() && read_extensions(Reader(extensions), out);
}

// Joins the handshake octets of the records. Sets `status` when the records themselves decide.
std::optional<Status> join_records(std::string_view in, std::string& message) {
  while (!in.empty()) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(in[i]); };
    // Only the first record's type and major version tell TLS from something else.
    const Status wrong = message.empty() ? Status::not_tls : Status::malformed;
    if (at(0) != kHandshake || (in.size() > 1 && at(1) != 3)) return wrong;
    if (in.size() < kRecordHeader) return std::nullopt;
    const std::size_t n = static_cast<std::size_t>(at(3)) << 8 | at(4);
    if (n == 0 || n > kMaxFragment) return Status::malformed;
    const auto fragment = in.substr(kRecordHeader, n);
    message += fragment;
    if (fragment.size() < n) return std::nullopt;
    in.remove_prefix(kRecordHeader + n);
    if (message.size() >= 4) {
      Reader r(std::string_view(message).substr(1));
      if (message.size() >= 4 + r.number(3)) return std::nullopt;  // what follows is not the hello's
    }
  }
  return std::nullopt;
}

}  // namespace

ClientHello peek_client_hello(std::span<const std::byte> octets) {
  ClientHello out;
  std::string message;
  const auto decided = join_records({reinterpret_cast<const char*>(octets.data()), octets.size()}, message);
  if (!message.empty() && static_cast<unsigned char>(message[0]) != kClientHello) {
    out.status = Status::malformed;
    return out;
  }
  std::size_t need = 4;
  if (message.size() >= 4) need += Reader(std::string_view(message).substr(1)).number(3);
  if (need > kMaxClientHello) {
    out.status = Status::malformed;
  } else if (message.size() >= 4 && message.size() >= need) {
    const bool good = read_body(Reader(std::string_view(message).substr(4, need - 4)), out);
    if (!good) out = {};
    out.status = good ? Status::complete : Status::malformed;
  } else if (decided) {
    out.status = *decided;
  }
  return out;
}

}  // namespace twp
