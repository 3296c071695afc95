// twp-origin: the test origin of twp.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "certs/authority.h"
#include "cmd/cli_congestion.h"
#include "cmd/cli_ready.h"
#include "cmd/cli_program.h"
#include "cmd/cli_version.h"
#include "cmd/twp_origin_identity.h"
#include "loadgen/units.h"
#include "origin/server.h"

namespace {

constexpr const char* kProgram = "twp-origin";

constexpr const char* kFooter = R"(Pages:
  /                 56 octets of JSON         /headers    the request head as JSON
  /bytes/N          N octets                  /echo       the request body, streamed
  /chunked/N        N octets, length unknown  /early      answers after 8 KiB of the request body
  /stream?chunks=10&size=1024&interval=100    /trailers   a body with trailers
  /delay/MS         answers after MS ms       /interim    100 and 103 before the 200
  /status/NNN       that status               /ws         WebSocket echo
  /close, /reset    the connection is closed after the response; the stream (HTTP/1.1: connection) is reset in the middle of it
  /twp.Echo/Unary, /ServerStream, /ClientStream, /BidiStream, /grpc.health.v1.Health/Check   gRPC (application/grpc)

Every page is there over HTTP/1.1 and HTTP/2: by ALPN at https, by the first octets at http. --http leaves one of them.

Examples:
  twp-origin --listen http://127.0.0.1:8080
  twp-origin --listen http://127.0.0.1:0 --listen https://127.0.0.1:0 --ca ~/.local/share/twp --print-listen
  twp-origin --listen https://[::1]:8443 --cert server.pem --key server-key.pem --threads 4

Exit status: 0 success, 1 failure, 2 bad usage or configuration.)";

struct Arguments {
  std::vector<std::string> listen{"http://127.0.0.1:8080"};
  std::string cert, key, ca, drain = "30s";
  std::string http = "auto";
  int ready_fd = -1;
  bool print_listen = false;
  twp::origin::ServerOptions server;
};

int complain(const twp::Error& e) { return twp::cli::complain(kProgram, e); }

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("--listen", a.listen, "Where to listen: http://HOST:PORT or https://HOST:PORT; port 0 picks one; may be repeated")
      ->type_name("URL...")
      ->capture_default_str();
  CLI::Option* cert = app.add_option("--cert", a.cert, "Certificate chain for https, PEM")->type_name("FILE");
  CLI::Option* key = app.add_option("--key", a.key, "Its private key, PEM")->type_name("FILE")->needs(cert);
  cert->needs(key);
  app.add_option("--ca", a.ca, "Directory of a CA that signs a certificate for the listening hosts (made when there is none)")
      ->type_name("DIR")
      ->excludes(cert);
  app.add_option("--http", a.http, "Versions of HTTP to speak: h1, h2 or auto, which is both")->type_name("NAME")->capture_default_str();
  app.add_option("--threads,--workers", a.server.threads, "Threads, each with its own listeners")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--congestion", a.server.congestion, "TCP congestion control: reno, cubic, bbr ... (default: the system's)")->type_name("NAME");
  app.add_option("--drain-timeout", a.drain, "How long requests in flight may take after SIGTERM")->type_name("TIME")->capture_default_str();
  app.add_option("--key-log", a.server.key_log_file, "Append TLS secrets here (NSS format, for Wireshark)")->type_name("FILE")->envname("SSLKEYLOGFILE");
  app.add_option("--ready-fd", a.ready_fd, "Write one line of JSON with the URLs to this descriptor when ready")->type_name("N");
  app.add_flag("--print-listen", a.print_listen, "Write that line to standard output");
}

twp::Result<void> prepare(Arguments& a) {
  const auto drain = twp::load::parse_duration(a.drain);
  if (!drain) return twp::fail(twp::Fault::bad_config, "--drain-timeout '" + a.drain + "': write a time such as 30s");
  a.server.drain_timeout = *drain;
  if (std::string wrong = twp::cli::congestion_problem(a.server.congestion); !wrong.empty())
    return twp::fail(twp::Fault::bad_config, "--congestion: " + wrong);
  if (a.http != "auto" && a.http != "h1" && a.http != "h2")
    return twp::fail(twp::Fault::bad_config, "--http '" + a.http + "': expected one of h1, h2, auto");
  a.server.versions = {a.http != "h2", a.http != "h1"};
  bool encrypted = false;
  for (const std::string& text : a.listen) {
    auto url = twp::config::parse_listen_url(text);
    if (!url) return twp::fail(twp::Fault::bad_config, "--listen " + text + ": " + url.error().what);
    if (url->scheme == twp::config::Scheme::h3)
      return twp::fail(twp::Fault::bad_config, "--listen " + text + ": this version serves http and https");
    encrypted |= url->encrypted();
    a.server.listen.push_back(std::move(*url));
  }
  if (!encrypted) return {};
  if (a.cert.empty() && a.ca.empty())
    return twp::fail(twp::Fault::bad_config, "https needs a certificate: give --cert and --key, or --ca DIR");
  auto identity = a.cert.empty() ? twp::origin_cli::identity_from_ca(a.ca, a.server.listen) : twp::TlsIdentity::load(a.cert, a.key);
  if (!identity) return std::unexpected(identity.error());
  a.server.identities.push_back(std::move(*identity));
  return {};
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("The test origin of twp: pages that answer in every way an HTTP server may.", "twp-origin");
  app.set_version_flag("--version", twp::cli::version_text("twp-origin", {"event", "cares", "nghttp2", "crypto", "cli11"}));
  app.footer(kFooter);
  add_options(app, a);
  if (const auto ended = twp::cli::parse(app, argc, argv)) return *ended;
  twp::set_log_program("twp-origin");
  if (auto ok = prepare(a); !ok) return complain(ok.error());
  auto server = twp::origin::Server::open(a.server);
  if (!server) return complain(server.error());
  if (auto ok = twp::cli::announce("twp-origin", (*server)->urls(), a.ready_fd, a.print_listen); !ok) return complain(ok.error());
  (*server)->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return twp::cli::guarded(kProgram, run, argc, argv); }
