// HeaderBlock: the fields of a head or trailer section, in order, with their bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/arena.h"
#include "http/header_id.h"

namespace twp {

/// One field line. Views point into the block's arena (or at static text) and live as long as the block.
struct Field {
  std::string_view name;   ///< as received over HTTP/1; lower case from HTTP/2 and HTTP/3
  std::string_view value;  ///< no leading or trailing blanks, no CR, LF or NUL
  HeaderId id = HeaderId::other;
  bool never_index = false;  ///< arrived as a never-indexed literal; must stay one (RFC 7541 §7.1.3)
};

/// Owns its bytes; move-only. find() of an absent known name is one bit test.
class HeaderBlock {
 public:
  HeaderBlock() noexcept = default;
  HeaderBlock(HeaderBlock&& o) noexcept { *this = std::move(o); }
  HeaderBlock& operator=(HeaderBlock&& o) noexcept;
  HeaderBlock(const HeaderBlock&) = delete;
  HeaderBlock& operator=(const HeaderBlock&) = delete;
  ~HeaderBlock() = default;

  static constexpr std::size_t npos = ~std::size_t{0};

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  const Field& operator[](std::size_t i) const noexcept { return fields_[i]; }
  const Field* begin() const noexcept { return fields_; }
  const Field* end() const noexcept { return fields_ + count_; }

  /// Appends a field whose bytes are copied.
  void add(std::string_view name, std::string_view value);
  void add(HeaderId id, std::string_view value);
  /// Appends a field whose bytes already live in this block's arena or are static.
  void add_view(HeaderId id, std::string_view name, std::string_view value, bool never_index = false);

  bool has(HeaderId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    return (present_[i / 64] >> (i % 64) & 1) != 0;
  }
  /// Index of the first field `id` at or after `from`; npos when there is none. Not for HeaderId::other.
  std::size_t find(HeaderId id, std::size_t from = 0) const noexcept;
  /// Index of the first field called `name` in any case.
  std::size_t find(std::string_view name, std::size_t from = 0) const noexcept;
  /// Value of the first field `id`; empty when absent (use has() to tell absent from empty).
  std::string_view get(HeaderId id) const noexcept {
    const std::size_t i = find(id);
    return i == npos ? std::string_view() : fields_[i].value;
  }
  std::string_view get(std::string_view name) const noexcept {
    const std::size_t i = find(name);
    return i == npos ? std::string_view() : fields_[i].value;
  }

  /// Replaces the first field `id` and removes the others of that name; appends when there was none. Copies.
  void set(HeaderId id, std::string_view value);
  void set(std::string_view name, std::string_view value);
  /// Removes every field `id` / `name`; returns how many.
  std::size_t remove(HeaderId id) noexcept;
  std::size_t remove(std::string_view name) noexcept;
  /// Removes every field for which `f(const Field&)` is true, keeping the order.
  template <class F>
  std::size_t remove_if(F&& f) noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (f(static_cast<const Field&>(fields_[i]))) continue;
      if (kept != i) fields_[kept] = fields_[i];
      ++kept;
    }
    const std::size_t removed = count_ - kept;
    count_ = static_cast<std::uint32_t>(kept);
    if (removed != 0) recount();
    return removed;
  }
  /// Rewrites one value in place (copies `value`).
  void set_value(std::size_t i, std::string_view value) { fields_[i].value = arena_.copy(value); }

  /// Copies `text` into the arena and makes every field view that points into `text` point into the copy: a
  /// parser works in place on received octets, then makes the result its own. Returns the copy.
  std::string_view adopt(std::string_view text);

  /// Sum of name + value + 32 over all fields: the size RFC 9113 §6.5.2 counts, in octets.
  std::size_t weight() const noexcept;

  /// Memory for bytes that fields of this block point to (codecs copy a whole head once and add views).
  Arena& arena() noexcept { return arena_; }
  HeaderBlock clone() const;
  void clear() noexcept;

 private:
  void push(const Field& f);
  void recount() noexcept;

  Arena arena_;
  Field* fields_ = nullptr;  // in the arena
  std::uint32_t count_ = 0;
  std::uint32_t cap_ = 0;
  std::array<std::uint64_t, 2> present_{};
};

static_assert(static_cast<std::size_t>(HeaderId::count_) <= 128, "HeaderBlock::present_ has 128 bits");

}  // namespace twp
