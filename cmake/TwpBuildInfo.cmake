# Writes OUTPUT only when something in it changed, so that an unchanged commit relinks nothing.
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" describe --always --dirty --abbrev=12 "--exclude=*" WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE out ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rc)
  if(rc EQUAL 0)
    set(commit "${out}")
  endif()
endif()
string(REPLACE ";" ", " LIBRARIES "${LIBRARIES}")
string(REPLACE "=" " " LIBRARIES "${LIBRARIES}")
set(text "#include \"twp_build_info.h\"
namespace twp {
const char* const kVersion = \"${VERSION}\";
const char* const kCommit = \"${commit}\";
const char* const kLibraries = \"${LIBRARIES}\";
const char* const kBuild = \"${BUILD}, ${COMPILER}\";
}  // namespace twp
")
set(old)
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT text STREQUAL old)
  file(WRITE "${OUTPUT}" "${text}")
endif()
