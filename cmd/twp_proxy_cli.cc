#include "cmd/twp_proxy_cli.h"

#include "cmd/cli_version.h"

namespace twp::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  twp-proxy reverse --listen http://127.0.0.1:8080 --to http://127.0.0.1:3000
  twp-proxy reverse --listen https://0.0.0.0:8443 --cert server.pem --key server-key.pem --to http://app1:3000 --to http://app2:3000
  twp-proxy reverse --listen https://127.0.0.1:8443 --ca ~/.local/share/twp --to https://origin.example --set route.preserve_host=false
  twp-proxy config reverse --listen http://127.0.0.1:8080 --to http://127.0.0.1:3000 > twp.toml
  twp-proxy check -c twp.toml
  twp-proxy run -c twp.toml --pid-file /run/twp.pid --admin http://127.0.0.1:9090
  twp-proxy reload --pid-file /run/twp.pid

SIGTERM and SIGINT drain, a second one stops at once, SIGHUP reloads. All keys: docs/configuration.md.
Exit status: 0 success, 1 failure, 2 bad usage or configuration.)";

void add_settings(CLI::App& c, ProxyArguments& a) {
  c.add_option("--workers", a.workers, "Worker threads (default: one for each core)")->type_name("N");
  c.add_option("--admin", a.admin, "Metrics, health and memory on http://127.0.0.1:PORT (default: off)")->type_name("URL");
  c.add_option("--access-log", a.access_log, "One JSON line a request; - is standard output (default: off)")->type_name("FILE");
  c.add_option("--key-log", a.key_log, "Append TLS secrets for Wireshark")->type_name("FILE");
  c.add_option("--drain-timeout", a.drain_timeout, "Longest drain after SIGTERM (default: 30s)")->type_name("TIME");
  c.add_option("--tcp-congestion", a.congestion, "Congestion control of both legs: reno, cubic, bbr")->type_name("NAME");
  c.add_option("--set", a.sets, "Set any key of docs/configuration.md, such as limits.max_head=128KiB; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_process(CLI::App& c, ProxyArguments& a) {
  c.add_option("--ready-fd", a.ready_fd, "Write a line of JSON to this descriptor when everything listens")->type_name("N")->check(CLI::NonNegativeNumber);
  c.add_flag("--print-listen", a.print_listen, "Write the same line to standard output");
  c.add_option("--pid-file", a.pid_file, "Write the process id to this file, and remove it at the end")->type_name("FILE");
}

void add_reverse(CLI::App& parent, ProxyArguments& a, bool runs) {
  CLI::App* c = parent.add_subcommand("reverse", "Forward what arrives at --listen to --to");
  c->add_option("--listen", a.listen, "http://IP:PORT or https://IP:PORT; port 0 picks one; may be repeated")
      ->type_name("URL")->required()->allow_extra_args(false);
  c->add_option("--to", a.to, "Origin, http://, https:// or h2c://; several share the requests")->type_name("URL")->required()->allow_extra_args(false);
  c->add_option("--cert", a.cert, "Certificate chain for https, PEM; may be repeated (chosen by SNI)")->type_name("FILE")->allow_extra_args(false);
  c->add_option("--key", a.key, "Its private key, PEM")->type_name("FILE")->allow_extra_args(false);
  c->add_option("--ca", a.ca, "Instead: directory of a CA of twp-certgen that issues one")->type_name("DIR");
  c->add_option("--inspect", a.inspect, "Interceptor on every exchange: none")->type_name("WHAT");
  c->add_option("--origin-http", a.origin_http, "Protocol spoken to origins: h1, h2 or auto, which is what ALPN chooses (default: h1)")->type_name("NAME");
  c->add_option("--origin-ca", a.origin_ca, "PEM bundle to verify origins against (default: the system's)")->type_name("FILE");
  c->add_flag("--origin-insecure", a.origin_insecure, "Accept any origin certificate");
  add_settings(*c, a);
  if (runs) add_process(*c, a);
}

void add_run(CLI::App& parent, ProxyArguments& a, bool runs) {
  CLI::App* c = parent.add_subcommand("run", "Serve as a configuration file says");
  c->add_option("-c,--config", a.file, "Configuration, TOML (docs/configuration.md)")->type_name("FILE")->required();
  add_settings(*c, a);
  if (runs) add_process(*c, a);
}

}  // namespace

void describe(CLI::App& app, ProxyArguments& a, ReloadArguments& r) {
  app.set_version_flag("--version", version_text("twp-proxy"));
  app.require_subcommand(1);
  app.footer(kExamples);
  add_reverse(app, a, true);
  add_run(app, a, true);
  CLI::App* c = app.add_subcommand("check", "Say what is wrong with a configuration file; opens no socket");
  c->add_option("-c,--config", a.file, "Configuration, TOML")->type_name("FILE")->required();
  CLI::App* p = app.add_subcommand("config", "Print the effective configuration of any of the others as TOML");
  p->require_subcommand(1);
  add_reverse(*p, a, false);
  add_run(*p, a, false);
  CLI::App* l = app.add_subcommand("reload", "Make a running twp-proxy read its configuration again (SIGHUP)");
  l->add_option("PID", r.pid, "Its process id");
  l->add_option("--pid-file", r.pid_file, "File with the process id")->type_name("FILE")->excludes("PID");
}

}  // namespace twp::cli
