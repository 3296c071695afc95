#include "http/header_block.h"

#include <cstring>

#include "base/ascii.h"

namespace twp {

HeaderBlock& HeaderBlock::operator=(HeaderBlock&& o) noexcept {
  if (this == &o) return *this;
  arena_ = std::move(o.arena_);
  fields_ = std::exchange(o.fields_, nullptr);
  count_ = std::exchange(o.count_, 0);
  cap_ = std::exchange(o.cap_, 0);
  present_ = std::exchange(o.present_, {});
  return *this;
}

void HeaderBlock::push(const Field& f) {
  if (count_ == cap_) {
    const std::uint32_t cap = cap_ == 0 ? 16 : cap_ * 2;
    auto* bigger = static_cast<Field*>(arena_.allocate(cap * sizeof(Field)));
    if (count_ != 0) std::memcpy(static_cast<void*>(bigger), fields_, count_ * sizeof(Field));
    fields_ = bigger;
    cap_ = cap;
  }
  fields_[count_++] = f;
  const auto i = static_cast<std::size_t>(f.id);
  present_[i / 64] |= std::uint64_t{1} << (i % 64);
}

void HeaderBlock::recount() noexcept {
  present_ = {};
  for (const Field& f : *this) {
    const auto i = static_cast<std::size_t>(f.id);
    present_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

void HeaderBlock::add(std::string_view name, std::string_view value) {
  push({arena_.copy(name), arena_.copy(value), header_id(name), false});
}

void HeaderBlock::add(HeaderId id, std::string_view value) { push({header_name(id), arena_.copy(value), id, false}); }

void HeaderBlock::add_view(HeaderId id, std::string_view name, std::string_view value, bool never_index) {
  push({name, value, id, never_index});
}

std::size_t HeaderBlock::find(HeaderId id, std::size_t from) const noexcept {
  if (!has(id)) return npos;
  for (std::size_t i = from; i < count_; ++i)
    if (fields_[i].id == id) return i;
  return npos;
}

std::size_t HeaderBlock::find(std::string_view name, std::size_t from) const noexcept {
  const HeaderId id = header_id(name);
  if (id != HeaderId::other) return find(id, from);
  for (std::size_t i = from; i < count_; ++i)
    if (fields_[i].id == HeaderId::other && iequals(fields_[i].name, name)) return i;
  return npos;
}

void HeaderBlock::set(HeaderId id, std::string_view value) {
  const std::size_t first = find(id);
  if (first == npos) {
    add(id, value);
    return;
  }
  set_value(first, value);
  const Field* keep = fields_ + first;
  remove_if([&](const Field& f) { return f.id == id && &f > keep; });
}

void HeaderBlock::set(std::string_view name, std::string_view value) {
  const std::size_t first = find(name);
  if (first == npos) {
    add(name, value);
    return;
  }
  set_value(first, value);
  const Field* keep = fields_ + first;
  remove_if([&](const Field& f) { return &f > keep && iequals(f.name, name); });
}

std::size_t HeaderBlock::remove(HeaderId id) noexcept {
  if (!has(id)) return 0;
  return remove_if([&](const Field& f) { return f.id == id; });
}

std::size_t HeaderBlock::remove(std::string_view name) noexcept {
  if (find(name) == npos) return 0;
  return remove_if([&](const Field& f) { return iequals(f.name, name); });
}

std::string_view HeaderBlock::adopt(std::string_view text) {
  const std::string_view copy = arena_.copy(text);
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto moved = [&](std::string_view v) {
    return v.data() >= begin && v.data() <= end ? std::string_view(copy.data() + (v.data() - begin), v.size()) : v;
  };
  for (std::uint32_t i = 0; i < count_; ++i) {
    fields_[i].name = moved(fields_[i].name);
    fields_[i].value = moved(fields_[i].value);
  }
  return copy;
}

std::size_t HeaderBlock::weight() const noexcept {
  std::size_t n = 0;
  for (const Field& f : *this) n += f.name.size() + f.value.size() + 32;
  return n;
}

HeaderBlock HeaderBlock::clone() const {
  HeaderBlock out;
  for (const Field& f : *this)
    out.push({f.id == HeaderId::other || f.name.data() != header_name(f.id).data() ? out.arena_.copy(f.name) : f.name,
              out.arena_.copy(f.value), f.id, f.never_index});
  return out;
}

void HeaderBlock::clear() noexcept {
  arena_.reset();
  fields_ = nullptr;
  count_ = cap_ = 0;
  present_ = {};
}

}  // namespace twp
