#include "h1/translate.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "net/address.h"

namespace twp::h1 {
namespace {

/// Splits the request target (RFC 9112 §3.2) into head.authority and head.path.
Fault read_target(std::string_view target, Method method, Head& head) noexcept {
  if (method == Method::connect) {
    // authority-form: host and port, nothing else.
    if (!valid_authority(target) || target.rfind(':') == std::string_view::npos || target.ends_with(']') ||
        target.ends_with(':'))
      return Fault::bad_target;
    head.authority = target;
    head.path = {};
    return Fault::none;
  }
  if (target.starts_with('/')) {
    head.path = target;
    return Fault::none;
  }
  if (target == "*") {
    head.path = target;
    return method == Method::options ? Fault::none : Fault::bad_target;
  }
  // absolute-form. Userinfo is refused by valid_authority: it is a phishing vector (RFC 9110 §4.2.4).
  if (istarts_with(target, "http://")) {
    head.scheme = "http";
    target.remove_prefix(7);
  } else if (istarts_with(target, "https://")) {
    head.scheme = "https";
    target.remove_prefix(8);
  } else {
    return Fault::bad_target;
  }
  const std::size_t slash = target.find_first_of("/?");
  head.authority = target.substr(0, slash);
  if (!valid_authority(head.authority)) return Fault::bad_target;
  if (slash == std::string_view::npos) {
    // OPTIONS without a path asks about the server (RFC 9112 §3.2.4).
    head.path = method == Method::options ? std::string_view("*") : std::string_view("/");
  } else if (target[slash] == '?') {
    // "http://host?query": the path is empty, which in origin-form is "/".
    char* p = static_cast<char*>(head.fields.arena().allocate(target.size() - slash + 1));
    *p = '/';
    std::copy(target.begin() + static_cast<std::ptrdiff_t>(slash), target.end(), p + 1);
    head.path = {p, target.size() - slash + 1};
  } else {
    head.path = target.substr(slash);
  }
  return Fault::none;
}

/// Exactly one Host line in HTTP/1.1, at most one in 1.0 (RFC 9112 §3.2); the target's authority wins.
Fault read_host(const RawHead& raw, Head& head) noexcept {
  const std::size_t host = head.fields.find(HeaderId::host);
  if (host == HeaderBlock::npos) return raw.version.minor == 0 ? Fault::none : Fault::bad_host;
  if (head.fields.find(HeaderId::host, host + 1) != HeaderBlock::npos) return Fault::bad_host;
  const std::string_view value = head.fields[host].value;
  if (!valid_authority(value)) return Fault::bad_host;
  if (head.authority.empty()) head.authority = value;
  head.fields.remove(HeaderId::host);
  return Fault::none;
}

/// Whether any Connection line lists `token`.
bool connection_lists(const HeaderBlock& fields, std::string_view token) noexcept {
  for (std::size_t i = 0; (i = fields.find(HeaderId::connection, i)) != HeaderBlock::npos; ++i)
    if (list_contains(fields[i].value, token)) return true;
  return false;
}

void read_persistence(HttpVersion version, const HeaderBlock& fields, MessageInfo& info) noexcept {
  const bool has_connection = fields.has(HeaderId::connection);
  const bool close = has_connection && connection_lists(fields, "close");
  if (version.minor == 0) {
    info.explicit_keep_alive = has_connection && connection_lists(fields, "keep-alive");
    info.keep_alive = info.explicit_keep_alive && !close;
  } else {
    info.keep_alive = !close;
  }
}

/// For the trailers; what nearly every Connection lists is none.
void read_listed(const HeaderBlock& fields, MessageInfo& info) {
  if (info.framing != Framing::chunked) return;
  for (std::size_t i = 0; (i = fields.find(HeaderId::connection, i)) != HeaderBlock::npos; ++i) {
    for_each_list_element(fields[i].value, [&](std::string_view name) {
      if (iequals(name, "close") || iequals(name, "keep-alive") || iequals(name, "te")) return true;
      if (!info.listed.empty()) info.listed += ',';
      info.listed += name;
      return true;
    });
  }
}

bool is_websocket_upgrade(const HeaderBlock& fields) noexcept {
  return fields.has(HeaderId::upgrade) && fields.has(HeaderId::connection) &&
         iequals(fields.get(HeaderId::upgrade), "websocket") && connection_lists(fields, "upgrade") &&
         fields.find(HeaderId::upgrade, fields.find(HeaderId::upgrade) + 1) == HeaderBlock::npos;
}

Fault read_expectation(HttpVersion version, HeaderBlock& fields, MessageInfo& info) noexcept {
  if (!fields.has(HeaderId::expect)) return Fault::none;
  if (version.minor == 0) {
    // An expectation from HTTP/1.0 is ignored (RFC 9110 §10.1.1).
    fields.remove(HeaderId::expect);
    return Fault::none;
  }
  if (!iequals(fields.get(HeaderId::expect), "100-continue")) return Fault::expectation;
  info.expect_continue = info.framing != Framing::none && !(info.framing == Framing::length && info.length == 0);
  return Fault::none;
}

/// The length in our own words: equal repeated ones, in lines or in a list, become one, and leading zeros go (some
/// readers take them for octal).
void one_length(HeaderBlock& fields) noexcept {
  const std::size_t i = fields.find(HeaderId::content_length);
  if (i == HeaderBlock::npos) return;
  const std::string_view value = fields[i].value;
  const std::size_t comma = value.find(',');
  std::string_view one = trim_ows(value.substr(0, comma));
  while (one.size() > 1 && one.front() == '0') one.remove_prefix(1);
  if (one.size() == value.size() && fields.find(HeaderId::content_length, i + 1) == HeaderBlock::npos) return;
  fields.set(HeaderId::content_length, one);
}

BodySize body_size(const MessageInfo& info) noexcept {
  switch (info.framing) {
    case Framing::none: return BodySize::none();
    case Framing::length: return BodySize::exactly(info.length);
    default: return BodySize::unknown();
  }
}

std::string_view rebase(std::string_view v, std::string_view from, std::string_view to) noexcept {
  return {to.data() + (v.data() - from.data()), v.size()};
}

}  // namespace

Fault to_request(RawHead&& raw, std::string_view text, bool tls, Head& head, MessageInfo& info) noexcept {
  const FramingDecision framing = request_framing(raw);
  if (framing.fault != Fault::none) return framing.fault;
  info.framing = framing.framing;
  info.length = framing.length;

  head.kind = HeadKind::request;
  head.version = raw.version.minor == 0 ? HttpVersion{1, 0} : HttpVersion{1, 1};
  head.fields = std::move(raw.fields);
  const std::string_view own = head.fields.adopt(text);
  head.method = method_from(raw.method);
  head.method_name = rebase(raw.method, text, own);
  head.scheme = tls ? "https" : "http";
  if (const Fault f = read_target(rebase(raw.target, text, own), head.method, head); f != Fault::none) return f;
  if (const Fault f = read_host(raw, head); f != Fault::none) return f;
  read_persistence(raw.version, head.fields, info);
  if (const Fault f = read_expectation(raw.version, head.fields, info); f != Fault::none) return f;

  if (info.framing == Framing::length) one_length(head.fields);
  // Without a key it is no handshake (RFC 6455 §4.2.1), and we do not make it one.
  if (head.method == Method::get && head.fields.has(HeaderId::upgrade) && raw.version.minor != 0 &&
      info.framing == Framing::none && is_websocket_upgrade(head.fields) && head.fields.has(HeaderId::sec_websocket_key)) {
    info.websocket = true;
    head.set_method(Method::connect);
    head.protocol = "websocket";
  }
  read_listed(head.fields, info);
  remove_hop_by_hop(head.fields);
  join_cookies(head.fields);
  // After CONNECT the octets belong to the tunnel; a body of the request itself has no meaning.
  if (head.is_connect()) {
    if (info.framing == Framing::chunked || info.length != 0) return Fault::bad_framing;
    head.fields.remove(HeaderId::content_length);
    info.framing = Framing::tunnel;
  }
  head.body = body_size(info);
  return Fault::none;
}

Fault to_response(RawHead&& raw, std::string_view text, Method method, bool websocket, Head& head,
                  MessageInfo& info) noexcept {
  const bool switched = raw.status == 101;
  if (switched) {
    // Only for what we asked: anything else would turn the connection into a blind tunnel.
    if (!websocket || !is_websocket_upgrade(raw.fields)) return Fault::origin_bad_head;
    raw.status = 200;
  } else if (websocket && raw.status / 100 == 2) {
    // The origin answered the GET as an ordinary request: to a WebSocket client that is a refusal with a body.
    method = Method::get;
  }
  const FramingDecision framing = response_framing(raw, websocket && !switched ? Method::get : method);
  if (framing.fault != Fault::none) return framing.fault;
  info.framing = framing.framing;
  info.length = framing.length;
  info.websocket = switched;

  head.kind = raw.status / 100 == 1 ? HeadKind::interim : HeadKind::response;
  head.method = method;
  head.version = raw.version.minor == 0 ? HttpVersion{1, 0} : HttpVersion{1, 1};
  head.status = raw.status;
  head.fields = std::move(raw.fields);
  const std::string_view own = head.fields.adopt(text);
  head.reason = switched ? std::string_view() : rebase(raw.reason, text, own);
  read_persistence(raw.version, head.fields, info);
  info.keep_alive = info.keep_alive && !framing.must_close;
  const bool coded = head.fields.has(HeaderId::transfer_encoding);
  read_listed(head.fields, info);
  remove_hop_by_hop(head.fields);
  if (info.framing == Framing::length || (info.framing == Framing::none && !coded && head.status != 204 && !head.is_interim())) {
    one_length(head.fields);
  } else {
    head.fields.remove(HeaderId::content_length);
  }
  head.body = body_size(info);
  return Fault::none;
}

void clean_trailers(HeaderBlock& fields, std::string_view listed) noexcept {
  fields.remove_if([&](const Field& f) {
    constexpr std::uint16_t kForbidden = header_flag::hop | header_flag::framing | header_flag::routing |
                                         header_flag::auth | header_flag::no_trailer;
    return (header_flags(f.id) & kForbidden) != 0 || (!listed.empty() && list_contains(listed, f.name));
  });
}

}  // namespace twp::h1
