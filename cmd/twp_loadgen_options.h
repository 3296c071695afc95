// The command line of twp-loadgen, turned into a Plan.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "loadgen/plan.h"

namespace twp::loadgen_cli {

/// Texts as typed; to_plan() gives them meaning.
struct Arguments {
  std::string url;
  unsigned concurrency = 1;
  std::string steps = "8,16,32,64";
  std::string duration = "8s", warmup = "2s", timeout = "30s";
  std::string body_size, read_rate, workload = "request", status = "2xx";
  std::string slo_errors, slo_p99;
  std::vector<std::string> headers, watch;
  bool no_resume = false;
  CLI::Option* verify = nullptr;
  load::Plan plan;
};

void add_options(CLI::App& command, Arguments& a, bool ramp);
Result<void> to_plan(Arguments& a, bool ramp);

}  // namespace twp::loadgen_cli
