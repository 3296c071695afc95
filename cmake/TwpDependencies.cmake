# Third-party libraries as imported targets twp_dep::NAME, from the folder that scripts/setup fills
# (<deps>/root) or from the system. Static archives are preferred in both cases: a binary is then one file,
# and archives from a newer Debian work with an older C library (with glibc_shim.c).
#
# Folder, the first that scripts/setup has filled: -DTWP_DEPS_DIR, $TWP_DEPS_DIR, .deps of the checkout, and for a linked git worktree
# .deps of its main checkout. scripts/lib/common.sh has the same rule.

include(CheckSymbolExists)
include(CheckCSourceCompiles)
find_package(Threads REQUIRED)

function(_twp_find_deps_root out)
  set(candidates "${TWP_DEPS_DIR}" "$ENV{TWP_DEPS_DIR}" "${PROJECT_SOURCE_DIR}/.deps")
  if(EXISTS "${PROJECT_SOURCE_DIR}/.git" AND NOT IS_DIRECTORY "${PROJECT_SOURCE_DIR}/.git")
    file(STRINGS "${PROJECT_SOURCE_DIR}/.git" line LIMIT_COUNT 1)
    if(line MATCHES "^gitdir: (.*)/\\.git/worktrees/")
      list(APPEND candidates "${CMAKE_MATCH_1}/.deps")
    endif()
  endif()
  foreach(candidate IN LISTS candidates)
    if(candidate AND EXISTS "${candidate}/root/.twp-deps")
      get_filename_component(root "${candidate}/root" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}")
      # Kept, because a build that configures again may run without the variable in its environment.
      set(TWP_DEPS_DIR "${candidate}" CACHE PATH "folder filled by scripts/setup (default: .deps)" FORCE)
      set(${out} "${root}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

_twp_find_deps_root(TWP_DEPS_ROOT)
if(TWP_DEPS_ROOT)
  message(STATUS "twp: libraries from ${TWP_DEPS_ROOT}")
else()
  message(STATUS "twp: libraries from the system")
endif()

set(TWP_DEP_NAMES "" CACHE INTERNAL "libraries with a file, in order of definition")
set(TWP_DEP_VERSIONS "" CACHE INTERNAL "NAME=VERSION of each library")

# Sets OUT to the path of library NAME.
function(_twp_find_library out name)
  string(MAKE_C_IDENTIFIER "TWP_LIB_${name}" var)
  # A cached path of another folder must not survive a change of folder.
  if(DEFINED ${var} AND NOT "${_TWP_LAST_DEPS_ROOT}" STREQUAL "${TWP_DEPS_ROOT}")
    unset(${var} CACHE)
  endif()
  if(TWP_DEPS_ROOT)
    find_library(${var} NAMES lib${name}.a PATHS "${TWP_DEPS_ROOT}/usr/lib" "${TWP_DEPS_ROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}"
      NO_DEFAULT_PATH)
  endif()
  find_library(${var} NAMES lib${name}.a ${name})
  mark_as_advanced(${var})
  if(NOT ${var})
    message(FATAL_ERROR "twp: library '${name}' not found. Run scripts/setup, then configure again.")
  endif()
  if(TWP_STATIC AND NOT ${var} MATCHES "\\.a$")
    message(FATAL_ERROR "twp: TWP_STATIC needs lib${name}.a, found only ${${var}}. "
      "Run scripts/setup, or configure with -DTWP_STATIC=OFF.")
  endif()
  set(${out} "${${var}}" PARENT_SCOPE)
endfunction()

# twp_import(TARGET [LIB name] [VIEW folder of scripts/setup with its headers] [HEADER header that must be there]
#            [VERSION minimum header macro] [LINK what it needs...])
# Makes twp_dep::TARGET from libNAME (none: headers only).
function(twp_import target)
  cmake_parse_arguments(A "" "LIB;VIEW;HEADER" "VERSION;LINK" ${ARGN})
  if(A_LIB)
    _twp_find_library(path ${A_LIB})
    add_library(twp_dep::${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(twp_dep::${target} PROPERTIES IMPORTED_LOCATION "${path}")
    set_property(CACHE TWP_DEP_NAMES APPEND PROPERTY VALUE ${target})
  else()
    add_library(twp_dep::${target} INTERFACE IMPORTED GLOBAL)
  endif()
  set(include)
  if(A_VIEW AND TWP_DEPS_ROOT AND EXISTS "${TWP_DEPS_ROOT}/view/${A_VIEW}/${A_HEADER}")
    set(include "${TWP_DEPS_ROOT}/view/${A_VIEW}")
    set_target_properties(twp_dep::${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include}")
  elseif(A_HEADER)
    string(MAKE_C_IDENTIFIER "TWP_INC_${target}" var)
    find_path(${var} NAMES "${A_HEADER}")
    mark_as_advanced(${var})
    if(NOT ${var})
      message(FATAL_ERROR "twp: header '${A_HEADER}' not found. Run scripts/setup, then configure again.")
    endif()
    set(include "${${var}}")
    if(NOT include STREQUAL "/usr/include")
      set_target_properties(twp_dep::${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include}")
    endif()
  endif()
  if(A_LINK)
    set_property(TARGET twp_dep::${target} PROPERTY INTERFACE_LINK_LIBRARIES "${A_LINK}")
  endif()
  if(A_VERSION)
    list(GET A_VERSION 0 minimum)
    list(GET A_VERSION 1 header)
    list(GET A_VERSION 2 macro)
    if(NOT EXISTS "${include}/${header}")
      foreach(dir "${include}/${CMAKE_LIBRARY_ARCHITECTURE}" /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
        if(EXISTS "${dir}/${header}")
          set(include "${dir}")
        endif()
      endforeach()
    endif()
    file(STRINGS "${include}/${header}" line REGEX "define[ \t]+${macro}[ \t]+\"")
    if(NOT line MATCHES "\"([0-9][0-9.]*)")
      message(FATAL_ERROR "twp: no version in ${include}/${header}")
    endif()
    if(CMAKE_MATCH_1 VERSION_LESS minimum)
      message(FATAL_ERROR "twp: ${target} ${CMAKE_MATCH_1} is too old, ${minimum} or newer is needed. "
        "Run scripts/setup, then configure again.")
    endif()
    set_property(CACHE TWP_DEP_VERSIONS APPEND PROPERTY VALUE "${target}=${CMAKE_MATCH_1}")
  endif()
endfunction()

# Does this C library have what archives built against glibc 2.38 and later call?
check_c_source_compiles("
  extern long __isoc23_strtol(const char *, char **, int);
  int main(int argc, char **argv) { return (int)__isoc23_strtol(argv[argc - 1], 0, 10); }" TWP_HAVE_GLIBC_2_38)
set(shim)
if(NOT TWP_HAVE_GLIBC_2_38)
  add_library(twp_glibc_shim STATIC "${PROJECT_SOURCE_DIR}/cmake/glibc_shim.c")
  set_target_properties(twp_glibc_shim PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  target_compile_options(twp_glibc_shim PRIVATE -fPIE)
  set(shim twp_glibc_shim)
endif()

twp_import(zlib LIB z)
twp_import(zstd LIB zstd)
twp_import(crypto LIB crypto VIEW openssl HEADER openssl/ssl.h
  VERSION 3.5 openssl/opensslv.h OPENSSL_VERSION_STR
  LINK twp_dep::zlib twp_dep::zstd ${CMAKE_DL_LIBS} Threads::Threads ${shim})
twp_import(ssl LIB ssl VIEW openssl HEADER openssl/ssl.h LINK twp_dep::crypto)
twp_import(event LIB event_core VIEW event HEADER event2/event.h
  VERSION 2.1.12 event2/event-config.h EVENT__VERSION LINK ${shim})
twp_import(event_extra LIB event_extra VIEW event HEADER event2/http.h LINK twp_dep::event)
twp_import(cares LIB cares VIEW cares HEADER ares.h VERSION 1.18 ares_version.h ARES_VERSION_STR LINK ${shim})
if(NOT TWP_LIB_cares MATCHES "\\.so")
  set_target_properties(twp_dep::cares PROPERTIES INTERFACE_COMPILE_DEFINITIONS CARES_STATICLIB)
endif()
twp_import(nghttp2 LIB nghttp2 VIEW nghttp2 HEADER nghttp2/nghttp2.h
  VERSION 1.60 nghttp2/nghttp2ver.h NGHTTP2_VERSION)
twp_import(nghttp3 LIB nghttp3 VIEW nghttp3 HEADER nghttp3/nghttp3.h
  VERSION 1.10 nghttp3/version.h NGHTTP3_VERSION)
twp_import(ngtcp2 LIB ngtcp2 VIEW ngtcp2 HEADER ngtcp2/ngtcp2.h
  VERSION 1.20 ngtcp2/version.h NGTCP2_VERSION)
twp_import(ngtcp2_crypto_ossl LIB ngtcp2_crypto_ossl VIEW ngtcp2 HEADER ngtcp2/ngtcp2_crypto_ossl.h
  LINK twp_dep::ngtcp2 twp_dep::ssl)
twp_import(brotli_common LIB brotlicommon)
twp_import(brotli_dec LIB brotlidec VIEW brotli HEADER brotli/decode.h LINK twp_dep::brotli_common)
twp_import(brotli_enc LIB brotlienc VIEW brotli HEADER brotli/encode.h LINK twp_dep::brotli_common)
twp_import(cli11 VIEW cli11 HEADER CLI/CLI.hpp VERSION 2.1 CLI/Version.hpp CLI11_VERSION)
twp_import(tomlplusplus VIEW tomlplusplus HEADER toml++/toml.hpp)
set_target_properties(twp_dep::tomlplusplus PROPERTIES INTERFACE_COMPILE_DEFINITIONS TOML_HEADER_ONLY=1)

if(TWP_TESTS)
  twp_import(boost_test LIB boost_unit_test_framework HEADER boost/test/unit_test.hpp)
  if(TWP_LIB_boost_unit_test_framework MATCHES "\\.so")
    set_target_properties(twp_dep::boost_test PROPERTIES INTERFACE_COMPILE_DEFINITIONS BOOST_TEST_DYN_LINK)
  endif()
endif()
set(_TWP_LAST_DEPS_ROOT "${TWP_DEPS_ROOT}" CACHE INTERNAL "")
string(REPLACE ";" " " _versions "${TWP_DEP_VERSIONS}")
message(STATUS "twp: ${_versions}")
