#include "http/field_section.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/authority.h"

namespace twp {
namespace {

bool has_upper(std::string_view s) noexcept {
  return std::any_of(s.begin(), s.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool valid_name(std::string_view s) noexcept { return is_token(s) && !has_upper(s); }

/// RFC 9113 §8.2.1, RFC 9114 §4.2: no control octet, no blank at either end.
bool valid_value(std::string_view s) noexcept {
  return is_field_value(s) && (s.empty() || (!is_ows(s.front()) && !is_ows(s.back())));
}

bool all_target_chars(std::string_view s) noexcept { return std::all_of(s.begin(), s.end(), is_target_char); }

}  // namespace

bool is_connection_field(HeaderId id) noexcept {
  return (header_flags(id) & header_flag::hop) != 0 && id != HeaderId::te && id != HeaderId::http2_settings;
}

bool must_not_index(const Field& f) noexcept {
  return f.never_index || (header_flags(f.id) & header_flag::never_idx) != 0;
}

std::string_view wire_name(const Field& f, Arena& arena) noexcept {
  if (f.id != HeaderId::other) return header_name(f.id);
  char* p = static_cast<char*>(arena.allocate(f.name.size()));
  std::transform(f.name.begin(), f.name.end(), p, to_lower);
  return {p, f.name.size()};
}

void FieldReader::begin(bool response, std::uint32_t max_octets, std::uint32_t max_fields) noexcept {
  fields_.clear();
  method_ = scheme_ = authority_ = path_ = protocol_ = {};
  octets_ = 0;
  lines_ = 0;
  max_octets_ = max_octets;
  max_fields_ = max_fields;
  status_ = 0;
  seen_ = 0;
  response_ = response;
  malformed_ = false;
}

bool FieldReader::add(std::string_view name, std::string_view value, bool never_index) noexcept {
  octets_ += name.size() + value.size() + 32;
  ++lines_;
  const bool over = octets_ > max_octets_ || lines_ > max_fields_ + kMostPseudo;
  if (over) return octets_ <= max_octets_ * kHopeless && !too_many_lines();
  if (!name.empty() && name.front() == ':') {
    malformed_ |= !add_pseudo(name, value);
    return true;
  }
  if (!valid_name(name) || !valid_value(value)) {
    malformed_ = true;
    return true;
  }
  const HeaderId id = header_id(name);
  if (is_connection_field(id) || (id == HeaderId::te && !iequals(value, "trailers"))) {
    malformed_ = true;
    return true;
  }
  Arena& a = fields_.arena();
  fields_.add_view(id, id == HeaderId::other ? a.copy(name) : header_name(id), a.copy(value), never_index);
  return true;
}

/// RFC 9113 §8.3, RFC 9114 §4.3: each at most once, in front of all fields, and only those of its kind of head.
bool FieldReader::add_pseudo(std::string_view name, std::string_view value) noexcept {
  if (!fields_.empty() || !is_field_value(value)) return false;
  Pseudo which = Pseudo::unknown;
  std::string_view* into = nullptr;
  if (response_) {
    if (name == ":status") which = Pseudo::status;
  } else if (name == ":method") {
    which = Pseudo::method, into = &method_;
  } else if (name == ":scheme") {
    which = Pseudo::scheme, into = &scheme_;
  } else if (name == ":authority") {
    which = Pseudo::authority, into = &authority_;
  } else if (name == ":path") {
    which = Pseudo::path, into = &path_;
  } else if (name == ":protocol") {
    which = Pseudo::protocol, into = &protocol_;
  }
  if (which == Pseudo::unknown) return false;
  const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(which));
  if ((seen_ & bit) != 0) return false;
  seen_ |= bit;
  if (into != nullptr) {
    *into = fields_.arena().copy(value);
    return true;
  }
  const auto status = parse_decimal(value);
  if (value.size() != 3 || !status || *status < 100 || *status > 599) return false;
  status_ = static_cast<std::uint16_t>(*status);
  return true;
}

Fault FieldReader::over_limit(LimitHit& limit) const noexcept {
  if (octets_ > max_octets_) {
    limit = {response_ ? "max_response_head" : "max_head", octets_, max_octets_};
    return Fault::head_too_large;
  }
  if (lines_ > max_fields_ + kMostPseudo || fields_.size() > max_fields_) {
    limit = {"max_fields", std::max<std::uint64_t>(lines_, fields_.size()), max_fields_};
    return Fault::too_many_fields;
  }
  return Fault::none;
}

Fault FieldReader::read_authority(Head& head) noexcept {
  const std::size_t host = fields_.find(HeaderId::host);
  if (host != HeaderBlock::npos) {
    // Two names for one request: an implementation behind us might follow the other one.
    const std::string_view value = fields_[host].value;
    if (fields_.find(HeaderId::host, host + 1) != HeaderBlock::npos) return Fault::bad_host;
    if (authority_.empty() && !head.is_connect()) authority_ = value;
    if (!iequals(authority_, value)) return Fault::bad_host;
    fields_.remove(HeaderId::host);
  }
  if (!valid_authority(authority_)) return Fault::bad_host;
  head.authority = authority_;
  return Fault::none;
}

Fault FieldReader::read_target(bool tls, Head& head) noexcept {
  const auto has = [&](Pseudo p) { return (seen_ >> static_cast<unsigned>(p) & 1) != 0; };
  if (!is_token(method_)) return Fault::bad_request_line;
  head.method = method_from(method_);
  head.method_name = method_;
  if (const Fault f = read_authority(head); f != Fault::none) return f;
  if (head.is_connect() && !has(Pseudo::protocol)) {
    // RFC 9113 §8.5, RFC 9114 §4.4: host and port, nothing else.
    if (has(Pseudo::scheme) || has(Pseudo::path) || !has(Pseudo::authority)) return Fault::bad_target;
    if (authority_.rfind(':') == std::string_view::npos || authority_.ends_with(']') ||
        authority_.ends_with(':'))
      return Fault::bad_target;
    head.scheme = tls ? "https" : "http";
    return Fault::none;
  }
  if (has(Pseudo::protocol) && (!head.is_connect() || !is_token(protocol_) || !has(Pseudo::authority)))
    return Fault::bad_target;
  if (iequals(scheme_, "https"))
    head.scheme = "https";
  else if (iequals(scheme_, "http"))
    head.scheme = "http";
  else
    return Fault::bad_target;
  if (path_ == "*" ? head.method != Method::options : !path_.starts_with('/')) return Fault::bad_target;
  if (!all_target_chars(path_)) return Fault::bad_target;
  head.path = path_;
  head.protocol = protocol_;
  return Fault::none;
}

/// Content-Length in our own words: equal repeated ones become one, leading zeros go.
Fault FieldReader::read_length(bool ended, Head& head) noexcept {
  head.body = ended ? BodySize::none() : BodySize::unknown();
  const std::size_t i = fields_.find(HeaderId::content_length);
  if (i == HeaderBlock::npos) return Fault::none;
  std::string_view value = fields_[i].value;
  const auto n = parse_decimal(value);
  if (!n) return Fault::bad_framing;
  for (std::size_t k = i; (k = fields_.find(HeaderId::content_length, k + 1)) != HeaderBlock::npos;)
    if (parse_decimal(fields_[k].value) != n) return Fault::bad_framing;
  while (value.size() > 1 && value.front() == '0') value.remove_prefix(1);
  if (value.size() != fields_[i].value.size() ||
      fields_.find(HeaderId::content_length, i + 1) != HeaderBlock::npos)
    fields_.set(HeaderId::content_length, value);
  head.body = BodySize::exactly(*n);
  return Fault::none;
}

void FieldReader::finish_fields(Head& head) noexcept {
  if (fields_.has(HeaderId::te) || fields_.has(HeaderId::http2_settings)) remove_hop_by_hop(fields_);
  join_cookies(fields_);
  head.version = version_;
  head.fields = std::move(fields_);
}

Fault FieldReader::to_request(const HttpLimits& limits, bool tls, bool ended, Head& head,
                              LimitHit& limit) noexcept {
  if (malformed_) return Fault::bad_header;
  if (method_.size() > kMaxMethod) return Fault::method_too_long;
  if (path_.size() > limits.max_target) {
    limit = {"max_target", path_.size(), limits.max_target};
    return Fault::target_too_long;
  }
  if (const Fault f = over_limit(limit); f != Fault::none) return f;
  head.kind = HeadKind::request;
  if (const Fault f = read_target(tls, head); f != Fault::none) return f;
  if (const Fault f = read_length(ended, head); f != Fault::none) return f;
  if (ended && head.body.n != 0) return Fault::bad_framing;
  if (head.is_connect()) {
    // After CONNECT the octets belong to the tunnel; a body of the request itself has no meaning.
    if (head.body.is_exact() && head.body.n != 0) return Fault::bad_framing;
    fields_.remove(HeaderId::content_length);
    head.body = BodySize::unknown();
  }
  if (fields_.has(HeaderId::expect) && !iequals(fields_.get(HeaderId::expect), "100-continue"))
    return Fault::expectation;
  finish_fields(head);
  return Fault::none;
}

Fault FieldReader::to_response(Method request, bool ended, Head& head, LimitHit& limit) noexcept {
  if (malformed_ || (status_ == 0 && octets_ <= max_octets_)) return Fault::origin_bad_head;
  if (over_limit(limit) != Fault::none) return Fault::origin_head_too_large;
  head.kind = status_ / 100 == 1 ? HeadKind::interim : HeadKind::response;
  head.status = status_;
  // No upgrade (RFC 9113 §8.6, RFC 9114 §4.5); an interim head ends nothing.
  if (status_ == 101 || (head.is_interim() && ended)) return Fault::origin_bad_head;
  const bool ok = status_ / 100 == 2;
  head.method = request;
  if (read_length(ended, head) != Fault::none) return Fault::origin_bad_framing;
  if (head.is_interim() || status_ == 204 || (ok && head.is_connect()))
    fields_.remove(HeaderId::content_length);
  if (head.is_connect() && ok)
    head.body = BodySize::unknown();
  else if (response_has_no_body(head.method, status_))
    head.body = BodySize::none();
  else if (ended && head.body.n != 0)
    return Fault::origin_bad_framing;
  finish_fields(head);
  return Fault::none;
}

Fault FieldReader::to_trailers(HeaderBlock& trailers, LimitHit& limit) noexcept {
  if (malformed_ || seen_ != 0) return Fault::bad_trailer;
  if (octets_ > max_octets_) {
    limit = {"max_trailer", octets_, max_octets_};
    return Fault::head_too_large;
  }
  if (const Fault f = over_limit(limit); f != Fault::none) return f;
  // RFC 9110 §6.5.1: nothing that frames, routes or authenticates comes behind a body.
  fields_.remove_if([](const Field& f) {
    constexpr std::uint16_t kForbidden = header_flag::hop | header_flag::framing | header_flag::routing |
                                         header_flag::auth | header_flag::no_trailer;
    return (header_flags(f.id) & kForbidden) != 0;
  });
  trailers = std::move(fields_);
  return Fault::none;
}

}  // namespace twp
