#include "support/h3_rig.h"

#include <cstdio>
#include <cstdlib>

namespace twp::test {
namespace {

template <class T>
T must(Result<T> r) {
  if (r) return std::move(*r);
  std::fprintf(stderr, "h3 rig: %s\n", r.error().what.c_str());
  std::abort();
}

}  // namespace

H3Tls::H3Tls(std::vector<std::string> server_alpn) {
  TlsServerOptions s;
  s.identities.push_back(must(TlsIdentity::load(test_pki().cert, test_pki().key)));
  s.alpn = std::move(server_alpn);
  s.ticket_keys = TlsTicketKeys::random();
  server = must(TlsContext::server(s));
  TlsClientOptions c;
  c.ca_file = test_pki().ca;
  c.alpn = {"h3"};
  client = must(TlsContext::client(c));
}

H3PairRig::H3PairRig(const HttpLimits& l, std::uint64_t seed, const char* server_ip)
    : world(seed), limits(l), client_end(world, "192.0.2.2", 40000, false),
      server_end(world, server_ip, 443, true) {
  server_end.on_initial = [this](const QuicInitial& i, const QuicPath& p) { return accept(i, p); };
  Conditions c;
  c.delay = std::chrono::milliseconds(5);
  world.link.both_ways(c);
}

void H3PairRig::start(QuicTarget target) {
  auto c = QuicConnection::connect(world.worker, client_end, *tls.client, h3_quic_settings(limits), target,
                                   {client_end.address, server_end.address});
  client_conn = c.get();
  client = client_owner.hold(make_h3_client(world.worker, std::move(c), *this, client_owner, limits));
}

QuicConnection* H3PairRig::accept(const QuicInitial& initial, const QuicPath& path) {
  if (server_owner.session() != nullptr) return nullptr;
  auto c =
      QuicConnection::accept(world.worker, server_end, *tls.server, h3_quic_settings(limits), initial, path);
  server_conn = c.get();
  server = server_owner.hold(make_h3_server(world.worker, std::move(c), acceptor, server_owner, limits));
  return server_conn;
}

void H3PairRig::on_h3_open_failed(Session& s, Fault why, const std::string& detail) noexcept {
  open_failed = true;
  open_fault = why;
  open_detail = detail;
  static_cast<SessionOwner&>(client_owner).on_session_gone(s, why);
}

Recorder* H3PairRig::open() {
  if (client_owner.session() == nullptr) return nullptr;
  auto r = std::make_unique<Recorder>();
  Stream* s = client->open(*r);
  if (s == nullptr) return nullptr;
  r->stream = s;
  return streams.emplace_back(std::move(r)).get();
}

Recorder* H3PairRig::get(std::string_view path, Method method) {
  Recorder* r = open();
  if (r != nullptr) r->send_head(Head::request(method, "https", "a.test", path), End::yes);
  return r;
}

Recorder* H3PairRig::post(std::string_view path, std::string_view text) {
  Recorder* r = open();
  if (r == nullptr) return nullptr;
  Head head = Head::request(Method::post, "https", "a.test", path, BodySize::exactly(text.size()));
  head.fields.add(HeaderId::content_length, std::to_string(text.size()));
  r->send_head(head, End::no);
  r->send_body(text, End::yes);
  return r;
}

}  // namespace twp::test
