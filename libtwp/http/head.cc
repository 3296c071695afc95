#include "http/head.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/ascii.h"

namespace twp {

Head Head::response(std::uint16_t status, BodySize body) {
  Head h;
  h.kind = HeadKind::response;
  h.status = status;
  h.body = body;
  return h;
}

Head Head::interim(std::uint16_t status) {
  Head h = response(status);
  h.kind = HeadKind::interim;
  return h;
}

Head Head::request(Method m, std::string_view scheme, std::string_view authority, std::string_view path,
                   BodySize body) {
  Head h;
  h.set_method(m);
  h.scheme = scheme == "https" ? std::string_view("https") : std::string_view("http");
  h.set_authority(authority);
  h.set_path(path);
  h.body = body;
  return h;
}

Head Head::clone() const {
  Head h;
  h.kind = kind;
  h.method = method;
  h.version = version;
  h.status = status;
  h.body = body;
  h.fields = fields.clone();
  Arena& a = h.fields.arena();
  h.method_name = method == Method::other ? a.copy(method_name) : method_text(method);
  h.scheme = a.copy(scheme);
  h.authority = a.copy(authority);
  h.path = a.copy(path);
  h.protocol = a.copy(protocol);
  h.reason = a.copy(reason);
  return h;
}

bool is_grpc(const Head& request) noexcept {
  constexpr std::string_view kType = "application/grpc";
  if (!request.fields.has(HeaderId::content_type)) return false;
  const std::string_view type = request.fields.get(HeaderId::content_type);
  return istarts_with(type, kType) &&
         (type.size() == kType.size() || std::string_view("+-; ").find(type[kType.size()]) != std::string_view::npos);
}

std::string_view reason_phrase(std::uint16_t status) noexcept {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 508: return "Loop Detected";
    default: return "";
  }
}

namespace {

/// The fields without a HeaderId, found by name in constant time: a Connection field may list tens of thousands of names,
/// and asking every field about each of them would let one head keep a worker busy. Memory is the block's own.
class UnknownFields {
 public:
  explicit UnknownFields(HeaderBlock& of) noexcept : seed_(reinterpret_cast<std::uintptr_t>(this)) {
    std::size_t n = 0;
    for (const Field& f : of) n += f.id == HeaderId::other;
    while (mask_ + 1 <= 2 * n) mask_ = 2 * mask_ + 1;
    slots_ = static_cast<Slot*>(of.arena().allocate((mask_ + 1) * sizeof(Slot)));
    std::uninitialized_fill_n(slots_, mask_ + 1, Slot{});
    for (const Field& f : of) {
      if (f.id != HeaderId::other) continue;
      const std::uint64_t h = hash(f.name);
      if (Slot* s = find(f.name, h); s->free()) *s = {h, f.name, false};
    }
  }
  /// `name` stands in a Connection field.
  void list(std::string_view name) noexcept {
    if (Slot* s = find(name, hash(name)); !s->free()) any_ = s->listed = true;
  }
  bool any_listed() const noexcept { return any_; }
  bool listed(std::string_view name) const noexcept { return find(name, hash(name))->listed; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::string_view name;
    bool listed = false;
    bool free() const noexcept { return name.empty(); }
  };

  // FNV-1a from a start that a sender cannot know (where this object is), so that it cannot choose names that collide.
  std::uint64_t hash(std::string_view name) const noexcept {
    std::uint64_t h = 14695981039346656037u ^ (seed_ * 0x9e3779b97f4a7c15u);
    for (const char c : name) h = (h ^ static_cast<unsigned char>(to_lower(c))) * 1099511628211u;
    return h ^ (h >> 32);
  }
  /// The slot of `name`, or the free one where it would be. At most half of the slots are taken.
  Slot* find(std::string_view name, std::uint64_t h) const noexcept {
    for (std::size_t i = h & mask_;; i = (i + 1) & mask_) {
      Slot& s = slots_[i];
      if (s.free() || (s.hash == h && iequals(s.name, name))) return &s;
    }
  }

  const std::uint64_t seed_;
  Slot* slots_ = nullptr;
  std::size_t mask_ = 1;
  bool any_ = false;
};

/// Removes what Connection lists, and Connection. Framing, routing and Host are never "listed away": a sender must not be
/// able to hide a length from the next hop. "te" is listed by every sender of "te: trailers"; its value decides.
void remove_listed(HeaderBlock& fields) noexcept {
  constexpr std::uint16_t kKept = header_flag::framing | header_flag::routing;
  std::array<bool, static_cast<std::size_t>(HeaderId::count_)> known{};
  std::optional<UnknownFields> unknown;  // most lists are "close" or "keep-alive"
  for (const Field& f : fields) {
    if (f.id != HeaderId::connection) continue;
    for_each_list_element(f.value, [&](std::string_view name) {
      const HeaderId id = header_id(name);
      known[static_cast<std::size_t>(id)] = true;
      if (id == HeaderId::other) {
        if (!unknown) unknown.emplace(fields);
        unknown->list(name);
      }
      return true;
    });
  }
  known[static_cast<std::size_t>(HeaderId::other)] = false;
  known[static_cast<std::size_t>(HeaderId::te)] = false;
  known[static_cast<std::size_t>(HeaderId::connection)] = true;
  fields.remove_if([&](const Field& f) {
    if (f.id == HeaderId::other) return unknown && unknown->any_listed() && unknown->listed(f.name);
    return known[static_cast<std::size_t>(f.id)] && (header_flags(f.id) & kKept) == 0;
  });
}

}  // namespace

void remove_hop_by_hop(HeaderBlock& fields) noexcept {
  if (fields.has(HeaderId::connection)) remove_listed(fields);
  bool te_trailers = false;
  for (std::size_t i = 0; (i = fields.find(HeaderId::te, i)) != HeaderBlock::npos; ++i)
    te_trailers |= list_contains(fields[i].value, "trailers");
  bool any = false;
  for (const Field& f : fields) any |= (header_flags(f.id) & header_flag::hop) != 0;
  if (!any) return;
  fields.remove_if([](const Field& f) { return (header_flags(f.id) & header_flag::hop) != 0; });
  if (te_trailers) fields.add_view(HeaderId::te, "te", "trailers");
}

void join_cookies(HeaderBlock& fields) {
  const std::size_t first = fields.find(HeaderId::cookie);
  if (first == HeaderBlock::npos) return;
  std::size_t second = fields.find(HeaderId::cookie, first + 1);
  if (second == HeaderBlock::npos) return;
  std::size_t total = 0;
  for (const Field& f : fields)
    if (f.id == HeaderId::cookie) total += f.value.size() + 2;
  char* joined = static_cast<char*>(fields.arena().allocate(total));
  std::size_t n = 0;
  for (const Field& f : fields) {
    // An empty crumb says nothing, and at the end it would leave a blank that no value may end with.
    if (f.id != HeaderId::cookie || f.value.empty()) continue;
    if (n != 0) {
      std::memcpy(joined + n, "; ", 2);
      n += 2;
    }
    std::memcpy(joined + n, f.value.data(), f.value.size());
    n += f.value.size();
  }
  fields.set(HeaderId::cookie, {joined, n});
}

}  // namespace twp
