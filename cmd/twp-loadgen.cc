// twp-loadgen: the load generator of twp.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cmd/cli_program.h"
#include "cmd/cli_version.h"
#include "cmd/twp_loadgen_options.h"
#include "loadgen/endpoint.h"
#include "loadgen/report.h"
#include "loadgen/runner.h"

namespace {

constexpr const char* kProgram = "twp-loadgen";

using namespace twp::load;

constexpr const char* kFooter = R"(Examples:
  twp-loadgen run http://127.0.0.1:8080/ -c 64
  twp-loadgen run http://127.0.0.1:8080/ -c 64 --rate 5000 -d 30s       open loop: latency from when each was due
  twp-loadgen run https://a.test:8443/ --ca ca.pem --connect-to 127.0.0.1:8443 -c 16 --new-connection
  twp-loadgen run http://127.0.0.1:8080/echo --workload duplex --body-size 10MiB -c 4
  twp-loadgen run http://127.0.0.1:8080/ws --workload ws -c 32
  twp-loadgen run https://a.test:8443/ --http h2 -c 64 -m 8             8 connections with 8 streams each
  twp-loadgen run h2c://127.0.0.1:8080 --workload grpc -c 64            unary calls of twp.Echo
  twp-loadgen ramp http://127.0.0.1:8080/ --concurrency 8,16,32,64 --slo-p99 50ms --watch proxy=1234 --csv out.csv

Exit status: 0 success, 1 failure or not one right answer, 2 bad usage, 3 an SLO given on the command line was missed.
Ctrl-C ends a run early; what was measured until then is reported.)";

int complain(const twp::Error& e) { return twp::cli::complain(kProgram, e); }

twp::Result<void> write_json(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == "-") {
    std::printf("%s\n", text.c_str());
    return {};
  }
  std::ofstream out(path);
  out << text << '\n';
  out.close();
  if (!out) return twp::fail(twp::Fault::io_error, "cannot write " + path);
  return {};
}

class Session {
 public:
  Session(const Plan& plan, bool ramp)
      : plan_(plan), ramp_(ramp), table_(plan.json_file == "-" ? stderr : stdout), live_(::isatty(STDERR_FILENO) == 1) {}

  twp::Result<int> run(Interrupt& interrupt) {
    auto runner = Runner::create(plan_);
    if (!runner) return std::unexpected(runner.error());
    if (live_) runner->on_progress = [](const Progress& p) { std::fprintf(stderr, "\r%s\x1b[K", progress_line(p).c_str()); };
    for (const unsigned c : plan_.steps) {
      auto step = runner->run(c, interrupt);
      if (live_) std::fputs("\r\x1b[K", stderr);
      if (!step) return std::unexpected(step.error());
      if (steps_.empty()) print(title(plan_) + table_header(plan_));
      print(table_line(plan_, *step));
      steps_.push_back(std::move(*step));
      if (!plan_.csv_file.empty())
        if (auto ok = append_csv(plan_.csv_file, {make_row(plan_, steps_.back())}); !ok) return std::unexpected(ok.error());
      std::fputs(warnings(plan_, steps_.back()).c_str(), stderr);
      if (const std::string limit = limit_warning(steps_.back()); !limit.empty() && !std::exchange(limit_told_, true))
        std::fputs(limit.c_str(), stderr);
      if (interrupt.seen()) break;
    }
    print(ramp_ ? ramp_summary(plan_, steps_) : details(plan_, steps_.back()));
    const std::string json = ramp_ ? json_ramp(plan_, steps_) : plan_.json_file.empty() ? "" : json_step(plan_, steps_.back());
    if (auto ok = write_json(plan_.json_file, json); !ok) return std::unexpected(ok.error());
    return exit_status(plan_, steps_);
  }

 private:
  void print(const std::string& text) {
    std::fputs(text.c_str(), table_);
    std::fflush(table_);
  }

  const Plan& plan_;
  const bool ramp_;
  FILE* const table_;
  const bool live_;
  std::vector<Step> steps_;
  bool limit_told_ = false;  // it would be the same for every step that follows
};

int run(int argc, char** argv) {
  twp::loadgen_cli::Arguments run_args;
  twp::loadgen_cli::Arguments ramp_args;
  CLI::App app("Loads an HTTP server or proxy and measures it.", "twp-loadgen");
  app.set_version_flag("--version", twp::cli::version_text("twp-loadgen", {"event", "cares", "nghttp2", "crypto", "cli11"}));
  app.require_subcommand(1);
  app.footer(kFooter);
  CLI::App* one = app.add_subcommand("run", "One load for a time");
  CLI::App* ramp = app.add_subcommand("ramp", "Steps of rising concurrency; finds what is sustained");
  twp::loadgen_cli::add_options(*one, run_args, false);
  twp::loadgen_cli::add_options(*ramp, ramp_args, true);
  one->footer(kFooter);
  ramp->footer(kFooter);
  if (const auto ended = twp::cli::parse(app, argc, argv)) return *ended;
  twp::set_log_program("twp-loadgen");
  ::signal(SIGPIPE, SIG_IGN);
  const bool is_ramp = ramp->parsed();
  auto& args = is_ramp ? ramp_args : run_args;
  if (auto ok = twp::loadgen_cli::to_plan(args, is_ramp); !ok) return complain(ok.error());
  if (auto ok = negotiate(args.plan); !ok) return complain(ok.error());
  Interrupt interrupt;
  auto status = Session(args.plan, is_ramp).run(interrupt);
  return status ? *status : complain(status.error());
}

}  // namespace

int main(int argc, char** argv) { return twp::cli::guarded(kProgram, run, argc, argv); }
