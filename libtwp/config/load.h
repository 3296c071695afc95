// Reading a configuration: TOML files and single `KEY=VALUE` overrides.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/validate.h"

namespace twp::config {

/// A configuration, or what is wrong with it. `config` is meaningful only when `errors` is empty.
struct Loaded {
  Config config;
  /// One line each, "FILE:LINE:COLUMN: KEY: what was expected", in the order of the file. Columns count
  /// characters from 1.
  std::vector<std::string> errors;

  bool ok() const noexcept { return errors.empty(); }
};

/// Checks beyond validate(), of what this folder knows nothing about.
using MoreChecks = std::vector<Problem> (*)(const Config&);

/// Reads TOML text: unknown keys, wrong types, values out of range and everything that validate() and `more` (may be null)
/// find, each with the place of the key or value. `file` stands for the text in messages.
Loaded load_text(std::string_view toml, std::string_view file, MoreChecks more = nullptr);

/// The same for a file of at most 16 MiB. An unreadable file is one error, "FILE: cause".
Loaded load_file(const std::string& file, MoreChecks more = nullptr);

/// Sets one key from "KEY=VALUE" as on the command line: `limits.max_head=128KiB`, `cluster.max_idle=8` (every
/// cluster), `forwarding.trusted=10.0.0.0/8,::1` (lists by comma). Returns a line that says what is wrong, or
/// an empty string. Does not validate the whole.
std::string set(Config& config, std::string_view assignment);

}  // namespace twp::config
