#include "origin/site.h"

#include <cstring>

#include "base/ascii.h"
#include "base/clock.h"
#include "origin/content.h"
#include "origin/grpc_call.h"
#include "origin/handlers.h"

namespace twp::origin {
namespace {

constexpr std::string_view kTextType = "text/plain; charset=utf-8";
constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kBytesType = "application/octet-stream";

bool wants_continue(const Head& head) noexcept { return list_contains(head.fields.get(HeaderId::expect), "100-continue"); }

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

// A Content-Type is echoed when the client sent one; otherwise the octets have no known type.
std::string_view type_of(const Head& head) noexcept {
  const std::string_view type = head.fields.get(HeaderId::content_type);
  return type.empty() ? kBytesType : type;
}

}  // namespace

struct Site::Pools {
  std::tuple<Slab<Discard>, Slab<Delay>, Slab<Download>, Slab<Ticker>, Slab<Echo>, Slab<Early>, Slab<Reset>, Slab<WsEcho>,
             Slab<GrpcCall>>
      slabs;
};

template <class T, class... Args>
T& Site::hand_to(Stream& s, Args&&... args) {
  T* t = std::get<Slab<T>>(pools_->slabs).make(*this, std::forward<Args>(args)...);
  s.set_events(*t);
  return *t;
}

template <class T>
void Site::release(T& handler) noexcept {
  // Not at once: release() is called from inside the handler's own callbacks.
  worker_.retire(&handler, [](void* p) noexcept {
    T* t = static_cast<T*>(p);
    std::get<Slab<T>>(t->site().pools_->slabs).destroy(t);
  });
}

template void Site::release(Discard&) noexcept;
template void Site::release(Delay&) noexcept;
template void Site::release(Download&) noexcept;
template void Site::release(Ticker&) noexcept;
template void Site::release(Echo&) noexcept;
template void Site::release(Early&) noexcept;
template void Site::release(Reset&) noexcept;
template void Site::release(WsEcho&) noexcept;
template void Site::release(GrpcCall&) noexcept;

Site::Site(Worker& worker) : worker_(worker), pools_(std::make_unique<Pools>()) {
  root_ = make_head(200, kJsonType, BodySize::exactly(kJson.size()));
}

Site::~Site() = default;

void Site::refresh_date() noexcept {
  const std::uint64_t second = worker_.wall() / 1'000'000'000;
  if (second == date_second_) return;
  date_second_ = second;
  const std::string text = http_date(worker_.wall());
  std::memcpy(date_.data(), text.data(), std::min(text.size(), date_.size()));
}

Head Site::make_head(std::uint16_t status, std::string_view content_type, BodySize size) {
  refresh_date();
  Head h = Head::response(status, size);
  h.fields.add_view(HeaderId::server, header_name(HeaderId::server), "twp-origin");
  h.fields.add_view(HeaderId::date, header_name(HeaderId::date), {date_.data(), date_.size()});
  if (!content_type.empty()) h.fields.add(HeaderId::content_type, content_type);
  if (size.is_exact()) {
    char digits[20];
    h.fields.add(HeaderId::content_length, {digits, write_decimal(digits, size.n)});
  }
  return h;
}

void Site::answer_json(Stream& s, bool head) {
  refresh_date();
  s.send_head(root_, head ? End::yes : End::no);
  if (!head) s.send_body(json_slice(), End::yes);
}

void Site::answer_text(Stream& s, std::uint16_t status, std::string_view text, bool head) {
  const Head h = make_head(status, kTextType, BodySize::exactly(text.size()));
  s.send_head(h, head ? End::yes : End::no);
  if (!head) s.send_body(Slice::copy_of(text), End::yes);
}

void Site::answer_status(Stream& s, std::uint16_t status, bool head) {
  // RFC 9110 §15: these have no content. 205 has none either but says so with a length.
  if (status == 204 || status == 304) {
    s.send_head(make_head(status, {}, BodySize::none()), End::yes);
  } else if (status == 205) {
    s.send_head(make_head(status, {}, BodySize::exactly(0)), End::yes);
  } else {
    std::string text = std::to_string(status);
    if (const std::string_view phrase = reason_phrase(status); !phrase.empty()) text.append(" ").append(phrase);
    answer_text(s, status, text + "\n", head);
  }
}

void Site::answer_trailers(Stream& s, bool head) {
  Head h = make_head(200, kTextType, BodySize::unknown());
  h.fields.add(HeaderId::trailer, "x-twp-trailer, x-twp-octets");
  s.send_head(h, head ? End::yes : End::no);
  if (head) return;
  constexpr std::string_view kText = "a body with trailers\n";
  s.send_body(Slice::copy_of(kText), End::no);
  HeaderBlock trailers;
  trailers.add("x-twp-trailer", "after the body");
  trailers.add("x-twp-octets", std::to_string(kText.size()));
  s.send_trailers(trailers);
}

void Site::answer_interim(Stream& s, bool head) {
  s.send_head(Head::interim(100), End::no);
  Head hints = Head::interim(103);
  hints.fields.add(HeaderId::link, "</style.css>; rel=preload; as=style");
  s.send_head(hints, End::no);
  answer_json(s, head);
}

void Site::answer_download(Stream& s, const Ask& ask) {
  const bool exact = ask.page.kind == PageKind::bytes;
  const Head h = make_head(200, kBytesType, exact ? BodySize::exactly(ask.page.n) : BodySize::unknown());
  if (ask.head || (exact && ask.page.n == 0)) {
    s.send_head(h, End::yes);
    return;
  }
  Download& d = hand_to<Download>(s, ask.page.n);
  s.send_head(h, End::no);
  if (ask.page.n == 0) s.send_body({}, End::yes);
  d.pump(s);
}

void Site::answer(Stream& s, const Ask& ask) {
  const bool head = ask.head;
  switch (ask.page.kind) {
    case PageKind::status: answer_status(s, static_cast<std::uint16_t>(ask.page.n), head); break;
    case PageKind::trailers: answer_trailers(s, head); break;
    case PageKind::interim: answer_interim(s, head); break;
    case PageKind::unknown: answer_text(s, 404, "no such page\n", head); break;
    case PageKind::bad: answer_text(s, 400, "a number is missing or out of range\n", head); break;
    case PageKind::delay: hand_to<Delay>(s, s, ask); break;
    case PageKind::bytes:
    case PageKind::chunked: answer_download(s, ask); break;
    case PageKind::close:
      s.session().drain();
      answer_json(s, head);
      break;
    case PageKind::headers: {
      s.send_head(make_head(200, kJsonType, BodySize::exactly(ask.text.size())), head ? End::yes : End::no);
      if (head) break;
      std::string_view rest = ask.text;
      for (; rest.size() > kBlockSize; rest.remove_prefix(kBlockSize))
        s.send_body(Slice::copy_of(rest.substr(0, kBlockSize)), End::no);
      s.send_body(Slice::copy_of(rest), End::yes);
      break;
    }
    case PageKind::stream:
      s.send_head(make_head(200, kBytesType, BodySize::unknown()), head ? End::yes : End::no);
      if (head) break;
      if (ask.page.chunks == 0) s.send_body({}, End::yes);
      else hand_to<Ticker>(s, s, ask.page);
      break;
    case PageKind::reset:
      hand_to<Reset>(s);
      s.send_head(make_head(200, kBytesType, BodySize::exactly(Reset::kPromised)), head ? End::yes : End::no);
      if (!head) s.send_body(pattern_slice(0, Reset::kSent), End::no);
      break;
    default: answer_json(s, head); break;
  }
}

void Site::start_echo(Stream& s, const Head& head, End end) {
  if (end == End::yes) {
    s.send_head(make_head(200, type_of(head), BodySize::exactly(0)), End::yes);
    return;
  }
  hand_to<Echo>(s);
  s.send_head(make_head(200, type_of(head), head.body), End::no);
}

void Site::start_ws(Stream& s, const Head& head) {
  const std::string_view version = head.fields.get(HeaderId::sec_websocket_version);
  if (!version.empty() && version != "13") {
    constexpr std::string_view kText = "WebSocket version 13 is the one spoken here\n";
    Head h = make_head(426, kTextType, BodySize::exactly(kText.size()));
    h.fields.add(HeaderId::sec_websocket_version, "13");
    s.send_head(h, End::no);
    s.send_body(Slice::copy_of(kText), End::yes);
    return;
  }
  hand_to<WsEcho>(s, s);
  Head h = make_head(200, {}, BodySize::unknown());
  h.method = Method::connect;  // the tunnel is accepted, as opposed to a page in answer to a GET
  s.send_head(h, End::no);
}

void Site::start_grpc(Stream& s, const Head& head, End end) {
  const GrpcCall::Kind kind = GrpcCall::kind_of(head.path);
  if (kind == GrpcCall::Kind::unknown) {
    // "Trailers-Only": the status is in the only head there is.
    Head h = make_head(200, grpc::kContentType, BodySize::none());
    h.fields.add(HeaderId::grpc_status, std::to_string(static_cast<unsigned>(grpc::Status::unimplemented)));
    h.fields.add(HeaderId::grpc_message, "no such method");
    s.send_head(h, End::yes);
    return;
  }
  GrpcCall& call = hand_to<GrpcCall>(s, kind);
  s.send_head(make_head(200, grpc::kContentType, BodySize::unknown()), End::no);
  if (end == End::yes) call.on_body(s, {}, End::yes);
}

void Site::on_head(Stream& s, Head&& head, End end) noexcept {
  Ask ask{head.path == "/" ? Page{PageKind::root} : parse_page(head.path), head.method == Method::head, {}};
  if (head.is_connect()) {
    if (head.protocol == "websocket" && ask.page.kind == PageKind::ws) start_ws(s, head);
    else if (head.protocol == "websocket") answer_text(s, 404, "WebSocket is spoken at /ws\n", false);
    else answer_text(s, 405, "this is an origin, not a proxy\n", false);
    return;
  }
  if (head.path == "*") {
    s.send_head(make_head(204, {}, BodySize::none()), End::yes);
    return;
  }
  if (ask.page.kind == PageKind::unknown && head.method == Method::post &&
      grpc::is_content_type(head.fields.get(HeaderId::content_type)))
    return start_grpc(s, head, end);
  // A final answer instead of 100 saves the client the upload to a page that is not there.
  if (end == End::no && wants_continue(head)) {
    if (ask.page.kind == PageKind::unknown || ask.page.kind == PageKind::bad) return answer(s, ask);
    s.send_head(Head::interim(100), End::no);
  }
  switch (ask.page.kind) {
    case PageKind::headers: ask.text = head_as_json(head); break;
    case PageKind::echo: return start_echo(s, head, end);
    case PageKind::ws: return answer_text(s, 426, "this page speaks WebSocket\n", ask.head);
    case PageKind::early:
      if (end == End::no) {
        hand_to<Early>(s, ask.head);
        return;
      }
      break;
    default: break;
  }
  if (end == End::yes) answer(s, ask);
  else hand_to<Discard>(s, std::move(ask));
}

void Site::on_body(Stream& s, Slice body, End) noexcept { s.consume(body.size()); }

std::string head_as_json(const Head& head) {
  std::string out = "{\"method\":";
  append_quoted(out, head.method_name);
  out += ",\"scheme\":";
  append_quoted(out, head.scheme);
  out += ",\"authority\":";
  append_quoted(out, head.authority);
  out += ",\"path\":";
  append_quoted(out, head.path);
  out += ",\"version\":\"" + std::to_string(head.version.major) + "." + std::to_string(head.version.minor) + "\"";
  out += ",\"headers\":[";
  for (const Field& f : head.fields) {
    out += &f == head.fields.begin() ? "[" : ",[";
    append_quoted(out, f.name);
    out += ',';
    append_quoted(out, f.value);
    out += ']';
  }
  return out + "]}\n";
}

}  // namespace twp::origin
