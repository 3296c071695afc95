// Writing a configuration as TOML.
#pragma once

#include <string>

#include "config/config.h"

namespace twp::config {

/// Every key with its value, defaults included. Law: load_text(save(c)).config == c for every valid c.
std::string save(const Config& config);

}  // namespace twp::config
