// Which protocol a dial ends up with, over real sockets.
#include "proxy/dialer.h"

#include <boost/test/unit_test.hpp>

#include "base/log.h"
#include "proxy/front.h"
#include "support/memory_transport.h"
#include "support/recorder.h"
#include "support/test_pki.h"
#include "tls/tls_transport.h"

using namespace twp;
using namespace twp::test;

namespace {

/// An origin that offers `alpn` (over TLS; none: no TLS), and one dial to it.
struct Rig final : DialHandler {
  explicit Rig(const std::vector<std::string>& alpn, HttpVersions versions = {}) {
    set_log_level(LogLevel::error);
    if (!alpn.empty()) {
      TlsServerOptions o;
      o.identities.push_back(*TlsIdentity::load(test_pki().cert, test_pki().key));
      o.ticket_keys = TlsTicketKeys::random();
      o.alpn = alpn;
      if (alpn.front() == "none") o.alpn.clear();
      server_tls = *TlsContext::server(o);
    }
    FrontOptions at;
    at.at = *Address::parse("127.0.0.1", 0);
    at.versions = versions;
    front = *Front::open(worker, at, server_tls.get(), origin, limits);
    origin.setup = [](Recorder& r) { r.on_end = [](Recorder& s) { s.respond(200, "hello"); }; };
  }
  ~Rig() {
    if (owner.session() != nullptr) owner.session()->close(Fault::shutdown);
    front->close();
    run_quiet(worker);
  }

  /// "h1", "h2", or the word of the failure.
  std::string dial(const std::string& http) {
    TlsClientOptions o;
    o.ca_file = test_pki().ca;
    o.alpn = client_alpn(http);
    client_tls = *TlsContext::client(o);
    target.host = "127.0.0.1";
    target.port = front->address().port();
    target.tls = server_tls != nullptr;
    target.http = http;
    target.tls_context = client_tls.get();
    target.limits = &limits;
    running = Dial::start(worker, resolver, target, owner, *this);
    if (!run_until(worker, [&] { return running == nullptr; })) return "too late";
    if (owner.session() == nullptr) return std::string(log_word(fault));
    // The session really speaks it.
    Recorder r;
    r.stream = owner.session()->open(r);
    const auto version = owner.session()->version();
    r.send_head(Head::request(Method::get, "http", "a.test", "/"), End::yes);
    if (!run_until(worker, [&] { return r.gone; }) || r.body != "hello") return "no answer";
    return version.major == 2 ? "h2" : "h1";
  }

  void on_dialed(Dial&, std::unique_ptr<Session> s) noexcept override {
    owner.hold(std::move(s));
    worker.retire(std::move(running));
  }
  void on_dial_failed(Dial&, Fault f, const std::string& d) noexcept override {
    fault = f;
    detail = d;
    worker.retire(std::move(running));
  }

  Worker worker;
  HttpLimits limits;
  RecordingAcceptor origin;
  RecordingOwner owner{worker};
  std::unique_ptr<TlsContext> server_tls, client_tls;
  std::unique_ptr<Front> front;
  Resolver resolver{worker, {}};
  DialTarget target;
  std::unique_ptr<Dial> running;
  Fault fault = Fault::none;
  std::string detail;
};

using Alpn = std::vector<std::string>;
const Alpn kClear, kNone{"none"}, kOld{"http/1.1"}, kNew{"h2"}, kBoth{"h2", "http/1.1"},
    kBothOldFirst{"http/1.1", "h2"};
constexpr HttpVersions kOnly1{true, false}, kOnly2{false, true};

}  // namespace

BOOST_AUTO_TEST_SUITE(dialer)

BOOST_AUTO_TEST_CASE(cleartext_is_what_was_asked_for) {
  BOOST_TEST(Rig(kClear).dial("h1") == "h1");
  BOOST_TEST(Rig(kClear).dial("h2") == "h2");
  BOOST_TEST(Rig(kClear).dial("auto") == "h1");  // nothing is there to choose by
}

BOOST_AUTO_TEST_CASE(auto_follows_what_the_origin_chooses) {
  BOOST_TEST(Rig(kBoth).dial("auto") == "h2");
  BOOST_TEST(Rig(kBothOldFirst).dial("auto") == "h1");
  BOOST_TEST(Rig(kOld).dial("auto") == "h1");
  BOOST_TEST(Rig(kNew).dial("auto") == "h2");
  BOOST_TEST(Rig(kNone).dial("auto") == "h1");
}

BOOST_AUTO_TEST_CASE(what_was_asked_for_is_offered_alone) {
  BOOST_TEST(Rig(kBoth).dial("h1") == "h1");
  BOOST_TEST(Rig(kBothOldFirst).dial("h2") == "h2");
  BOOST_TEST(Rig(kNone).dial("h1") == "h1");
}

BOOST_AUTO_TEST_CASE(an_origin_without_it_is_an_error_that_names_the_key) {
  for (const Alpn& alpn : {kOld, kNone}) {
    Rig rig(alpn);
    BOOST_TEST(rig.dial("h2") == "tls-alpn");
    BOOST_TEST(rig.detail.find("cluster.http is \"h2\"") != std::string::npos, rig.detail);
    BOOST_TEST(info(rig.fault).http_status == 502);
    BOOST_TEST(rig.origin.streams.empty());
  }
  Rig rig(kNew);
  BOOST_TEST(rig.dial("h1") == "tls-alpn");
  BOOST_TEST(rig.detail.find("cluster.http is \"h1\"") != std::string::npos, rig.detail);
}

