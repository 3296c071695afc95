#include "origin/page.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace twp::origin {
namespace {

struct Named {
  std::string_view path;
  PageKind kind;
};
constexpr std::array kPlain{
    Named{"/headers", PageKind::headers}, Named{"/echo", PageKind::echo},       Named{"/early", PageKind::early},
    Named{"/trailers", PageKind::trailers}, Named{"/interim", PageKind::interim}, Named{"/ws", PageKind::ws},
    Named{"/close", PageKind::close},     Named{"/reset", PageKind::reset},
};

struct Numbered {
  std::string_view prefix;
  PageKind kind;
  std::uint64_t least, most;
};
constexpr std::array kNumbered{
    Numbered{"/bytes/", PageKind::bytes, 0, kMaxBody},
    Numbered{"/chunked/", PageKind::chunked, 0, kMaxBody},
    Numbered{"/delay/", PageKind::delay, 0, kMaxDelayMs},
    Numbered{"/status/", PageKind::status, 200, 599},
};

Page parse_stream(std::string_view query) noexcept {
  Page p{PageKind::stream, 1024, 10, 100};
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t eq = item.find('=');
    if (eq == std::string_view::npos) return {PageKind::bad};
    const auto v = parse_decimal(item.substr(eq + 1));
    const std::string_view name = item.substr(0, eq);
    if (!v) return {PageKind::bad};
    if (name == "chunks" && *v <= kMaxStreamChunks) p.chunks = *v;
    else if (name == "size" && *v >= 1 && *v <= kMaxStreamChunk) p.n = *v;
    else if (name == "interval" && *v <= kMaxDelayMs) p.interval_ms = *v;
    else return {PageKind::bad};
  }
  return p;
}

}  // namespace

Page parse_page(std::string_view target) noexcept {
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  if (path == "/") return {PageKind::root};
  if (path == "/stream") return parse_stream(target.substr(std::min(mark + 1, target.size())));
  for (const Named& n : kPlain)
    if (path == n.path) return {n.kind};
  for (const Numbered& n : kNumbered) {
    if (!path.starts_with(n.prefix)) continue;
    const auto v = parse_decimal(path.substr(n.prefix.size()));
    if (!v || *v < n.least || *v > n.most) return {PageKind::bad};
    return {n.kind, *v};
  }
  return {PageKind::unknown};
}

}  // namespace twp::origin
