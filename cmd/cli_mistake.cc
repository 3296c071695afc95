#include "cmd/cli_mistake.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace twp::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string unknown(std::string_view kind, const std::string& word, const std::vector<std::string>& names) {
  std::string text = "there is no " + std::string(kind) + " '" + word + "'";
  const auto distance = [&](const std::string& name) { return edit_distance(word, name); };
  const auto nearest = std::ranges::min_element(names, {}, distance);
  // Further away it is another word, and a wrong guess is worse than none.
  if (nearest == names.end() || distance(*nearest) > 2 || distance(*nearest) * 2 >= word.size()) return text;
  return text + "; did you mean '" + *nearest + "'?";
}

/// How many of the words behind `option` are its values.
int values_behind(const CLI::Option& option, int argc, char** argv, int at) {
  if (const int least = option.get_items_expected_min(); least != 0) return least;
  const bool may = option.get_items_expected_max() != 0;
  return may && at + 1 < argc && argv[at + 1][0] != '-' ? 1 : 0;
}

}  // namespace

Mistake find_mistake(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  Mistake m{{}, app.get_name() + " --help"};
  for (int i = 1; i < argc && m.what.empty(); ++i) {
    const std::string word = argv[i];
    if (word == "--") break;
    if (word.size() < 2 || word[0] != '-') {
      const auto subs = commands(*at);
      const auto named = std::ranges::find(subs, word, &CLI::App::get_name);
      if (named != subs.end()) {
        at = *named;
        m.help.insert(m.help.size() - std::string_view("--help").size(), word + " ");
      } else if (at->get_require_subcommand_min() != 0) {
        std::vector<std::string> names;
        for (const CLI::App* sub : subs) names.push_back(sub->get_name());
        m.what = unknown("command", word, names);
      }
      continue;
    }
    const bool is_long = word[1] == '-';
    const std::size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string name =
        is_long ? word.substr(0, equals) : word.substr(0, 2);  // -c64 is -c with its value
    if (const CLI::Option* option = at->get_option_no_throw(name); option == nullptr)
      m.what = unknown("option", name, option_names(*at));
    else if (equals == std::string::npos && (is_long || word.size() == 2))
      i += values_behind(*option, argc, argv, i);
  }
  return m;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the matrix of all prefixes: a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace twp::cli
