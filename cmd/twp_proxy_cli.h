// The flags of twp-proxy.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/twp_proxy_config.h"
#include "cmd/twp_proxy_reload.h"

namespace twp::cli {

/// Adds subcommands, flags and examples to `app`; parsing it fills `a` and `r`, which outlive it.
void describe(CLI::App& app, ProxyArguments& a, ReloadArguments& r);

}  // namespace twp::cli
