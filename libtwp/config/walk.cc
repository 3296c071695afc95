#include "config/walk.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/ascii.h"
#include "config/keys.h"
#include "config/load.h"

namespace twp::config {
namespace {

std::string joined(const std::string& prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
}

class Lister {
 public:
  explicit Lister(std::vector<KeyRow>& rows, std::string prefix = {}) : rows_(rows), prefix_(std::move(prefix)) {}

  template <class T>
  void value(const Spec& spec, T& field) {
    rows_.push_back({joined(prefix_, spec.name), spec,
                     spec.required ? std::string() : toml_text(spec, field_of(field)).value_or("")});
  }
  template <class T>
  void table(std::string_view name, T& sub) {
    Lister inner(rows_, joined(prefix_, name));
    keys(inner, sub);
  }
  template <class T>
  void optional_table(std::string_view name, std::optional<T>&) {
    T fresh;
    table(name, fresh);
  }
  template <class T>
  void array(std::string_view name, std::vector<T>&) {
    T fresh;
    table(name, fresh);
  }

 private:
  std::vector<KeyRow>& rows_;
  std::string prefix_;
};

// Finds the key `path` and stores `value` in each place that has it.
class Setter {
 public:
  Setter(std::string_view path, std::string_view value) : path_(path), value_(value) {}

  template <class T>
  void value(const Spec& spec, T& field) {
    if (path_ != spec.name) return;
    found_ = true;
    if (const auto wrong = assign_argument(spec, field_of(field), value_)) error_ = *wrong;
  }
  template <class T>
  void table(std::string_view name, T& sub) {
    if (!enter(name)) return;
    const std::string_view outer = path_;
    path_.remove_prefix(name.size() + 1);
    keys(*this, sub);
    path_ = outer;
  }
  template <class T>
  void optional_table(std::string_view name, std::optional<T>& sub) {
    if (enter(name) && sub) table(name, *sub);
  }
  template <class T>
  void array(std::string_view name, std::vector<T>& items) {
    if (!enter(name)) return;
    for (T& item : items) table(name, item);
  }

  bool found() const noexcept { return found_; }
  const std::string& error() const noexcept { return error_; }

 private:
  bool enter(std::string_view name) const noexcept {
    return path_.size() > name.size() && path_.starts_with(name) && path_[name.size()] == '.';
  }

  std::string_view path_, value_;
  bool found_ = false;
  std::string error_;
};

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = diagonal + (to_lower(a[i - 1]) == to_lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, cost});
    }
  }
  return row.back();
}

}  // namespace

std::vector<KeyRow> key_rows() {
  std::vector<KeyRow> rows;
  Config config;
  Lister lister(rows);
  keys(lister, config);
  return rows;
}

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  if (word.size() > 64) return {};
  std::string best;
  std::size_t least = word.size() / 3 + 1;
  for (const std::string& w : words) {
    const std::size_t d = distance(word, w);
    if (d <= least && (best.empty() || d < least)) {
      least = d;
      best = w;
    }
  }
  return best;
}

std::string set(Config& config, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return "'" + std::string(assignment) + "': expected KEY=VALUE such as limits.max_head=128KiB";
  const std::string key(trim_ows(assignment.substr(0, equals)));
  Setter setter(key, trim_ows(assignment.substr(equals + 1)));
  keys(setter, config);
  if (!setter.error().empty()) return key + ": " + setter.error();
  if (setter.found()) return {};
  std::vector<std::string> known;
  for (const KeyRow& row : key_rows()) known.push_back(row.path);
  if (std::ranges::find(known, key) != known.end()) return key + ": there is nothing to set it on";
  const std::string near = nearest(key, known);
  return key + ": unknown key" + (near.empty() ? std::string() : ", did you mean '" + near + "'?");
}

}  // namespace twp::config
