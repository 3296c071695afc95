// Names of congestion controls, as this machine's kernel knows them.
#pragma once

#include <string>

namespace twp::cli {

/// What is wrong with `name` and which there are; empty: nothing (so with an empty name, which is the system's own). Opens no
/// socket.
std::string congestion_problem(const std::string& name);

}  // namespace twp::cli