BOOST_AUTO_TEST_CASE(what_a_pool_expects_before_it_knows) {
  DialTarget t;
  BOOST_TEST(expected_streams(t) == 1u);
  t.http = "h2";
  BOOST_TEST(expected_streams(t) == 100u);
  t.http = "auto";
  BOOST_TEST(expected_streams(t) == 100u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(front)

BOOST_AUTO_TEST_CASE(a_listener_without_http2_takes_none) {
  Rig rig(kClear, kOnly1);
  RawPeer client(TcpTransport::connect(rig.worker, rig.front->address(), {}));
  client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  BOOST_TEST(run_until(rig.worker, [&] { return client.over(); }));
  BOOST_TEST(client.got().starts_with("HTTP/1.1 505 "), client.got());
  BOOST_TEST(Rig(kClear, kOnly1).dial("h1") == "h1");
}

/// Nothing but the preface will do: no octet of HTTP/1 is sent to who may speak anything (RFC 9113 §3.4).
BOOST_AUTO_TEST_CASE(a_listener_without_http1_takes_none) {
  for (const char* text : {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "INVALID CONNECTION PREFACE\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n"}) {
    Rig rig(kClear, kOnly2);
    RawPeer client(TcpTransport::connect(rig.worker, rig.front->address(), {}));
    client.send(text);
    BOOST_TEST(run_until(rig.worker, [&] { return client.over(); }));
    BOOST_TEST(!client.got().starts_with("HTTP/"));
    BOOST_TEST(client.got().find(std::string("\x07\x00\x00\x00\x00\x00", 6)) != std::string::npos);  // GOAWAY
    BOOST_TEST(rig.origin.streams.empty());
  }
  BOOST_TEST(Rig(kClear, kOnly2).dial("h2") == "h2");
  BOOST_TEST(Rig(kNew, kOnly2).dial("auto") == "h2");
  BOOST_TEST((server_alpn(kOnly2) == Alpn{"h2"}));
}

/// Over TLS without ALPN: HTTP/1 where there is any, else HTTP/2 by prior knowledge.
BOOST_AUTO_TEST_CASE(without_alpn_a_listener_of_http2_alone_speaks_that) {
  for (const bool alone : {true, false}) {
    Rig rig(kNone, alone ? kOnly2 : HttpVersions{});
    TlsClientOptions o;
    o.ca_file = test_pki().ca;
    rig.client_tls = *TlsContext::client(o);
    RawPeer client(make_tls_client(rig.worker, TcpTransport::connect(rig.worker, rig.front->address(), {}), *rig.client_tls,
                                   "127.0.0.1", "127.0.0.1", "127.0.0.1"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    BOOST_TEST(run_until(rig.worker, [&] { return client.over(); }));
    BOOST_TEST(client.got().starts_with("HTTP/1.1 200 ") != alone);
  }
}

/// What begins as HTTP/2 and does not go on as HTTP/2 is answered in its words: SETTINGS, GOAWAY, the end.
BOOST_AUTO_TEST_CASE(a_preface_that_ends_otherwise) {
  Rig rig(kClear);
  RawPeer client(TcpTransport::connect(rig.worker, rig.front->address(), {}));
  client.send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
  BOOST_TEST(run_until(rig.worker, [&] { return client.over(); }));
  BOOST_TEST(!client.got().starts_with("HTTP/1"));
  BOOST_TEST(client.got().find(std::string("\x07\x00\x00\x00\x00\x00", 6)) !=
             std::string::npos);  // GOAWAY on stream 0
  BOOST_TEST(rig.front->connections() == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_no_http_is_refused_in_http_1) {
  Rig rig(kClear);
  RawPeer client(TcpTransport::connect(rig.worker, rig.front->address(), {}));
  client.send("INVALID CONNECTION PREFACE\r\n\r\n");
  BOOST_TEST(run_until(rig.worker, [&] { return client.over(); }));
  BOOST_TEST(client.got().starts_with("HTTP/1.1 "));
}

BOOST_AUTO_TEST_CASE(closing_and_draining_with_connections_that_have_said_nothing) {
  for (const bool drain : {true, false}) {
    Rig rig(kClear);
    RawPeer silent(TcpTransport::connect(rig.worker, rig.front->address(), {}));
    RawPeer begun(TcpTransport::connect(rig.worker, rig.front->address(), {}));
    begun.send("PRI * ");
    BOOST_TEST(run_until(rig.worker, [&] { return rig.front->connections() == 2; }));
    run_quiet(rig.worker);
    if (drain)
      rig.front->drain();
    else
      rig.front->close();
    begun.send("nothing of HTTP/2\r\n\r\n");
    BOOST_TEST(run_until(rig.worker, [&] { return rig.front->connections() == 0; }));
    BOOST_TEST(run_until(rig.worker, [&] { return silent.over() && begun.over(); }));
  }
}

/// 10,000 connections that have said nothing, or the first octet only, must fit into 64 MiB of memory in all.
BOOST_AUTO_TEST_CASE(a_connection_that_waits_holds_no_block) {
  Rig rig(kClear);
  std::vector<std::unique_ptr<RawPeer>> clients;
  const std::size_t before = BlockPool::local().live_blocks();
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawPeer>(TcpTransport::connect(rig.worker, rig.front->address(), {})));
    if (i % 2 != 0) clients.back()->send("P");
  }
  BOOST_TEST(run_until(rig.worker, [&] { return rig.front->connections() == 200; }));
  run_quiet(rig.worker);
  BOOST_TEST(BlockPool::local().live_blocks() <= before + 3);
}

BOOST_AUTO_TEST_CASE(what_is_offered_by_alpn) {
  BOOST_TEST(server_alpn({}) == (Alpn{"h2", "http/1.1", "http/1.0"}), boost::test_tools::per_element());
  BOOST_TEST(server_alpn(kOnly1) == (Alpn{"http/1.1", "http/1.0"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
