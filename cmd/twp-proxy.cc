// twp-proxy: reverse proxy for HTTP. Subcommands, flags and exit statuses; the work is in twp_proxy_*.cc.
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "cmd/cli_ready.h"
#include "cmd/cli_version.h"
#include "cmd/twp_proxy_config.h"
#include "cmd/twp_proxy_reload.h"
#include "cmd/twp_proxy_server.h"
#include "config/save.h"

namespace {

using twp::cli::ProxyArguments;

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
  c->add_option("--to", a.to, "Origin, http:// or https://; several share the requests")->type_name("URL")->required()->allow_extra_args(false);
  c->add_option("--cert", a.cert, "Certificate chain for https, PEM; may be repeated (chosen by SNI)")->type_name("FILE")->allow_extra_args(false);
  c->add_option("--key", a.key, "Its private key, PEM")->type_name("FILE")->allow_extra_args(false);
  c->add_option("--ca", a.ca, "Instead: directory of a CA of twp-certgen that issues one")->type_name("DIR");
  c->add_option("--inspect", a.inspect, "Interceptor on every exchange: none")->type_name("WHAT");
  c->add_option("--origin-http", a.origin_http, "Protocol spoken to origins: h1")->type_name("NAME");
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

int complain(const std::string& what, int status) {
  std::fprintf(stderr, "twp-proxy: %s\n", what.c_str());
  return status;
}

int complain(const std::vector<std::string>& errors) {
  for (const std::string& e : errors) complain(e, 2);
  return 2;
}

int complain(const twp::Error& e) { return complain(e.what, e.fault == twp::Fault::bad_config ? 2 : 1); }

void prepare_process(const twp::config::Config& c) {
  std::signal(SIGPIPE, SIG_IGN);
  twp::set_log_program("twp-proxy");
  constexpr std::pair<std::string_view, twp::LogLevel> kLevels[] = {
      {"error", twp::LogLevel::error}, {"warning", twp::LogLevel::warning}, {"info", twp::LogLevel::info}, {"debug", twp::LogLevel::debug}};
  for (const auto& [name, level] : kLevels)
    if (c.log_level == name) twp::set_log_level(level);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

int serve(const ProxyArguments& a) {
  if (auto ok = twp::cli::check_ready_fd(a.ready_fd); !ok) return complain(ok.error());
  auto config = twp::cli::make_config(a);
  if (!config) return complain(config.error());
  prepare_process(*config);
  const auto secrets = twp::ProcessSecrets::random();
  auto snapshot = twp::cli::prepare(std::move(*config), secrets);
  if (!snapshot) return complain(snapshot.error());
  // One malloc arena a worker: more of them only hold memory that nobody uses.
  ::mallopt(M_ARENA_MAX, static_cast<int>((*snapshot)->config().workers));
  twp::cli::Server server([&a] { return twp::cli::make_config(a); }, {a.ready_fd, a.print_listen, a.pid_file});
  if (auto ok = server.start(std::move(*snapshot), secrets); !ok) return complain(ok.error());
  server.run();
  return 0;
}

int check(const ProxyArguments& a) {
  auto config = twp::cli::make_config(a);
  if (!config) return complain(config.error());
  const auto snapshot = twp::cli::prepare(std::move(*config), twp::ProcessSecrets::random());
  if (!snapshot) return complain(snapshot.error());
  std::printf("%s: ok\n", a.file.c_str());
  return 0;
}

int print_config(const ProxyArguments& a) {
  const auto config = twp::cli::make_config(a);
  if (!config) return complain(config.error());
  const std::string text = twp::config::save(*config);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return complain("cannot write to standard output", 1);
  return 0;
}

int ask_reload(const twp::cli::ReloadArguments& r) {
  const auto asked = twp::cli::reload(r);
  return asked ? 0 : complain(asked.error());
}

int run(int argc, char** argv) {
  ProxyArguments a;
  twp::cli::ReloadArguments r;
  CLI::App app("Proxy for HTTP, in front of your servers.", "twp-proxy");
  app.set_version_flag("--version", twp::cli::version_text("twp-proxy"));
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
  l->add_option("PID", r.pid, "Its process id")->check(CLI::PositiveNumber);
  l->add_option("--pid-file", r.pid_file, "File with the process id")->type_name("FILE")->excludes("PID");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return complain(std::string(e.what()) + "; see twp-proxy --help", 2);
  }
  int status = 0;
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "check") status = check(a);
  else if (command == "config") status = print_config(a);
  else if (command == "reload") status = ask_reload(r);
  else return serve(a);
  if (std::fflush(stdout) != 0) return complain("cannot write to standard output", 1);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    return complain(e.what(), 1);
  }
}
