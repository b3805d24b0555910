# Fails where an object defines a symbol that other objects may share (weak, or unique) outside of
# its own instruction set's namespace.
if(NOT OBJECTS)
  message(FATAL_ERROR "no objects given")
endif()
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" shared "${symbols}")
  foreach(symbol IN LISTS shared)
    if(NOT symbol MATCHES "${NAMESPACE}")
      message(SEND_ERROR "${object} shares a symbol: ${symbol}")
    endif()
  endforeach()
endforeach()
