// What `--version` prints, for all four programs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace twp::cli {

/// "twp-proxy 0.1.0 (1a2b3c4d5e6f, Release, GNU 12.2.0)" and a line with the versions of the libraries.
/// `libraries` picks those the program contains by the names of cmake/TwpDependencies.cmake ("crypto",
/// "nghttp2"); none picks all.
std::string version_text(std::string_view program, std::initializer_list<std::string_view> libraries = {});

}  // namespace twp::cli
