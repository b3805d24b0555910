# `cmake --install`: the tools, and the runtime as a library for find_package(Strata).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Strata)
set(libraries
    StrataSchedule StrataStage StrataDevice StrataSampling StrataCheckpoint StrataTokenizer
    StrataPlan StrataPlanSchema StrataCpuKernels StrataBase)

add_library(Strata INTERFACE)
target_link_libraries(Strata INTERFACE StrataSchedule)
install(
  TARGETS Strata ${libraries}
  EXPORT StrataTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/strata)
install(EXPORT StrataTargets NAMESPACE Strata:: DESTINATION ${package})

# The public header and what it includes.
foreach(header Strata.h base/Status.h sampling/Sampler.h schedule/Request.h tokenizer/Tokenizer.h
               tokenizer/Vocabulary.h)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES runtime/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/strata/runtime/${folder})
endforeach()

configure_package_config_file(
  cmake/StrataConfig.cmake.in ${CMAKE_BINARY_DIR}/StrataConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/StrataConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/StrataConfig.cmake ${CMAKE_BINARY_DIR}/StrataConfigVersion.cmake
        DESTINATION ${package})

foreach(tool strata-run strata-compile strata-opt)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
