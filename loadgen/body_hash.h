// BodyHash: a 64-bit hash of a body that does not depend on how the body was cut into pieces. Finds wrong answers, not
// attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace twp::load {

class BodyHash {
 public:
  void feed(std::span<const std::byte> octets) noexcept {
    length_ += octets.size();
    std::size_t i = 0;
    while (have_ != 0 && i < octets.size()) push(octets[i++]);
    for (; i + 8 <= octets.size(); i += 8) {
      std::uint64_t word;
      std::memcpy(&word, octets.data() + i, 8);
      mix(word);
    }
    while (i < octets.size()) push(octets[i++]);
  }
  /// The hash of everything fed; feeding may go on.
  std::uint64_t value() const noexcept {
    BodyHash last = *this;
    last.mix(partial_);
    last.mix(length_);
    return last.state_;
  }
  std::uint64_t length() const noexcept { return length_; }

 private:
  void push(std::byte b) noexcept {
    partial_ |= static_cast<std::uint64_t>(b) << (8 * have_);
    if (++have_ < 8) return;
    mix(partial_);
    have_ = 0;
    partial_ = 0;
  }
  void mix(std::uint64_t word) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(state_ ^ word) * 0x9fb21c651e98df25u;
    state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ 0x2545f4914f6cdd1du;
  }

  std::uint64_t state_ = 0xa0761d6478bd642f;
  std::uint64_t partial_ = 0;
  std::uint64_t length_ = 0;
  unsigned have_ = 0;
};

}  // namespace twp::load
