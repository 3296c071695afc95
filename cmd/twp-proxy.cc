// twp-proxy: reverse proxy for HTTP. What each subcommand does and how it ends; flags are in twp_proxy_cli.cc.
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "cmd/cli_program.h"
#include "cmd/cli_ready.h"
#include "cmd/twp_proxy_cli.h"
#include "cmd/twp_proxy_config.h"
#include "cmd/twp_proxy_reload.h"
#include "cmd/twp_proxy_server.h"
#include "config/save.h"

namespace {

constexpr const char* kProgram = "twp-proxy";

using twp::cli::ProxyArguments;

int complain(const std::vector<std::string>& errors) {
  for (const std::string& e : errors) twp::cli::complain(kProgram, e, 2);
  return 2;
}

int complain(const twp::Error& e) { return twp::cli::complain(kProgram, e); }

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
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return twp::cli::complain(kProgram, "cannot write to standard output", 1);
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
  twp::cli::describe(app, a, r);
  if (const auto ended = twp::cli::parse(app, argc, argv)) return *ended;
  int status = 0;
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "check") status = check(a);
  else if (command == "config") status = print_config(a);
  else if (command == "reload") status = ask_reload(r);
  else return serve(a);
  return twp::cli::finish(kProgram, status);
}

}  // namespace

int main(int argc, char** argv) { return twp::cli::guarded(kProgram, run, argc, argv); }
