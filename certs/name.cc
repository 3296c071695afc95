#include "certs/name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "certs/idna.h"

namespace twp::certs {
namespace {

constexpr std::size_t kMaxDnsName = 253;
constexpr std::size_t kMaxLabel = 63;

/// The text for an error line: control bytes would let a name write to somebody's terminal.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 300)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + '"';
}

std::unexpected<Error> bad(std::string_view text, std::string why) {
  return fail(Fault::bad_config, "host " + quoted(text) + ": " + why);
}

Result<Name> parse_ip(int family, std::string_view address, std::string_view text) {
  std::array<char, 16> octets{};
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  const std::string terminated(address);
  // An embedded NUL would hide the rest of the text from inet_pton.
  if (terminated.find('\0') != std::string::npos || ::inet_pton(family, terminated.c_str(), octets.data()) != 1) {
    return bad(text, family == AF_INET ? "not a valid IPv4 address" : "not a valid IPv6 address");
  }
  ::inet_ntop(family, octets.data(), canonical.data(), canonical.size());
  return Name{Name::Kind::ip, canonical.data(), std::string(octets.data(), family == AF_INET ? 4 : 16)};
}

constexpr bool digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool label_char(char c) noexcept {
  return digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/// Why `label` cannot stand in a DNS name; empty when it can. `name` is the whole, `first` its first label.
std::string fault_of(std::string_view label, bool first, bool last) {
  if (label.empty()) return "an empty label";
  if (label.size() > kMaxLabel) return "a label of " + std::to_string(label.size()) + " characters; 63 are allowed";
  if (label == "*") {
    if (!first) return "\"*\" may only be the first label";
    return last ? "\"*\" needs a domain after it" : "";
  }
  if (label.find('*') != std::string_view::npos) return "\"*\" must be the whole first label";
  if (label.starts_with('-') || label.ends_with('-')) return "a label may not begin or end with '-'";
  if (!std::ranges::all_of(label, label_char)) return "only letters, digits, '-', '_' and '.' make a host name";
  return "";
}

Result<Name> parse_dns(std::string_view text) {
  auto ascii = to_ascii(text);
  if (!ascii) return std::unexpected(ascii.error());
  std::string name = std::move(*ascii);
  if (name.ends_with('.')) name.pop_back();
  if (name.empty()) return bad(text, "empty");
  if (name.size() > kMaxDnsName) {
    return bad(text, "a name of " + std::to_string(name.size()) + " characters; 253 are allowed");
  }
  // A numeric last label means an IPv4 address to every URL parser, so "1.2.3.999" is a typing error.
  const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  if (!last.empty() && std::ranges::all_of(last, digit)) return parse_ip(AF_INET, name, text);
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string why = fault_of(std::string_view(name).substr(at, dot - at), at == 0, dot == name.size());
    if (!why.empty()) return bad(text, why);
    at = dot + 1;
  }
  return Name{Name::Kind::dns, std::move(name), {}};
}

}  // namespace

Result<Name> parse_name(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) return parse_ip(AF_INET6, text.substr(1, text.size() - 2), text);
  if (text.find("://") != std::string_view::npos) return bad(text, "a host name is wanted, not a URL");
  if (text.find('@') != std::string_view::npos) return bad(text, "a host name is wanted, not a mail address");
  if (std::ranges::count(text, ':') == 1) return bad(text, "a host name is wanted, without a port");
  if (text.find(':') != std::string_view::npos) return parse_ip(AF_INET6, text, text);
  return parse_dns(text);
}

Result<std::vector<Name>> parse_names(std::span<const std::string> texts) {
  if (texts.empty()) return fail(Fault::bad_config, "a certificate needs at least one host name or IP address");
  if (texts.size() > kMaxNames) {
    return fail(Fault::bad_config, std::to_string(texts.size()) + " names in one certificate; 256 are allowed");
  }
  std::vector<Name> names;
  for (const std::string& text : texts) {
    auto name = parse_name(text);
    if (!name) return std::unexpected(name.error());
    if (std::ranges::find(names, *name) == names.end()) names.push_back(std::move(*name));
  }
  return names;
}

}  // namespace twp::certs
