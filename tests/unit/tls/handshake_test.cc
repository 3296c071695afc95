// Handshakes in both roles: who is who, what is negotiated, and how refusals read.
#include "base/ascii.h"
#include "tls_fixture.h"

using namespace twp;
using namespace twp::test;

namespace {

struct Fixture {
  Fixture() {
    server.identities = {identity(pki.leaf("a", "DNS:a.test,DNS:*.w.test,IP:127.0.0.1,IP:::1"))};
    server.ticket_keys = TlsTicketKeys::random();
    client.ca_file = pki.ca.cert_file;
  }
  static std::shared_ptr<const TlsIdentity> identity(const TestCert& c) {
    auto id = TlsIdentity::load(c.cert_file, c.key_file);
    BOOST_REQUIRE_MESSAGE(id.has_value(), (id ? "" : id.error().what));
    return *id;
  }
  void contexts() {
    auto made = TlsContext::server(server);
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().what));
    server_context = std::move(*made);
    auto ours = TlsContext::client(client);
    BOOST_REQUIRE_MESSAGE(ours.has_value(), (ours ? "" : ours.error().what));
    client_context = std::move(*ours);
  }
  /// Connects both ends and waits until both know how it ended.
  void connect(const std::string& host = "a.test", const std::string& verify_name = "", const std::string& key = "a:1") {
    if (!server_context) contexts();
    auto [a, b] = MemTransport::pair(w);
    c = std::make_unique<Endpoint>(make_tls_client(w, std::move(a), *client_context, host, verify_name, key));
    s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(10)));
    BOOST_REQUIRE(turn_until(w, [&] { return c->opened + c->failed != 0 && s->opened + s->failed != 0; }));
  }
  /// One octet each way, so that tickets have arrived.
  void exchange() {
    c->send("?");
    s->send("!");
    BOOST_REQUIRE(turn_until(w, [&] { return s->in == "?" && c->in == "!"; }));
  }
  void expect_open() {
    BOOST_TEST(c->opened == 1, c->detail);
    BOOST_TEST(s->opened == 1, s->detail);
  }
  void expect_refused(Fault at_client, const std::string& words) {
    BOOST_TEST(c->opened == 0);
    BOOST_TEST(log_word(c->fault) == log_word(at_client));
    BOOST_TEST(c->detail.find(words) != std::string::npos, c->detail);
  }

  Worker w;
  TestPki pki;
  TlsServerOptions server;
  TlsClientOptions client;
  std::unique_ptr<TlsContext> server_context, client_context;
  std::unique_ptr<Endpoint> c, s;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(handshake, Fixture)

BOOST_AUTO_TEST_CASE(fills_in_who_the_peer_is) {
  server.alpn = {"h2", "http/1.1"};
  client.alpn = {"http/1.1", "h2"};
  connect();
  expect_open();
  for (const Endpoint* e : {c.get(), s.get()}) {
    const PeerInfo& p = e->transport->peer();
    BOOST_TEST(p.tls);
    BOOST_TEST(!p.tls_resumed);
    BOOST_TEST(p.alpn == "h2");  // the server's order
    BOOST_TEST(p.sni == "a.test");
    BOOST_TEST(p.cipher == "TLS_AES_128_GCM_SHA256");
    BOOST_TEST(p.tls_version == "TLSv1.3");
  }
  BOOST_TEST(c->transport->peer().subject == "CN=a");
  BOOST_TEST(s->transport->peer().subject == "");
  exchange();
}

BOOST_AUTO_TEST_CASE(no_protocol_in_common) {
  server.alpn = {"http/1.1"};
  client.alpn = {"h2"};
  connect();
  expect_refused(Fault::tls_no_protocol, "no application protocol");
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_no_protocol));
}

BOOST_AUTO_TEST_CASE(http_1_0_has_a_name_of_its_own) {
  server.alpn = {"h2", "http/1.1"};
  client.alpn = {"http/1.0"};  // curl -0
  connect();
  expect_open();
  BOOST_TEST(s->transport->peer().alpn == "http/1.0");
  server_context.reset();
  server.alpn = {"h2"};  // no HTTP/1 at all
  connect();
  expect_refused(Fault::tls_no_protocol, "no application protocol");
}

BOOST_AUTO_TEST_CASE(no_alpn_from_the_client_is_fine) {
  client.alpn = {};
  connect();
  expect_open();
  BOOST_TEST(c->transport->peer().alpn == "");
}

