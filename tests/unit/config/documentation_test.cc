// docs/configuration.md and the code say the same: every key, type, default and range, in both directions.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "config/load.h"
#include "config/walk.h"

using namespace twp::config;

namespace {

std::string documentation() {
  const auto root = std::filesystem::path(TWP_TEST_DATA_DIR).parent_path().parent_path();
  std::ifstream in(root / "docs" / "configuration.md");
  BOOST_REQUIRE(in.good());
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// "type | default | range" by key.
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> out;
  std::istringstream in(documentation());
  const std::regex row(R"(^\| `([a-z0-9_.]+)` \| ([a-z]+) \| (.*?) \| (.*?) \| .+ \|$)");
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (!std::regex_match(line, m, row)) continue;
    const bool fresh = out.emplace(m[1], m[2].str() + " | " + m[3].str() + " | " + m[4].str()).second;
    BOOST_TEST(fresh, m[1].str() + " is documented twice");
  }
  return out;
}

std::string row_text(const KeyRow& row) {
  const std::string fallback = row.spec.required ? "required" : row.fallback.empty() ? "-" : "`" + row.fallback + "`";
  const std::string range = range_text(row.spec);
  return std::string(kind_text(row.spec.kind)) + " | " + fallback + " | " + (range.empty() ? "-" : range);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(documentation_of_keys)

BOOST_AUTO_TEST_CASE(every_key_is_documented_as_it_is) {
  const auto docs = documented();
  for (const KeyRow& row : key_rows()) {
    const auto i = docs.find(row.path);
    BOOST_TEST((i != docs.end()), row.path << " is not documented");
    if (i != docs.end()) BOOST_TEST(i->second == row_text(row), row.path << ": " << i->second << " but the code has " << row_text(row));
  }
}

BOOST_AUTO_TEST_CASE(every_documented_key_exists) {
  std::map<std::string, int> known;
  for (const KeyRow& row : key_rows()) ++known[row.path];
  const auto docs = documented();
  BOOST_TEST(docs.size() == known.size());
  for (const auto& [key, text] : docs) BOOST_TEST(known.contains(key), key << " does not exist");
}

// Reads the example as it stands. The certificate does not exist here, and nothing else may be wrong.
BOOST_AUTO_TEST_CASE(the_example_is_right) {
  const std::string all = documentation();
  const auto begin = all.find("```toml\n") + 8;
  const Loaded l = load_text(all.substr(begin, all.find("```", begin) - begin), "example");
  BOOST_REQUIRE(l.errors.size() == 2);
  for (const std::string& e : l.errors) BOOST_TEST(e.find("No such file") != std::string::npos, e);
}

BOOST_AUTO_TEST_SUITE_END()
