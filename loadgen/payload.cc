#include "loadgen/payload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "loadgen/body_hash.h"
#include "origin/content.h"

namespace twp::load {
namespace {

constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;

std::uint64_t hash_of(const Payload& p) noexcept {
  BodyHash h;
  for (std::uint64_t at = 0; at < p.size();) {
    const Slice s = p.slice(at, p.size() - at);
    h.feed(s.bytes());
    at += s.size();
  }
  return h.value();
}

}  // namespace

struct Payload::Octets {
  std::vector<std::byte> data;
  Block block{};
};

Payload Payload::generated(std::uint64_t size) noexcept {
  Payload p;
  p.size_ = size;
  p.hash_ = hash_of(p);
  return p;
}

Result<Payload> Payload::from_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  if (size < 0) return fail(Fault::bad_config, "cannot read " + path + ": " + errno_text(errno));
  if (static_cast<std::uint64_t>(size) > kMaxFile) return fail(Fault::bad_config, path + " is larger than 1 GiB");
  Payload p;
  p.octets_ = std::make_shared<Octets>();
  p.octets_->data.resize(static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(p.octets_->data.data()), size);
  if (!in) return fail(Fault::bad_config, "cannot read " + path + ": " + errno_text(errno));
  const auto n = static_cast<std::uint32_t>(size);
  p.octets_->block = {.refs = 1, .used = n, .size = n, .immortal = true, .data = p.octets_->data.data(), .next = nullptr};
  p.size_ = n;
  p.hash_ = hash_of(p);
  return p;
}

Slice Payload::slice(std::uint64_t offset, std::uint64_t max) const noexcept {
  const std::uint64_t n = std::min(max, size_ - offset);
  if (octets_ == nullptr) return origin::pattern_slice(offset, n);
  return Slice(&octets_->block, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(n));
}

bool Payload::matches(std::uint64_t offset, std::span<const std::byte> octets) const noexcept {
  if (octets.size() > size_ || offset > size_ - octets.size()) return false;
  while (!octets.empty()) {
    const Slice s = slice(offset, octets.size());
    if (std::memcmp(s.bytes().data(), octets.data(), s.size()) != 0) return false;
    offset += s.size();
    octets = octets.subspan(s.size());
  }
  return true;
}

}  // namespace twp::load
