// One abstract request as HTTP/1 and as HTTP/2: both decode it to the same message or both refuse it. And whatever either
// accepts, sent on in the other version or in the same, arrives there as exactly one request that says the same: nothing
// can be smuggled.
//
// The input is cut at octets 0xff: options, method, authority, path, then names and values in turn. Options: the first
// octet says how the body is framed, the second how many of the fields are trailers, the third how many octets of body.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "fuzz/session_fuzz.h"
#include "support/h1_rig.h"
#include "support/h2_rig.h"

namespace twp::test {
namespace {

enum class Framing { none, length, unknown };

struct Request {
  Framing framing = Framing::none;
  std::string method, authority, path, body;
  h2::Fields fields, trailers;
};

Request request_from(std::string_view input) {
  std::vector<std::string> parts(1);
  for (const char c : input) {
    if (c == '\xff') parts.emplace_back();
    else parts.back().push_back(c);
  }
  parts.resize(std::max<std::size_t>(parts.size(), 4));
  const auto option = [&](std::size_t i) { return i < parts[0].size() ? static_cast<std::uint8_t>(parts[0][i]) : 0u; };
  Request r;
  r.framing = static_cast<Framing>(option(0) % 3);
  r.method = parts[1];
  r.authority = parts[2];
  r.path = parts[3];
  for (std::size_t i = 4; i + 1 < parts.size(); i += 2) r.fields.emplace_back(parts[i], parts[i + 1]);
  if (r.framing == Framing::none) return r;
  r.body.assign(option(2) % 64, 'b');
  if (r.framing == Framing::length) return r;
  const std::size_t n = std::min<std::size_t>(option(1) % 4, r.fields.size());
  r.trailers.assign(r.fields.end() - static_cast<std::ptrdiff_t>(n), r.fields.end());
  r.fields.resize(r.fields.size() - n);
  return r;
}

std::string lines(const h2::Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += name + ": " + value + "\r\n";
  return out + "\r\n";
}

std::string as_h1(const Request& r) {
  std::string out = r.method + " " + r.path + " HTTP/1.1\r\nHost: " + r.authority + "\r\n";
  if (r.framing == Framing::length) out += "Content-Length: " + std::to_string(r.body.size()) + "\r\n";
  if (r.framing == Framing::unknown) out += "Transfer-Encoding: chunked\r\n";
  out += lines(r.fields);
  if (r.framing == Framing::length) return out + r.body;
  if (r.framing == Framing::none) return out;
  if (!r.body.empty()) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", r.body.size());
    out += size + r.body + "\r\n";
  }
  return out + "0\r\n" + lines(r.trailers);
}

std::string as_h2(const Request& r, bool lower_case) {
  h2::Fields fields{{":method", r.method}, {":scheme", "http"}, {":authority", r.authority}, {":path", r.path}};
  if (r.framing == Framing::length) fields.emplace_back("content-length", std::to_string(r.body.size()));
  const auto name = [&](const std::string& n) { return lower_case ? lower(n) : n; };
  for (const auto& [n, v] : r.fields) fields.emplace_back(name(n), v);
  const std::string hello = h2::hello() + h2::frame(h2::settings, h2::ack, 0);
  if (r.framing == Framing::none) return hello + h2::whole_headers(1, fields);
  const std::string begin = hello + h2::open_headers(1, fields);
  if (r.trailers.empty()) return begin + h2::frame(h2::data, h2::end_stream, 1, r.body);
  h2::Fields trailers;
  for (const auto& [n, v] : r.trailers) trailers.emplace_back(name(n), v);
  return begin + h2::frame(h2::data, h2::none, 1, r.body) + h2::whole_headers(1, trailers);
}

/// Whether the lines of HTTP/1 say what `r` says, and in a way that HTTP/2 may say as well. Where they do not, the
/// versions differ on purpose: fields of one connection, targets in other forms, names in upper case.
bool means_the_same_in_both(const Request& r) {
  const auto broken = [](const std::string& s) { return s.find_first_of("\r\n") != std::string::npos; };
  if (broken(r.method) || broken(r.authority) || broken(r.path) || r.method == "CONNECT") return false;
  if (!r.path.starts_with('/') && r.path != "*") return false;
  const auto trimmed = [](std::string_view s) { return trim_ows(s).size() == s.size(); };
  if (!trimmed(r.authority)) return false;
  for (const h2::Fields* fields : {&r.fields, &r.trailers})
    for (const auto& [name, value] : *fields) {
      const HeaderId id = header_id(name);
      if (broken(name) || broken(value) || name.find(':') != std::string::npos || !trimmed(value)) return false;
      if ((header_flags(id) & (header_flag::hop | header_flag::framing)) != 0 || id == HeaderId::host) return false;
    }
  return true;
}

/// What a message is, apart from the marks that the way it came left on it.
std::string meaning(const Recorder& r, bool with_trailers) {
  Head h = r.head->clone();
  // The proof of a handshake belongs to one connection; HTTP/2 has no use for it.
  h.fields.remove(HeaderId::sec_websocket_key);
  h.fields.remove(HeaderId::sec_websocket_accept);
  if (h.is_connect()) {
    h.body = BodySize::unknown();
    h.fields.remove(HeaderId::sec_websocket_version);
    return describe(h);
  }
  const bool empty = h.body.is_unknown() && r.ended && r.body.empty() && !r.trailers;
  if (empty || (h.body.is_exact() && h.body.n == 0)) {
    // "Content-Length: 0" is how HTTP/1 says that a POST has no body, and one whose end is known by the time its head
    // leaves ends with it in HTTP/2.
    h.body = BodySize::none();
    h.fields.remove(HeaderId::content_length);
  }
  std::string out = describe(h) + "body " + r.body + "\n";
  if (with_trailers && r.trailers) out += "trailers\n" + describe(*r.trailers);
  return out;
}

[[noreturn]] void differ(const char* what, const std::string& a, const std::string& b) {
  std::fprintf(stderr, "%s:\n%s\nand:\n%s\n", what, a.c_str(), b.c_str());
  std::abort();
}

/// The request as one that was accepted; null when it was refused or is not complete.
const Recorder* accepted(const RecordingAcceptor& a) {
  if (a.streams.empty()) return nullptr;
  const Recorder& r = *a.streams.front();
  return r.head && (r.ended || r.head->is_connect()) ? &r : nullptr;
}

/// Sends what `r` received through a client session to a server session of the same version, as a proxy does.
template <auto MakeClient, auto MakeServer>
void relay(const Recorder& r, bool carries_trailers) {
  Worker worker;
  const HttpLimits limits;
  RecordingAcceptor acceptor;
  RecordingOwner client_owner(worker), server_owner(worker);
  auto [a, b] = MemoryTransport::make_pair(worker);
  OpenedStreams client;
  Session* session = client_owner.hold(MakeClient(worker, std::move(a), client_owner, limits));
  server_owner.hold(MakeServer(worker, std::move(b), acceptor, server_owner, limits, Chain()));
  Recorder& out = *client.open(session);
  const Head& head = *r.head;
  const bool bare = !head.is_connect() && (head.body.is_none() || (head.body.is_exact() && head.body.n == 0));
  out.send_head(head, bare ? End::yes : End::no);
  if (!bare && !head.is_connect()) {
    out.send_body(r.body, r.trailers ? End::no : End::yes);
    if (r.trailers) out.send_trailers(*r.trailers);
  }
  run_quiet(worker);
  const Recorder* got = accepted(acceptor);
  if (got == nullptr) {
    // Only the WebSocket handshake has a form in HTTP/1; of other protocols not one octet may have left.
    if (head.protocol.empty() || head.protocol == "websocket" || !acceptor.streams.empty() || !acceptor.rejects.empty())
      differ("what was accepted is refused when it is sent on", meaning(r, true), acceptor.transcript());
  } else {
    const bool trailers = carries_trailers || head.body.is_unknown();
    if (meaning(*got, trailers) != meaning(r, trailers))
      differ("what was accepted is another request when it is sent on", meaning(r, trailers), meaning(*got, trailers));
    if (!head.is_connect()) acceptor.streams.front()->respond(200, "ok");
    run_quiet(worker);
    if (acceptor.streams.size() != 1 || !acceptor.rejects.empty())
      differ("one request became more", meaning(r, true), acceptor.transcript());
  }
  must_end(client_owner, client.streams);
  must_end(server_owner, acceptor.streams);
}

template <class Rig>
void hear(Rig& rig, const std::string& octets) {
  rig.start();
  rig.peer->send(octets);
  run_quiet(rig.worker);
}

void send_on(const Recorder* r) {
  if (r == nullptr) return;
  relay<&make_h1_client, &make_h1_server>(*r, false);
  relay<&make_h2_client, &make_h2_server>(*r, true);
}

void check(const Request& request) {
  ServerRig h1;
  H2ServerRig h2, h2_lower;
  hear(h1, as_h1(request));
  hear(h2, as_h2(request, false));
  send_on(accepted(h1.acceptor));
  send_on(accepted(h2.acceptor));
  if (means_the_same_in_both(request)) {
    hear(h2_lower, as_h2(request, true));
    const Recorder* a = accepted(h1.acceptor);
    const Recorder* b = accepted(h2_lower.acceptor);
    if ((a == nullptr) != (b == nullptr))
      differ("one version accepts it, the other refuses it", h1.acceptor.transcript(), h2_lower.acceptor.transcript());
    if (a != nullptr && meaning(*a, true) != meaning(*b, true))
      differ("the versions understand different things", meaning(*a, true), meaning(*b, true));
    if (h1.acceptor.streams.size() > 1) differ("one request became more", as_h1(request), h1.acceptor.transcript());
    must_end(h2_lower.owner, h2_lower.acceptor.streams);
  }
  must_end(h1.owner, h1.acceptor.streams);
  must_end(h2.owner, h2.acceptor.streams);
}

}  // namespace
}  // namespace twp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twp;
  if (size > 600) return 0;
  set_log_level(LogLevel::error);
  test::check(test::request_from({reinterpret_cast<const char*>(data), size}));
  return 0;
}
