// What is mistyped on a command line, said in the typist's words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace twp::cli {

/// What a command line that was not accepted is about.
struct Mistake {
  std::string what;  ///< "there is no option '--lisen'; did you mean '--listen'?"; empty: every word is known
  std::string help;  ///< "twp-proxy reverse --help": of the innermost command that was named
};

/// Looks for the first word that is no option and no command of `app`. Parsers name what is missing first; but who
/// mistypes --listen has not left it out.
Mistake find_mistake(const CLI::App& app, int argc, char** argv);

/// Edits that make `b` of `a`: insertions, deletions, replacements and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace twp::cli
