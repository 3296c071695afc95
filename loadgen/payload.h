// Payload: the request body of a load, static memory shared by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/slice.h"

namespace twp::load {

/// Generated (a fixed pseudo-random pattern) or from a file. Immutable once made.
class Payload {
 public:
  Payload() noexcept = default;
  static Payload generated(std::uint64_t size) noexcept;
  /// Reads the file; at most 1 GiB, which is held in memory.
  static Result<Payload> from_file(const std::string& path);

  std::uint64_t size() const noexcept { return size_; }
  /// Octets from `offset` on: at least one and at most `max`, never past the end. No copy.
  Slice slice(std::uint64_t offset, std::uint64_t max) const noexcept;
  std::uint64_t hash() const noexcept { return hash_; }  ///< BodyHash of all of it
  /// True when `octets` are what is at `offset`.
  bool matches(std::uint64_t offset, std::span<const std::byte> octets) const noexcept;

 private:
  struct Octets;
  std::shared_ptr<Octets> octets_;  // null: generated
  std::uint64_t size_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace twp::load
