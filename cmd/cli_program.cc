#include "cmd/cli_program.h"

#include <cstdio>
#include <string>

namespace twp::cli {
namespace {

/// The first word of the command line that should have been a subcommand of `app` and is none; empty when there is none.
std::string unknown_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-' || app.get_require_subcommand_min() == 0) return {};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == argv[1]) return {};
  return argv[1];
}

/// CLI11 says "Could not convert: --days = x".
std::string conversion_text(std::string_view what) {
  const std::size_t colon = what.find(": ");
  const std::size_t equals = what.find(" = ", colon == std::string_view::npos ? 0 : colon);
  if (colon == std::string_view::npos || equals == std::string_view::npos) return std::string(what);
  return std::string(what.substr(colon + 2, equals - colon - 2)) + ": expected a number, found '" +
         std::string(what.substr(equals + 3)) + "'";
}

std::string explain(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  if (const std::string unknown = unknown_subcommand(app, argc, argv); !unknown.empty())
    return "there is no command '" + unknown + "'";
  return dynamic_cast<const CLI::ConversionError*>(&e) != nullptr ? conversion_text(e.what()) : e.what();
}

}  // namespace

int complain(std::string_view program, std::string_view what, int status) {
  std::string line(program);
  line += ": ";
  for (const char c : what) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += !control ? c : c == '\n' || c == '\t' ? ' ' : '?';
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return status;
}

int complain(std::string_view program, const Error& e) {
  return complain(program, e.what, e.fault == Fault::bad_config ? 2 : 1);
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return complain(app.get_name(), explain(app, e, argc, argv) + "; see " + app.get_name() + " --help", 2);
  }
}

int finish(std::string_view program, int status) {
  if (std::fflush(stdout) != 0) return complain(program, "cannot write to standard output", 1);
  return status;
}

int guarded(std::string_view program, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    return complain(program, e.what(), 1);
  }
}

}  // namespace twp::cli
