# A stranger's project against the installed library: installs it, builds the example with
# find_package(Strata), and runs it on a plan.
foreach(variable BUILD EXAMPLE FOLDER FLAGS COMPILER WRITE_PLAN)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "EmbedTest.cmake needs -D${variable}=...")
  endif()
endforeach()
file(REMOVE_RECURSE ${FOLDER})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --component StrataRuntime --prefix ${FOLDER}/prefix)
file(COPY ${EXAMPLE}/Embed.cpp DESTINATION ${FOLDER}/source)
configure_file(${EXAMPLE}/Embed.cmake ${FOLDER}/source/CMakeLists.txt COPYONLY)
run(${CMAKE_COMMAND} -S ${FOLDER}/source -B ${FOLDER}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${WRITE_PLAN} ${FOLDER}/tiny.strata)
run(${FOLDER}/build/embed ${FOLDER}/tiny.strata 3 1 4)
if(NOT output MATCHES "^([0-9]+\n)+$")
  message(FATAL_ERROR "the example printed no ids:\n${output}")
endif()
