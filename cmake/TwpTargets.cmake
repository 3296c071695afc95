# twp_module(NAME [ROOT] [DEPS module...] [THIRD library...] [THIRD_PUBLIC library...])
#
# Makes the target twp_NAME (alias twp::NAME) from all *.cc of libtwp/NAME, or of NAME at the top of the
# repository with ROOT. A folder without *.cc becomes an INTERFACE library; so does an absent one. New
# files are noticed by the next build. DEPS are other modules. THIRD are third-party libraries: only this
# folder sees their headers; THIRD_PUBLIC are for libraries that the folder's own headers must include.
set(TWP_MODULES "" CACHE INTERNAL "all modules in order of definition")

# Files whose local names clash with those of a neighbour.
set_source_files_properties("${PROJECT_SOURCE_DIR}/libtwp/base/arena.cc" "${PROJECT_SOURCE_DIR}/libtwp/config/url.cc"
  "${PROJECT_SOURCE_DIR}/libtwp/net/tcp_transport.cc"
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(twp_module name)
  cmake_parse_arguments(A "ROOT" "" "DEPS;THIRD;THIRD_PUBLIC" ${ARGN})
  if(A_ROOT)
    set(dir "${PROJECT_SOURCE_DIR}/${name}")
    set(include "${PROJECT_SOURCE_DIR}")
  else()
    set(dir "${PROJECT_SOURCE_DIR}/libtwp/${name}")
    set(include "${PROJECT_SOURCE_DIR}/libtwp")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.cc")
  file(GLOB headers CONFIGURE_DEPENDS "${dir}/*.h" "${dir}/*.def")

  set(target twp_${name})
  set(deps ${A_DEPS})
  list(TRANSFORM deps PREPEND twp_)
  set(third ${A_THIRD})
  list(TRANSFORM third PREPEND twp_dep::)
  set(third_public ${A_THIRD_PUBLIC})
  list(TRANSFORM third_public PREPEND twp_dep::)

  if(sources)
    add_library(${target} STATIC ${sources} ${headers})
    if(TWP_UNITY AND NOT name STREQUAL "certs") # certs: each store has its own report()
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:twp_flags> ${third} PUBLIC ${deps} ${third_public})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${deps} ${third_public})
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${include}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/twp>")
  target_compile_features(${target} ${scope} cxx_std_23)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME twp_${name})
  add_library(twp::${name} ALIAS ${target})
  set_property(CACHE TWP_MODULES APPEND PROPERTY VALUE ${name})
endfunction()

# Every program of cmd/ gets its name from its file: cmd/twp-proxy.cc is twp-proxy. cmd/cli_*.cc are shared
# by all (twp_cli); cmd/NAME_*.cc with NAME spelled with underscores (cmd/twp_proxy_run.cc) belong to NAME.
function(twp_programs)
  set(dir "${PROJECT_SOURCE_DIR}/cmd")
  file(GLOB shared CONFIGURE_DEPENDS "${dir}/cli_*.cc")
  file(GLOB mains CONFIGURE_DEPENDS "${dir}/twp-*.cc")

  # twp_build_info.h and .cc: version, commit and library versions. Looked up again by every build.
  set(generated "${CMAKE_BINARY_DIR}/generated")
  add_custom_target(twp_build_info_gen
    COMMAND "${CMAKE_COMMAND}" -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${generated}/twp_build_info.cc
      "-DVERSION=${PROJECT_VERSION}" "-DLIBRARIES=${TWP_DEP_VERSIONS}" "-DBUILD=${CMAKE_BUILD_TYPE}"
      "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      -P "${PROJECT_SOURCE_DIR}/cmake/TwpBuildInfo.cmake"
    BYPRODUCTS "${generated}/twp_build_info.cc" COMMENT "Looking up the commit" VERBATIM)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/twp_build_info.h" "${generated}/twp_build_info.h" COPYONLY)
  add_library(twp_build_info STATIC "${generated}/twp_build_info.cc")
  set_target_properties(twp_build_info PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  add_dependencies(twp_build_info twp_build_info_gen)
  target_include_directories(twp_build_info PUBLIC "${generated}")
  target_link_libraries(twp_build_info PRIVATE twp_flags)

  set(scope INTERFACE)
  if(shared)
    add_library(twp_cli STATIC ${shared})
    target_link_libraries(twp_cli PRIVATE twp_flags)
    set(scope PUBLIC)
  else()
    add_library(twp_cli INTERFACE)
  endif()
  target_include_directories(twp_cli ${scope} "${PROJECT_SOURCE_DIR}")
  target_link_libraries(twp_cli ${scope} twp_build_info twp_loadgen twp_origin twp_mitm twp_proxy twp_config
    twp_certs twp_dep::cli11 twp_dep::ssl)

  if(TWP_SANITIZE MATCHES "undefined")
    # CLI11's templates take half a minute a file with these checks, and no peer's bytes get there.
    set_source_files_properties(${shared} ${mains} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()

  set(programs)
  foreach(main IN LISTS mains)
    get_filename_component(name "${main}" NAME_WE)
    string(REPLACE "-" "_" prefix "${name}")
    file(GLOB parts CONFIGURE_DEPENDS "${dir}/${prefix}_*.cc" "${dir}/${prefix}.cc")
    add_executable(${name} ${main} ${parts})
    target_link_libraries(${name} PRIVATE twp_flags twp_cli)
    list(APPEND programs ${name})
  endforeach()
  set(TWP_PROGRAMS "${programs}" PARENT_SCOPE)
endfunction()
