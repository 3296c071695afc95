#include "base/chain.h"

#include <algorithm>

namespace twp {

Chain::Chain(Chain&& o) noexcept { *this = std::move(o); }

Chain& Chain::operator=(Chain&& o) noexcept {
  if (this == &o) return *this;
  clear();
  heap_ = std::move(o.heap_);
  cap_ = std::exchange(o.cap_, 4);
  head_ = std::exchange(o.head_, 0);
  count_ = std::exchange(o.count_, 0);
  bytes_ = std::exchange(o.bytes_, 0);
  if (!heap_)
    for (std::size_t i = 0; i < 4; ++i) inline_[i] = std::move(o.inline_[i]);
  return *this;
}

Chain::~Chain() = default;

void Chain::append(Slice s) noexcept {
  const std::size_t n = s.size();
  if (n == 0) return;
  if (n <= kCopyBelow && count_ != 0 && at(count_ - 1).extend(s.bytes())) {
    bytes_ += n;
    return;
  }
  if (n < kPackBelow && count_ >= kLooseSlices) pack(s.bytes());
  else push(std::move(s));
}

void Chain::pack(std::span<const std::byte> from) noexcept {
  const auto part = from.first(std::min(from.size(), at(count_ - 1).room()));
  at(count_ - 1).extend(part);
  bytes_ += part.size();
  if (part.size() == from.size()) return;
  Slice own(BlockPool::local().take(), 0, 0);
  own.extend(from.subspan(part.size()));
  push(std::move(own));
}

void Chain::append_copy(std::span<const std::byte> from) noexcept {
  while (!from.empty()) {
    // Fill the block before taking another: bulk data then costs no half-empty blocks.
    const std::size_t room = count_ == 0 ? 0 : at(count_ - 1).room();
    const auto part = from.first(std::min(from.size(), room != 0 ? room : kBlockSize));
    if (room != 0) {
      at(count_ - 1).extend(part);
      bytes_ += part.size();
    } else if (part.size() < kPackBelow && count_ >= kLooseSlices) {
      pack(part);
    } else {
      push(Slice::copy_of(part));
    }
    from = from.subspan(part.size());
  }
}

void Chain::commit(std::size_t m) noexcept {
  if (m == 0) return;
  Block* b = BlockPool::local().current_scratch();
  const std::uint32_t off = b->used;
  const auto n = static_cast<std::uint32_t>(m);
  b->used += n;
  if (count_ != 0 && at(count_ - 1).grow(b, off, n)) {
    bytes_ += m;
    return;
  }
  push(Slice(BlockPool::retain(b), off, n));
}

void Chain::append(Chain&& from) noexcept {
  while (!from.empty()) push(from.pop_front());
}

void Chain::consume(std::size_t n) noexcept {
  bytes_ -= n;
  while (n != 0) {
    Slice& s = at(0);
    if (s.size() > n) {
      s.remove_prefix(n);
      return;
    }
    n -= s.size();
    s = Slice();
    head_ = (head_ + 1) & static_cast<std::uint32_t>(mask());
    --count_;
  }
}

Slice Chain::pop_front() noexcept {
  Slice s = std::move(at(0));
  bytes_ -= s.size();
  head_ = (head_ + 1) & static_cast<std::uint32_t>(mask());
  --count_;
  return s;
}

Slice Chain::take_front(std::size_t max) noexcept {
  if (count_ == 0 || max == 0) return {};
  if (at(0).size() <= max) return pop_front();
  bytes_ -= max;
  return at(0).split(max);
}

void Chain::clear() noexcept {
  while (count_ != 0) pop_front();
}

std::size_t Chain::iovecs(std::span<iovec> out) const noexcept {
  const std::size_t n = std::min<std::size_t>(out.size(), count_);
  for (std::size_t i = 0; i < n; ++i) {
    const auto b = at(i).bytes();
    out[i] = {const_cast<std::byte*>(b.data()), b.size()};
  }
  return n;
}

std::size_t Chain::peek(std::span<std::byte> out) const noexcept {
  std::size_t done = 0;
  for (std::size_t i = 0; i < count_ && done < out.size(); ++i) {
    const auto b = at(i).bytes();
    const std::size_t n = std::min(b.size(), out.size() - done);
    std::memcpy(out.data() + done, b.data(), n);
    done += n;
  }
  return done;
}

void Chain::push(Slice s) noexcept {
  if (count_ == cap_) grow();
  bytes_ += s.size();
  slots()[(head_ + count_) & mask()] = std::move(s);
  ++count_;
}

void Chain::grow() noexcept {
  auto bigger = std::make_unique<Slice[]>(std::size_t{cap_} * 2);
  for (std::size_t i = 0; i < count_; ++i) bigger[i] = std::move(at(i));
  heap_ = std::move(bigger);
  cap_ *= 2;
  head_ = 0;
}

}  // namespace twp
