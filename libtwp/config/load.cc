#include "config/load.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

// toml++ asserts (and with NDEBUG lets clang assume) that a table header begins with a key, and reports it properly a few lines
// below: "[," in a file must be an error and nothing else.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.hpp>
#pragma pop_macro("NDEBUG")

#include "base/result.h"
#include "config/keys.h"
#include "config/walk.h"

namespace twp::config {
namespace {

struct Place {
  unsigned line = 1, column = 1;
  friend auto operator<=>(const Place&, const Place&) = default;
};

Place place_of(const toml::source_region& r) noexcept { return {r.begin.line, r.begin.column}; }

struct Found {
  Place at;
  std::string text;
};

// What all readers of one file share.
struct Report {
  std::vector<Found> errors;
  std::map<std::string, Place, std::less<>> places;  // of every table and value, by path

  void error(Place at, std::string text) { errors.push_back({at, std::move(text)}); }
  // The place of `path`, or of the nearest thing around it.
  Place nearest_place(std::string path) const {
    for (;;) {
      if (const auto i = places.find(path); i != places.end()) return i->second;
      const auto cut = path.find_last_of(".[");
      if (cut == std::string::npos) return {};
      path.resize(cut);
    }
  }
};

std::string_view found_text(const toml::node& n) noexcept {
  switch (n.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::floating_point: return "a fraction";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return "a date or time";
    default: return "something else";
  }
}

class Reader {
 public:
  Reader(const toml::table& table, std::string path, Report& report)
      : table_(table), path_(std::move(path)), report_(report) {
    report_.places[path_] = place_of(table.source());
  }

  template <class T>
  void value(const Spec& spec, T& field) {
    const toml::node* n = take(spec.name);
    if (n == nullptr) {
      if (spec.required) report_.error(place_of(table_.source()), path_to(spec.name) + ": is missing (expected " + expected(spec) + ")");
      return;
    }
    if (const auto wrong = assign(spec, field_of(field), *n)) report_.error(place_of(n->source()), path_to(spec.name) + ": " + *wrong);
  }
  template <class T>
  void table(std::string_view name, T& sub) {
    if (const toml::node* n = take(name)) read_table(*n, path_to(name), "a table [" + plain_path(name) + "]", sub);
  }
  template <class T>
  void optional_table(std::string_view name, std::optional<T>& sub) {
    if (const toml::node* n = take(name))
      read_table(*n, path_to(name), "a table [" + plain_path(name) + "]", sub.emplace());
  }
  template <class T>
  void array(std::string_view name, std::vector<T>& items) {
    const toml::node* n = take(name);
    if (n == nullptr) return;
    const std::string wanted = "a list of tables [[" + plain_path(name) + "]]";
    const toml::array* list = n->as_array();
    if (list == nullptr) return mismatch(*n, path_to(name), wanted);
    items.clear();
    for (const toml::node& element : *list) {
      const std::string path = path_to(name) + "[" + std::to_string(items.size()) + "]";
      read_table(element, path, wanted, items.emplace_back());
    }
  }
  // Every key that nobody asked for is a mistake.
  void finish() {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(known_, key.str()) != known_.end()) continue;
      const std::string near = nearest(key.str(), known_);
      report_.error(place_of(key.source()),
                    path_to(key.str()) + ": unknown key" + (near.empty() ? "" : ", did you mean '" + near + "'?"));
    }
  }

 private:
  const toml::node* take(std::string_view name) {
    known_.emplace_back(name);
    const toml::node* n = table_.get(name);
    if (n != nullptr) report_.places[path_to(name)] = place_of(n->source());
    return n;
  }
  std::string path_to(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  // "cluster.origin" for "cluster[2].origin".
  std::string plain_path(std::string_view name) const {
    std::string out;
    bool inside = false;
    for (const char c : path_to(name)) {
      if (c == '[') inside = true;
      if (!inside) out += c;
      if (c == ']') inside = false;
    }
    return out;
  }
  void mismatch(const toml::node& n, const std::string& path, const std::string& wanted) {
    report_.error(place_of(n.source()), path + ": expected " + wanted);
  }
  template <class T>
  void read_table(const toml::node& n, const std::string& path, const std::string& wanted, T& sub) {
    const toml::table* t = n.as_table();
    if (t == nullptr) return mismatch(n, path, wanted);
    Reader inner(*t, path, report_);
    keys(inner, sub);
    inner.finish();
  }
  std::optional<std::string> assign(const Spec& spec, Field field, const toml::node& n) {
    if (const auto* s = n.as_string()) return assign_string(spec, field, s->get());
    if (const auto* i = n.as_integer()) return assign_number(spec, field, i->get());
    if (const auto* b = n.as_boolean()) return assign_bool(spec, field, b->get());
    const toml::array* list = n.as_array();
    if (list == nullptr || spec.kind != Kind::list)
      return "expected " + expected(spec) + ", found " + std::string(found_text(n));
    std::vector<std::string> items;
    for (const toml::node& element : *list) {
      const auto* s = element.as_string();
      if (s == nullptr) return "expected " + expected(spec) + ", element " + std::to_string(items.size() + 1) + " is no string";
      items.push_back(s->get());
    }
    return assign_list(spec, field, std::move(items));
  }

  const toml::table& table_;
  std::string path_;
  Report& report_;
  std::vector<std::string> known_;
};

std::vector<std::string> lines(std::vector<Found> errors, std::string_view file) {
  std::ranges::stable_sort(errors, {}, &Found::at);
  std::vector<std::string> out;
  for (const Found& e : errors)
    out.push_back(std::string(file) + ":" + std::to_string(e.at.line) + ":" + std::to_string(e.at.column) + ": " + e.text);
  return out;
}

// toml++ ends some messages with a full stop or breaks them over lines.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\n' || c == '\r' ? ' ' : c;
  while (!out.empty() && (out.back() == '.' || out.back() == ' ')) out.pop_back();
  return out;
}

}  // namespace

Loaded load_text(std::string_view toml, std::string_view file, MoreChecks more) {
  Loaded out;
  Report report;
  try {
    const toml::table root = toml::parse(toml, std::string(file));
    Reader reader(root, "", report);
    keys(reader, out.config);
    reader.finish();
  } catch (const toml::parse_error& e) {
    report.error(place_of(e.source()), "not TOML: " + one_line(e.description()));
  }
  // A half-read configuration would only give errors that follow from the first ones.
  if (report.errors.empty()) {
    std::vector<Problem> problems = validate(out.config);
    if (more != nullptr) std::ranges::move(more(out.config), std::back_inserter(problems));
    for (const Problem& p : problems) report.error(report.nearest_place(p.path), p.path.empty() ? p.what : p.path + ": " + p.what);
  }
  out.errors = lines(std::move(report.errors), file);
  return out;
}

Loaded load_file(const std::string& file, MoreChecks more) {
  constexpr std::size_t kMax = 16 << 20;
  const auto failed = [&](const std::string& why) { return Loaded{{}, {file + ": " + why}}; };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> f(std::fopen(file.c_str(), "rbe"), &std::fclose);
  if (f == nullptr) return failed("cannot read: " + errno_text(errno));
  std::string text;
  char buffer[16 * 1024];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, f.get())) {
    text.append(buffer, n);
    if (text.size() > kMax) return failed("larger than 16 MiB");
  }
  if (std::ferror(f.get()) != 0) return failed("cannot read: " + errno_text(errno));
  return load_text(text, file, more);
}

}  // namespace twp::config
