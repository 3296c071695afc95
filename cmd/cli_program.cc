#include "cmd/cli_program.h"

#include <cstdio>
#include <string>

#include "cmd/cli_mistake.h"

namespace twp::cli {
namespace {

/// CLI11 says "Could not convert: --days = x".
std::string conversion_text(std::string_view what) {
  const std::size_t colon = what.find(": ");
  const std::size_t equals = what.find(" = ", colon == std::string_view::npos ? 0 : colon);
  if (colon == std::string_view::npos || equals == std::string_view::npos) return std::string(what);
  return std::string(what.substr(colon + 2, equals - colon - 2)) + ": expected a number, found '" +
         std::string(what.substr(equals + 3)) + "'";
}

std::string explain(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  Mistake m = find_mistake(app, argc, argv);
  if (m.what.empty()) m.what = dynamic_cast<const CLI::ConversionError*>(&e) != nullptr ? conversion_text(e.what()) : e.what();
  return m.what + (m.what.ends_with('?') ? " see " : "; see ") + m.help;
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
    return complain(app.get_name(), explain(app, e, argc, argv), 2);
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