BOOST_AUTO_TEST_CASE(identity_by_name_exact_then_wildcard_then_first) {
  server.identities.push_back(identity(pki.leaf("wild", "DNS:*.b.test", 30, true)));
  server.identities.push_back(identity(pki.leaf("exact", "DNS:x.b.test")));
  contexts();
  const auto subject = [&](const std::string& host, const std::string& verify) {
    connect(host, verify, host + verify);
    BOOST_TEST(c->opened == 1, c->detail);
    return c->transport->peer().subject;
  };
  BOOST_TEST(subject("x.b.test", "") == "CN=exact");
  BOOST_TEST(subject("y.b.test", "") == "CN=wild");
  BOOST_TEST(subject("Y.B.TEST.", "") == "CN=wild");
  BOOST_TEST(subject("b.test", "a.test") == "CN=a");      // a wildcard is a label, not none
  BOOST_TEST(subject("x.y.b.test", "a.test") == "CN=a");  // nor two
  BOOST_TEST(subject("elsewhere.test", "a.test") == "CN=a");
}

BOOST_AUTO_TEST_CASE(strict_sni_refuses_unknown_names_only) {
  server.strict_sni = true;
  connect("unknown.test", "a.test");
  BOOST_TEST(c->opened == 0);
  BOOST_TEST(c->detail.find("unrecognized name") != std::string::npos, c->detail);
  connect("deep.w.test");
  expect_open();
  connect("127.0.0.1");
  expect_open();
}

BOOST_AUTO_TEST_CASE(ip_addresses_are_checked_as_addresses_and_never_sent_as_names) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    connect(host);
    expect_open();
    BOOST_TEST(s->transport->peer().sni == "");
  }
  connect("127.0.0.2");
  expect_refused(Fault::tls_verify, "127.0.0.2");
}

BOOST_AUTO_TEST_CASE(wrong_name) {
  connect("other.test");
  expect_refused(Fault::tls_verify, "the certificate is not for other.test");
  BOOST_TEST(s->opened == 0);
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_handshake));
}

BOOST_AUTO_TEST_CASE(wildcard_covers_exactly_one_label) {
  connect("x.w.test");
  expect_open();
  connect("x.y.w.test");
  expect_refused(Fault::tls_verify, "x.y.w.test");
}

BOOST_AUTO_TEST_CASE(pinned_name_replaces_the_host) {
  connect("other.test", "a.test");
  expect_open();
  BOOST_TEST(s->transport->peer().sni == "other.test");
  connect("a.test", "pinned.test", "fresh");
  expect_refused(Fault::tls_verify, "pinned.test");
}

BOOST_AUTO_TEST_CASE(unknown_issuer) {
  client.ca_file = pki.other_ca("other").cert_file;
  connect();
  expect_refused(Fault::tls_verify, "unable to get local issuer certificate");
}

BOOST_AUTO_TEST_CASE(expired) {
  server.identities = {identity(pki.leaf("old", "DNS:a.test", -1))};
  connect();
  expect_refused(Fault::tls_verify, "certificate has expired");
}

BOOST_AUTO_TEST_CASE(verification_off_takes_anything) {
  client.ca_file = "";
  client.verify = false;
  connect("whatever.test");
  expect_open();
  BOOST_TEST(c->transport->peer().subject == "");
}

BOOST_AUTO_TEST_CASE(the_certificate_itself_may_be_the_anchor) {
  const TestCert self = pki.leaf("pinned", "DNS:a.test");
  server.identities = {identity(self)};
  client.ca_file = self.cert_file;
  connect();
  expect_open();
}

BOOST_AUTO_TEST_CASE(mutual_tls) {
  server.client_ca_file = pki.ca.cert_file;
  server.client_cert_required = true;
  client.identity = identity(pki.leaf("user", "DNS:user.test"));
  connect();
  expect_open();
  exchange();
  BOOST_TEST(s->transport->peer().subject == "CN=user");
}

BOOST_AUTO_TEST_CASE(mutual_tls_without_a_certificate) {
  server.client_ca_file = pki.ca.cert_file;
  server.client_cert_required = true;
  connect();
  BOOST_TEST(s->opened == 0);
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_client_cert));
  BOOST_TEST(s->detail.find("the client sent no certificate") != std::string::npos, s->detail);
  // TLS 1.3: the client's handshake was over before the server looked.
  BOOST_REQUIRE(turn_until(w, [&] { return c->fault != Fault::none || c->eof; }));
  BOOST_TEST(log_word(c->fault) == log_word(Fault::peer_reset));
}

BOOST_AUTO_TEST_CASE(mutual_tls_with_a_stranger_s_certificate) {
  server.client_ca_file = pki.ca.cert_file;
  const TestCert stranger = pki.other_ca("stranger");
  client.identity = identity(pki.leaf_of(stranger, "user", "DNS:user.test"));
  connect();
  BOOST_TEST(s->opened == 0);
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_client_cert));
}

