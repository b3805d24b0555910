include_guard(GLOBAL)

# Debian's interpreter by its path: numpy comes from Debian's package, and another python3 that
# stands first on PATH would not have it.
set(STRATA_PYTHON /usr/bin/python3 CACHE FILEPATH "Python 3.11 or newer with numpy, for the tests")

# strata_add_python_test(NAME MODULE [TIMEOUT SECONDS])
#
# A module of `unittest` cases as one test of ctest, labelled with its folder. It is reported as
# skipped where any of its cases was.
function(strata_add_python_test name module)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  file(RELATIVE_PATH label ${CMAKE_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${label}.${name}
           COMMAND ${STRATA_PYTHON} ${CMAKE_SOURCE_DIR}/test/reference/run_unittest.py
                   ${CMAKE_CURRENT_SOURCE_DIR}/${module}.py)
  set_tests_properties(
    ${label}.${name}
    PROPERTIES LABELS ${label}
               TIMEOUT ${arg_TIMEOUT}
               SKIP_RETURN_CODE 77
               ENVIRONMENT "STRATA_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PYTHONDONTWRITEBYTECODE=1")
endfunction()
