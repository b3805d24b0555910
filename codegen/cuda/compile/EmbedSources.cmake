# Writes OUTPUT, a C++ file that holds the text of FILES (relative to ROOT) as Program.h's
# sourceFiles(). A stand-in is named as the header that it stands for.
set(entries "")
foreach(file ${FILES})
  file(READ ${ROOT}/${file} text)
  string(REGEX REPLACE "^codegen/cuda/standins/" "" path ${file})
  string(APPEND entries "    {\"${path}\",\n     R\"source(${text})source\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"codegen/cuda/compile/Program.h\"

namespace strata::cuda {

std::span<const SourceFile> sourceFiles() {
  static constexpr SourceFile files[] = {
${entries}  };
  return files;
}

} // namespace strata::cuda
")
