// What the main functions of all programs have in common: how they parse, complain and end.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace twp::cli {

/// Writes "PROGRAM: what" to standard error as one line, whatever `what` holds: control characters become blanks or "?",
/// so that nothing that was typed or read reaches a terminal as a command. Returns `status`.
int complain(std::string_view program, std::string_view what, int status);
/// Status 2 for bad usage or configuration, else 1.
int complain(std::string_view program, const Error& e);

/// Parses the command line. A value is the status to exit with at once: after --help, --version or a mistake.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// Flushes standard output: `status`, or 1 with a complaint when it could not be written.
int finish(std::string_view program, int status);

/// The whole of main(): an exception that leaves `run` is a failure with status 1.
int guarded(std::string_view program, int (*run)(int, char**), int argc, char** argv);

}  // namespace twp::cli
