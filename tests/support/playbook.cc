#include "support/playbook.h"

#include <stdexcept>

namespace twp::test {

config::Config one_cluster(unsigned origins) {
  config::Config c;
  config::Cluster k;
  k.name = "test";
  for (unsigned i = 0; i < origins; ++i) k.origins.push_back({"http://o" + std::to_string(i + 1) + ".test:8080", 1});
  c.clusters.push_back(k);
  config::Route r;
  r.cluster = "test";
  c.routes.push_back(r);
  return c;
}

Head request_head(std::string_view method, std::string_view path, BodySize body, const Fields& fields,
                  HttpVersion version) {
  Head h = Head::request(method_from(method), "http", "a.test", path, body);
  h.method_name = h.fields.arena().copy(method);
  h.version = version;
  for (const auto& [name, value] : fields) h.fields.add(name, value);
  return h;
}

Playbook::Playbook(config::Config config) {
  auto snapshot = Snapshot::prepare(std::move(config), {{}, "0badcafe"});
  if (!snapshot) throw std::runtime_error(snapshot.error().what);
  if (auto ok = pools.prepare(**snapshot); !ok) throw std::runtime_error(ok.error().what);
  generation = std::make_unique<Generation>(*snapshot, static_cast<GenerationOwner&>(*this));
  lease_ = pools.fill(*generation);
  client_session.info.remote = *Address::parse("203.0.113.7", 40000);
  client_session.info.local = *Address::parse("198.51.100.1", 8080);
}

Playbook::~Playbook() {
  for (FakeStream& s : client_session.streams) s.fail(Fault::shutdown);
  pools.close();
  for (int i = 0; i < 4; ++i) turn();
}

FakeStream& Playbook::request(Head&& head, End end) {
  client_ = &client_session.next_stream();
  client_->begin(Exchange::begin(env, *generation, *client_));
  client_->deliver_head(std::move(head), end);
  return *client_;
}

FakeStream& Playbook::get(std::string_view path, const Fields& fields) {
  return request(request_head("GET", path, BodySize::none(), fields));
}

FakeStream& Playbook::upload(std::string_view method, BodySize size, const Fields& fields) {
  return request(request_head(method, "/up", size, fields), End::no);
}

FakeStream& Playbook::websocket() {
  Head h = request_head("CONNECT", "/ws");
  h.protocol = "websocket";
  return request(std::move(h), End::no);
}

FakeStream& Playbook::origin() {
  for (auto s = connector.sessions.rbegin(); s != connector.sessions.rend(); ++s)
    if (!s->streams.empty() && s->streams.back().active()) return s->streams.back();
  throw std::runtime_error("no request is with an origin");
}

void Playbook::respond(std::uint16_t status, const char* body, const Fields& fields) {
  FakeStream& o = origin();
  Head h = Head::response(status, body == nullptr ? BodySize::none() : BodySize::exactly(std::string_view(body).size()));
  for (const auto& [name, value] : fields) h.fields.add(name, value);
  o.deliver_head(std::move(h), body == nullptr ? End::yes : End::no);
  if (body != nullptr) o.deliver_body(body, End::yes);
}

void Playbook::respond_unended(std::uint16_t status, BodySize size, const Fields& fields) {
  Head h = Head::response(status, size);
  h.method = origin().head.method;  // so that a 2xx grants a tunnel
  for (const auto& [name, value] : fields) h.fields.add(name, value);
  origin().deliver_head(std::move(h), End::no);
}

void Playbook::interim(std::uint16_t status) { origin().deliver_head(Head::interim(status), End::no); }

bool Playbook::settle() {
  for (int i = 0; i < 6; ++i) {
    for (FakeStream& s : client_session.streams)
      if (s.active()) s.leave();
    for (FakeSession& session : connector.sessions)
      for (FakeStream& s : session.streams)
        if (s.active()) s.leave();
    turn();
  }
  return over();
}

void Playbook::on_exchange_done(const ExchangeRecord& r) noexcept {
  ++done.times;
  done.status = r.status;
  done.fault = r.fault;
  done.replayed = r.replayed;
  done.reused = r.reused;
  done.tunnel = r.tunnel;
  done.generated = r.generated;
  done.request_octets = r.request_octets;
  done.response_octets = r.response_octets;
  done.detail = r.detail;
  done.origin = r.origin;
  done.path = r.path;
  done.scheme = r.scheme;
}

}  // namespace twp::test