BOOST_AUTO_TEST_CASE(mutual_tls_optional) {
  server.client_ca_file = pki.ca.cert_file;
  connect();
  expect_open();
  BOOST_TEST(s->transport->peer().subject == "");
}

BOOST_AUTO_TEST_CASE(minimum_version) {
  server.min_version = "1.3";
  contexts();
  SSL_CTX_set_max_proto_version(client_context->native(), TLS1_2_VERSION);
  connect();
  BOOST_TEST(c->opened == 0);
  BOOST_TEST(c->detail.find("protocol version") != std::string::npos, c->detail);
}

BOOST_AUTO_TEST_CASE(tls_1_2) {
  contexts();
  SSL_CTX_set_max_proto_version(client_context->native(), TLS1_2_VERSION);
  connect();
  expect_open();
  exchange();
  BOOST_TEST(c->transport->peer().tls_version == "TLSv1.2");
  connect();
  expect_open();
  BOOST_TEST(c->transport->peer().tls_resumed);
  BOOST_TEST(s->transport->peer().tls_resumed);
}

BOOST_AUTO_TEST_CASE(a_peer_that_speaks_something_else) {
  contexts();
  auto [a, b] = MemTransport::pair(w);
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(10)));
  Chain text;
  text.append_copy("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  a->write(text);
  BOOST_REQUIRE(turn_until(w, [&] { return s->failed != 0; }));
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_handshake));
  BOOST_TEST(s->detail.find("http request") != std::string::npos, s->detail);
}

BOOST_AUTO_TEST_CASE(a_peer_that_leaves) {
  contexts();
  auto [a, b] = MemTransport::pair(w);
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(10)));
  a->close(Fault::none);
  BOOST_REQUIRE(turn_until(w, [&] { return s->failed != 0; }));
  BOOST_TEST(s->detail.find("closed during the handshake") != std::string::npos, s->detail);
  BOOST_TEST(log_word(s->fault) == log_word(Fault::client_closed));  // nobody refused anything
}

BOOST_AUTO_TEST_CASE(a_peer_that_says_nothing) {
  contexts();
  auto [a, b] = MemTransport::pair(w);
  const Instant before = w.now();  // what the timer counts from
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::milliseconds(50)));
  BOOST_REQUIRE(turn_until(w, [&] { return s->failed != 0; }));
  BOOST_TEST(monotonic_now() - before >= 49'000'000u);
  BOOST_TEST(s->detail.find("took too long") != std::string::npos, s->detail);
}

BOOST_AUTO_TEST_CASE(handlers_hear_nothing_after_close) {
  contexts();
  auto [a, b] = MemTransport::pair(w);
  c = std::make_unique<Endpoint>(make_tls_client(w, std::move(a), *client_context, "a.test", "", "k"));
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::milliseconds(20)));
  s->transport->close(Fault::shutdown);
  BOOST_REQUIRE(turn_until(w, [&] { return c->failed != 0; }));
  for (int i = 0; i < 10; ++i) w.turn(std::chrono::milliseconds(5));
  BOOST_TEST(s->failed == 0);
  BOOST_TEST(s->opened == 0);
}

BOOST_AUTO_TEST_CASE(key_log_holds_the_secrets_of_both_roles) {
  server.key_log_file = client.key_log_file = pki.dir / "keys.log";
  connect();
  exchange();
  std::istringstream lines(slurp(server.key_log_file));
  std::map<std::string, std::map<std::string, int>> seen;  // label -> client random + secret
  std::string label, random, secret;
  while (lines >> label >> random >> secret) {
    BOOST_TEST(random.size() == 64u);
    BOOST_TEST((secret.size() == 64u || secret.size() == 96u));
    ++seen[label][random + secret];
  }
  for (const char* want : {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
                           "SERVER_TRAFFIC_SECRET_0"}) {
    BOOST_REQUIRE(seen[want].size() == 1u);
    BOOST_TEST(seen[want].begin()->second == 2);  // each end wrote the same secret
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(resumption, Fixture)

BOOST_AUTO_TEST_CASE(second_connection_resumes_in_both_roles) {
  connect();
  exchange();
  connect();
  expect_open();
  BOOST_TEST(c->transport->peer().tls_resumed);
  BOOST_TEST(s->transport->peer().tls_resumed);
  BOOST_TEST(c->transport->peer().subject == "CN=a");
}

BOOST_AUTO_TEST_CASE(a_reset_connection_leaves_its_ticket_good) {
  connect();
  exchange();
  c->transport->close(Fault::cancelled);
  connect();
  BOOST_TEST(c->transport->peer().tls_resumed);
}

BOOST_AUTO_TEST_CASE(another_worker_s_context_takes_the_ticket) {
  connect();
  exchange();
  server_context = std::move(*TlsContext::server(server));
  connect();
  BOOST_TEST(c->transport->peer().tls_resumed);
}

BOOST_AUTO_TEST_CASE(other_ticket_keys_do_not) {
  connect();
  exchange();
  server.ticket_keys = TlsTicketKeys::random();
  server_context = std::move(*TlsContext::server(server));
  connect();
  expect_open();
  BOOST_TEST(!c->transport->peer().tls_resumed);
}

BOOST_AUTO_TEST_CASE(off_when_asked) {
  client.session_cache = false;
  connect();
  exchange();
  connect();
  BOOST_TEST(!c->transport->peer().tls_resumed);
}

// A64: a session ticket got for one name must not open another, least of all one that demands a certificate.
struct Tickets : Fixture {
  /// Connects with `offered` and waits for data and a new ticket, or for the server's refusal.
  std::unique_ptr<RawClient> visit(TlsContext& at, const std::string& sni, SSL_SESSION* offered) {
    auto [a, b] = MemTransport::pair(w);
    s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), at, std::chrono::seconds(10)));
    auto raw = std::make_unique<RawClient>(std::move(a), sni, offered);
    BOOST_REQUIRE(turn_until(w, [&] { return s->opened + s->failed != 0; }));
    if (s->opened != 0) {
      s->send("!");
      BOOST_REQUIRE(turn_until(w, [&] { return raw->in == "!"; }));
    }
    return raw;
  }
};

