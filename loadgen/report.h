// What the person reads: a line of progress, a table, remarks.
#pragma once

#include <string>
#include <vector>

#include "loadgen/plan.h"
#include "loadgen/runner.h"
#include "loadgen/step.h"

namespace twp::load {

/// "c=64  measuring 3.2/8.0 s  102,345 req/s  0 errors", without line ends.
std::string progress_line(const Progress& p);
/// What is loaded and how, one line.
std::string title(const Plan& plan);
std::string table_header(const Plan& plan);
std::string table_line(const Plan& plan, const Step& step);
/// Lines below the table of `run`: errors by kind, raw latency of an open loop, connection set-up.
std::string details(const Plan& plan, const Step& step);
/// Sustain and peak of a ramp.
std::string ramp_summary(const Plan& plan, const std::vector<Step>& steps);
/// Things that make the numbers doubtful, one line each: the generator's own CPU, a process that ended.
std::string warnings(const Plan& plan, const Step& step);
/// The server takes fewer requests at a time on a connection than were to be there; one line, empty when it does not.
std::string limit_warning(const Step& step);

}  // namespace twp::load
