#pragma once
// What `--version` prints. Filled in by the build (cmake/TwpBuildInfo.cmake).
namespace twp {
extern const char* const kVersion;    // "0.1.0"
extern const char* const kCommit;     // "1a2b3c4d5e6f", with "-dirty" when files differ from it; "unknown" outside git
extern const char* const kLibraries;  // "crypto 3.5.9, event 2.1.13, ..."
extern const char* const kBuild;      // "Release, GNU 12.2.0"
}  // namespace twp