BOOST_FIXTURE_TEST_CASE(a_ticket_is_good_for_its_name_only, Tickets) {
  contexts();
  const auto first = visit(*server_context, "a.test", nullptr);
  BOOST_REQUIRE(first->ticket != nullptr);
  BOOST_TEST(visit(*server_context, "a.test", first->ticket)->resumed());
  BOOST_TEST(!visit(*server_context, "x.w.test", first->ticket)->resumed());
  BOOST_TEST(s->opened == 1);
}

BOOST_FIXTURE_TEST_CASE(a_ticket_is_good_for_its_demand_of_a_client_certificate_only, Tickets) {
  contexts();
  const auto first = visit(*server_context, "a.test", nullptr);
  BOOST_REQUIRE(first->ticket != nullptr);
  server.client_ca_file = pki.ca.cert_file;
  auto may = std::move(*TlsContext::server(server));
  BOOST_TEST(!visit(*may, "a.test", first->ticket)->resumed());
  server.client_cert_required = true;
  auto must = std::move(*TlsContext::server(server));
  visit(*must, "a.test", first->ticket);
  BOOST_TEST(s->opened == 0);
  BOOST_TEST(log_word(s->fault) == log_word(Fault::tls_client_cert));
}

BOOST_FIXTURE_TEST_CASE(a_ticket_is_good_for_its_protocol_only, Tickets) {
  contexts();
  const auto first = visit(*server_context, "a.test", nullptr);
  BOOST_REQUIRE(first->ticket != nullptr);
  server.alpn = {};
  auto other = std::move(*TlsContext::server(server));
  BOOST_TEST(!visit(*other, "a.test", first->ticket)->resumed());
}

BOOST_FIXTURE_TEST_CASE(one_ticket_a_handshake, Tickets) {
  contexts();
  int tickets = 0;
  auto [a, b] = MemTransport::pair(w);
  s = std::make_unique<Endpoint>(make_tls_server(w, std::move(b), *server_context, std::chrono::seconds(10)));
  RawClient raw(std::move(a), "a.test", nullptr);
  SSL_set_msg_callback(raw.ssl(), [](int out, int, int type, const void* octets, std::size_t n, SSL*, void* count) {
    if (out == 0 && type == SSL3_RT_HANDSHAKE && n > 0 && *static_cast<const unsigned char*>(octets) == SSL3_MT_NEWSESSION_TICKET)
      ++*static_cast<int*>(count);
  });
  SSL_set_msg_callback_arg(raw.ssl(), &tickets);
  BOOST_REQUIRE(turn_until(w, [&] { return s->opened != 0; }));
  s->send("!");
  BOOST_REQUIRE(turn_until(w, [&] { return raw.in == "!"; }));
  BOOST_TEST(tickets == 1);
}

BOOST_AUTO_TEST_CASE(our_own_cache_keeps_names_apart) {
  connect("a.test", "", "same-slot");
  exchange();
  connect("x.w.test", "", "same-slot");
  expect_open();
  BOOST_TEST(!c->transport->peer().tls_resumed);
  connect("a.test", "", "same-slot");
  BOOST_TEST(c->transport->peer().tls_resumed);
  // The name that was verified is part of it: a resumed session is not verified again.
  connect("a.test", "pinned.test", "same-slot");
  expect_refused(Fault::tls_verify, "pinned.test");
}

BOOST_AUTO_TEST_SUITE_END()
