# Options, compilers' flags and the launcher. Presets in CMakePresets.json set these.

option(TWP_STATIC "link the programs as static position-independent executables (-static-pie)" OFF)
option(TWP_LTO "optimise across files when linking" OFF)
option(TWP_STRIP "drop symbols when linking the programs" OFF)
option(TWP_PROFILE "keep frame pointers and line tables, for perf and callgrind" OFF)
option(TWP_HARDEN "stack protector and checked libc calls" ON)
option(TWP_FUZZ "build the libFuzzer targets (clang)" OFF)
option(TWP_UNITY "compile each folder of the library as one file, where its names allow" OFF)
option(TWP_PCH "precompile the test headers" OFF)
option(TWP_WERROR "treat warnings as errors" OFF)
option(TWP_CCACHE "use ccache when it is installed" ON)
option(TWP_INSTALL "make the install target" ON)
set(TWP_SANITIZE "" CACHE STRING "sanitizers: address;undefined or thread")
set(TWP_MARCH "" CACHE STRING "value for -march (default: any x86-64 or the compiler's own choice)")
set(TWP_DEPS_DIR "" CACHE PATH "folder filled by scripts/setup (default: .deps)")
if(TWP_FUZZ)
  option(TWP_TESTS "build the tests" OFF)
else()
  option(TWP_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)

if(TWP_SANITIZE)
  string(REPLACE "," ";" _sanitizers "${TWP_SANITIZE}")
  if(TWP_STATIC)
    message(FATAL_ERROR "twp: a sanitizer needs a dynamic build: -DTWP_STATIC=OFF")
  endif()
endif()

# ccache: the same file in another checkout or worktree is a hit (base_dir), precompiled headers too.
if(TWP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TWP_CCACHE_PROGRAM ccache)
  mark_as_advanced(TWP_CCACHE_PROGRAM)
  if(TWP_CCACHE_PROGRAM)
    set(_launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" "${TWP_CCACHE_PROGRAM}")
    set(CMAKE_C_COMPILER_LAUNCHER "${_launcher}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${_launcher}")
  endif()
endif()

# twp_flags carries everything that the project's own code is compiled and linked with.
add_library(twp_flags INTERFACE)
target_compile_features(twp_flags INTERFACE cxx_std_23)

set(_gnu "$<CXX_COMPILER_ID:GNU>")
target_compile_options(twp_flags INTERFACE
  -fPIE -fno-plt -pipe
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wformat=2 -Wundef -Wvla
  -Wimplicit-fallthrough -Wextra-semi -Wold-style-cast -Wredundant-decls -Wunused
  -Wno-error=deprecated-declarations # a newer version of a library must not break the build
  -Wno-missing-field-initializers # C structs of callbacks are filled by name
  $<${_gnu}:-Wduplicated-cond -Wlogical-op -Wsuggest-override -Wcomma-subscript>
  # g++ 12 reports these for correct uses of std::string and std::vector once it has inlined enough.
  $<${_gnu}:-Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-free-nonheap-object>
  $<${_gnu}:-Wno-error=maybe-uninitialized -Wno-error=null-dereference -Wno-error=unused-result -Wno-error=dangling-pointer>
  $<$<NOT:${_gnu}>:-Winconsistent-missing-override -Wno-unknown-warning-option -Wno-gnu-zero-variadic-macro-arguments>)
if(TWP_WERROR)
  target_compile_options(twp_flags INTERFACE -Werror)
endif()
target_compile_options(twp_flags INTERFACE -fdiagnostics-color=auto)

if(TWP_MARCH)
  target_compile_options(twp_flags INTERFACE "-march=${TWP_MARCH}")
endif()
if(TWP_PROFILE)
  target_compile_options(twp_flags INTERFACE -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer)
endif()
if(TWP_HARDEN AND NOT TWP_SANITIZE AND NOT TWP_FUZZ)
  target_compile_options(twp_flags INTERFACE -fstack-protector-strong)
  if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
    target_compile_options(twp_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR TWP_SANITIZE OR TWP_FUZZ)
  target_compile_definitions(twp_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# No -g here: the presets have -g1, and tracking variables makes g++ several times slower with sanitizers.
if(TWP_SANITIZE)
  string(REPLACE ";" "," _list "${_sanitizers}")
  # vptr needs a pipe of its own for every check: a program that has run out of descriptors, which tests do on purpose,
  # would end in the sanitizer.
  target_compile_options(twp_flags INTERFACE "-fsanitize=${_list}" -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(twp_flags INTERFACE "-fsanitize=${_list}")
endif()
if(TWP_FUZZ)
  target_compile_options(twp_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(twp_flags INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(twp_flags INTERFACE TWP_FUZZ=1)
endif()

if(TWP_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT _lto OUTPUT _why LANGUAGES CXX)
  if(_lto)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
  else()
    message(WARNING "twp: the compiler cannot optimise across files: ${_why}")
  endif()
endif()

# The linker option set of the programs (and tests).
target_link_options(twp_flags INTERFACE -Wl,-z,relro,-z,now -Wl,--gc-sections)
if(TWP_STATIC)
  target_link_options(twp_flags INTERFACE -static-pie)
  # The archives can call getaddrinfo and dlopen; twp never makes them do so, but ld warns for each.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -Wl,--no-warnings TWP_LINKER_HAS_NO_WARNINGS)
  if(TWP_LINKER_HAS_NO_WARNINGS)
    target_link_options(twp_flags INTERFACE -Wl,--no-warnings)
  endif()
else()
  target_link_options(twp_flags INTERFACE -pie)
endif()
if(TWP_STRIP)
  target_link_options(twp_flags INTERFACE -s)
endif()

