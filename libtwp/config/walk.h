// Going over all keys of a configuration without a file.
#pragma once

#include <string>
#include <vector>

#include "config/value.h"

namespace twp::config {

/// One key, for documentation and completion.
struct KeyRow {
  std::string path;      ///< "limits.max_head", "cluster.origin.url"
  Spec spec;
  std::string fallback;  ///< the default as TOML; empty: none
};

/// Every key the loader knows, in the order of save().
std::vector<KeyRow> key_rows();

/// The word of `words` nearest to `word` when it is a likely slip of the pen; empty otherwise.
std::string nearest(std::string_view word, const std::vector<std::string>& words);

}  // namespace twp::config
