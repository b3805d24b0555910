#include "codegen/cuda/compile/Nvrtc.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nvrtc.h>
#include <unistd.h>
#include <xxhash.h>

#include "codegen/cuda/compile/Program.h"

namespace strata::cuda {
namespace {

Status check(nvrtcResult result, std::string_view what) {
  if (result == NVRTC_SUCCESS)
    return {};
  return makeError(StatusCode::Internal, "NVRTC cannot {}: {}", what, nvrtcGetErrorString(result));
}

/// A program, destroyed at the end of its scope.
struct Program {
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle)
      nvrtcDestroyProgram(&handle);
  }
};

std::vector<std::string> compilerOptions(const CudaTarget &target) {
  return {fmt::format("--gpu-architecture={}", target.compilerName), "--std=c++20",
          "--device-as-default-execution-space", "--no-source-include",
          // As on a CPU, a * b + c is two roundings unless a kernel says fma.
          "--fmad=false", "--extra-device-vectorization"};
}

std::filesystem::path cacheFile(const std::string &source, const CudaTarget &target) {
  std::filesystem::path folder;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    folder = cache;
  else if (const char *home = std::getenv("HOME"); home && *home)
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  int major = 0, minor = 0;
  if (nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
    return {};
  std::string all = source;
  auto add = [&](std::string_view text) { all.append(text).push_back('\0'); };
  for (const SourceFile &file : sourceFiles()) {
    add(file.path);
    add(file.text);
  }
  for (const std::string &option : compilerOptions(target))
    add(option);
  XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return folder / "strata" /
         fmt::format("{}-nvrtc{}.{}-{:016x}{:016x}.cubin", target.name, major, minor, hash.high64,
                     hash.low64);
}

std::vector<uint8_t> readCubin(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
  // The hash of the content ends the file: half a file is no cubin.
  if (!file || bytes.size() < sizeof(uint64_t))
    return {};
  uint64_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  bytes.resize(bytes.size() - sizeof stored);
  return XXH3_64bits(bytes.data(), bytes.size()) == stored ? bytes : std::vector<uint8_t>();
}

/// Atomically, or not at all.
void writeCubin(const std::filesystem::path &path, const std::vector<uint8_t> &bytes) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.partial", ::getpid());
  uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  file.write(reinterpret_cast<const char *>(&hash), sizeof hash);
  file.close();
  if (file)
    std::filesystem::rename(temporary, path, error);
  if (!file || error)
    std::filesystem::remove(temporary, error);
}

} // namespace

bool canCompile() { return true; }

Result<std::vector<uint8_t>> compileModuleAnew(const std::string &source,
                                               const CudaTarget &target) {
  std::vector<std::string> texts, paths;
  std::vector<const char *> textPointers, pathPointers, optionPointers;
  for (const SourceFile &file : sourceFiles()) {
    texts.emplace_back(file.text);
    paths.emplace_back(file.path);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    textPointers.push_back(texts[i].c_str());
    pathPointers.push_back(paths[i].c_str());
  }
  std::vector<std::string> options = compilerOptions(target);
  for (const std::string &option : options)
    optionPointers.push_back(option.c_str());

  Program program;
  STRATA_RETURN_IF_ERROR(
      check(nvrtcCreateProgram(&program.handle, source.c_str(), "strata.cu", int(texts.size()),
                               textPointers.data(), pathPointers.data()),
            "take the source"));
  nvrtcResult compiled =
      nvrtcCompileProgram(program.handle, int(optionPointers.size()), optionPointers.data());
  if (compiled != NVRTC_SUCCESS) {
    size_t bytes = 0;
    std::string log;
    if (nvrtcGetProgramLogSize(program.handle, &bytes) == NVRTC_SUCCESS) {
      log.resize(bytes);
      if (nvrtcGetProgramLog(program.handle, log.data()) != NVRTC_SUCCESS)
        log.clear();
    }
    return makeError(StatusCode::Internal, "the kernels do not compile for {}: {}\n{}", target.name,
                     nvrtcGetErrorString(compiled), log.c_str());
  }
  size_t bytes = 0;
  STRATA_RETURN_IF_ERROR(check(nvrtcGetCUBINSize(program.handle, &bytes), "tell the code's size"));
  std::vector<uint8_t> cubin(bytes);
  STRATA_RETURN_IF_ERROR(check(
      nvrtcGetCUBIN(program.handle, reinterpret_cast<char *>(cubin.data())), "hand over the code"));
  return cubin;
}

Result<std::vector<uint8_t>> compileModule(const std::string &source, const CudaTarget &target) {
  std::filesystem::path path = cacheFile(source, target);
  if (!path.empty())
    if (std::vector<uint8_t> cubin = readCubin(path); !cubin.empty())
      return cubin;
  STRATA_ASSIGN_OR_RETURN(std::vector<uint8_t> cubin, compileModuleAnew(source, target));
  if (!path.empty())
    writeCubin(path, cubin);
  return cubin;
}

} // namespace strata::cuda
