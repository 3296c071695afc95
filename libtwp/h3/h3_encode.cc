#include "h3/h3_encode.h"

#include "http/field_section.h"

namespace twp::h3 {
namespace {

/// Appends name-value pairs in an arena; nothing of it moves.
class Encoder {
 public:
  Encoder(Arena& arena, std::size_t most) noexcept
      : arena_(arena), lines_(static_cast<nghttp3_nv*>(arena.allocate(most * sizeof(nghttp3_nv)))) {}

  void add(std::string_view name, std::string_view value, bool no_index) noexcept {
    const std::string_view v = arena_.copy(value);
    const unsigned flags = (no_index ? NGHTTP3_NV_FLAG_NEVER_INDEX : NGHTTP3_NV_FLAG_NONE) |
                           NGHTTP3_NV_FLAG_NO_COPY_NAME | NGHTTP3_NV_FLAG_NO_COPY_VALUE;
    lines_[n_++] = {reinterpret_cast<const std::uint8_t*>(name.data()),
                    reinterpret_cast<const std::uint8_t*>(v.data()), name.size(), v.size(),
                    static_cast<std::uint8_t>(flags)};
  }
  EncodedFields lines() const noexcept { return {lines_, n_}; }

 private:
  Arena& arena_;
  nghttp3_nv* lines_;
  std::size_t n_ = 0;
};

}  // namespace

EncodedFields encode_head(const Head& head, Arena& arena) noexcept {
  Encoder out(arena, head.fields.size() + kMostPseudo);
  for_each_line(head, arena, [&](std::string_view name, std::string_view value, bool no_index) {
    out.add(name, value, no_index);
  });
  return out.lines();
}

EncodedFields encode_trailers(const HeaderBlock& fields, Arena& arena) noexcept {
  Encoder out(arena, fields.size());
  for (const Field& f : fields)
    if (!is_connection_field(f.id)) out.add(wire_name(f, arena), f.value, must_not_index(f));
  return out.lines();
}

}  // namespace twp::h3
