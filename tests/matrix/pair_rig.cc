#include "matrix/pair_rig.h"

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "config/validate.h"
#include "support/test_pki.h"

namespace twp::test {
namespace {

[[noreturn]] void fatal(const std::string& what) {
  std::fprintf(stderr, "pair rig: %s\n", what.c_str());
  std::abort();
}

template <class T>
T must(Result<T> r) {
  if (!r) fatal(r.error().what);
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

}  // namespace

PairRig::PairRig(const Pair& p) : pair(p), resolver_(worker, {}) {
  set_log_level(LogLevel::error);
  if (pair.origin.tls) {
    TlsServerOptions o;
    o.identities.push_back(must(TlsIdentity::load(test_pki().cert, test_pki().key)));
    o.ticket_keys = TlsTicketKeys::random();
    o.alpn = client_alpn(pair.origin.http);  // this wire and no other
    origin_tls_ = must(TlsContext::server(o));
  }
  FrontOptions at;
  at.at = *Address::parse("127.0.0.1", 0);
  front = must(Front::open(worker, at, origin_tls_.get(), origin, limits));

  config::Config c;
  config::Listener listener;
  listener.url = pair.client.tls ? "https://127.0.0.1:0" : "http://127.0.0.1:0";
  if (pair.client.tls) {
    listener.tls.emplace();
    listener.tls->cert = {test_pki().cert};
    listener.tls->key = {test_pki().key};
  }
  c.listeners.push_back(std::move(listener));
  config::Cluster cluster;
  cluster.name = "origin";
  cluster.http = pair.origin.http;
  cluster.origins.push_back(
      {(pair.origin.tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(front->address().port()), 1});
  if (pair.origin.tls) cluster.ca = test_pki().ca;
  c.clusters.push_back(std::move(cluster));
  config::Route route;
  route.cluster = "origin";
  c.routes.push_back(std::move(route));
  for (const auto& problem : config::validate(c)) fatal("configuration: " + problem.what);
  shard = must(Shard::open(worker, must(Snapshot::prepare(std::move(c), ProcessSecrets::random())), nullptr));

  if (pair.client.tls) {
    TlsClientOptions o;
    o.ca_file = test_pki().ca;
    o.alpn = client_alpn(pair.client.http);
    client_tls_ = must(TlsContext::client(o));
  }
  target_.host = "127.0.0.1";
  target_.port = shard->addresses().at(0).port();
  target_.tls = pair.client.tls;
  target_.http = pair.client.http;
  target_.tls_context = client_tls_.get();
  target_.limits = &limits;
}

PairRig::~PairRig() {
  // Everything that is still open ends now, so that each recorder sees its on_gone.
  for (auto& o : owners_)
    if (o->session() != nullptr) o->session()->close(Fault::shutdown);
  shard->close();
  front->close();
  run_quiet(worker);
}

void PairRig::on_dialed(Dial&, std::unique_ptr<Session> session) noexcept {
  owners_.back()->hold(std::move(session));
  worker.retire(std::move(dial_));
}

void PairRig::on_dial_failed(Dial&, Fault, const std::string& detail) noexcept {
  failed_ = detail;
  worker.retire(std::move(dial_));
}

Recorder& PairRig::open() {
  auto r = std::make_unique<Recorder>();
  for (;;) {
    for (auto& o : owners_) {
      Session* s = o->session();
      if (s == nullptr || s->capacity() == 0) continue;
      r->stream = s->open(*r);
      return *streams.emplace_back(std::move(r));
    }
    owners_.push_back(std::make_unique<RecordingOwner>(worker));
    dial_ = Dial::start(worker, resolver_, target_, *owners_.back(), *this);
    if (!until([this] { return dial_ == nullptr; }) || !failed_.empty()) fatal("cannot connect: " + failed_);
    if (!until([this] { return owners_.back()->session() == nullptr || owners_.back()->session()->settled(); }))
      fatal("the proxy does not say how many streams it takes");
  }
}

Recorder& PairRig::request(Method method, std::string_view path, std::string_view text) {
  Recorder& r = open();
  return send(r, method, path, text);
}

Recorder& PairRig::send(Recorder& r, Method method, std::string_view path, std::string_view text) {
  Head h = Head::request(method, target_.tls ? "https" : "http", "a.test", path,
                         text.empty() ? BodySize::none() : BodySize::exactly(text.size()));
  if (!text.empty()) h.fields.add("content-length", std::to_string(text.size()));
  r.send_head(h, text.empty() ? End::yes : End::no);
  if (!text.empty()) r.send_body(text, End::yes);
  return r;
}

}  // namespace twp::test
