# cmake --install: the programs, the library with its headers, a CMake package and shell completions.
#
# The package is self-contained: when libraries came from the folder of scripts/setup, their archives are
# installed beside ours (lib/twp), because the system's own may be too old to link with.

if(NOT TWP_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/twp")
set(_archive_dir "${CMAKE_INSTALL_LIBDIR}/twp")

if(TWP_PROGRAMS)
  install(TARGETS ${TWP_PROGRAMS} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/scripts/completions")
  install(DIRECTORY scripts/completions/ DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
    COMPONENT programs FILES_MATCHING PATTERN "*.bash")
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/LICENSE")
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/twp" COMPONENT programs)
endif()

# Third-party archives, and the file that turns them into twp_dep:: targets for a user of the package.
set(_deps "# Made by cmake/TwpInstall.cmake: the libraries that twp was built with.\n")
string(APPEND _deps "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n")
foreach(name IN LISTS TWP_DEP_NAMES)
  if(name STREQUAL "boost_test" OR name MATCHES "^brotli" OR name STREQUAL "event_extra")
    continue()
  endif()
  get_target_property(path twp_dep::${name} IMPORTED_LOCATION)
  get_target_property(link twp_dep::${name} INTERFACE_LINK_LIBRARIES)
  if(NOT link)
    set(link "")
  endif()
  list(TRANSFORM link REPLACE "^twp_glibc_shim$" "twp::glibc_shim")
  if(TWP_DEPS_ROOT AND path MATCHES "\\.a$")
    get_filename_component(file "${path}" NAME)
    install(FILES "${path}" DESTINATION "${_archive_dir}" COMPONENT library)
    set(location "\${PACKAGE_PREFIX_DIR}/${_archive_dir}/${file}")
  else()
    set(location "${path}")
  endif()
  string(APPEND _deps "if(NOT TARGET twp_dep::${name})
  add_library(twp_dep::${name} UNKNOWN IMPORTED)
  set_target_properties(twp_dep::${name} PROPERTIES IMPORTED_LOCATION \"${location}\"
    INTERFACE_LINK_LIBRARIES \"${link}\")
endif()\n")
endforeach()
string(APPEND _deps "if(NOT TARGET twp_dep::tomlplusplus) # headers that only twp's own sources include
  add_library(twp_dep::tomlplusplus INTERFACE IMPORTED)
endif()\n")
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/twpDependencies.cmake" CONTENT "${_deps}" @ONLY)

set(_targets ${TWP_MODULES})
list(REMOVE_ITEM _targets origin loadgen) # parts of the programs, not of the library
list(TRANSFORM _targets PREPEND twp_)
if(TARGET twp_glibc_shim)
  set_target_properties(twp_glibc_shim PROPERTIES EXPORT_NAME glibc_shim)
  list(APPEND _targets twp_glibc_shim)
endif()
install(TARGETS ${_targets} EXPORT twpTargets ARCHIVE DESTINATION "${_archive_dir}" COMPONENT library)
install(EXPORT twpTargets NAMESPACE twp:: DESTINATION "${_package_dir}" COMPONENT library)
install(DIRECTORY libtwp/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/twp" COMPONENT library
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(EXISTS "${PROJECT_SOURCE_DIR}/certs")
  install(DIRECTORY certs DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/twp" COMPONENT library
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/twpConfig.cmake.in" "${CMAKE_BINARY_DIR}/generated/twpConfig.cmake"
  INSTALL_DESTINATION "${_package_dir}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/generated/twpConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/twpConfig.cmake" "${CMAKE_BINARY_DIR}/generated/twpConfigVersion.cmake"
  "${CMAKE_BINARY_DIR}/generated/twpDependencies.cmake" DESTINATION "${_package_dir}" COMPONENT library)
