#include "runtime/device/cuda/Line.h"

namespace strata::cuda {

Result<std::unique_ptr<Line>> Line::create(const Driver &driver, CUmodule module, std::string name,
                                           std::vector<DeviceCommand> commands,
                                           const Options &options) {
  std::unique_ptr<Line> line(new Line(driver, std::move(name), options));
  for (DeviceCommand &command : commands) {
    std::string op = command.op;
    if (Status status = line->addNode(module, std::move(command)); !status.isOk())
      return std::move(status).at("command", op).at("line", line->name());
  }
  if (options.useGraph && !line->nodes_.empty())
    if (Status status = line->buildGraph(); !status.isOk())
      return std::move(status).at("line", line->name());
  return line;
}

Line::~Line() {
  if (executable_)
    (void)driver_.cuGraphExecDestroy(executable_);
  if (graph_)
    (void)driver_.cuGraphDestroy(graph_);
}

Status Line::addNode(CUmodule module, DeviceCommand command) {
  auto node = std::make_unique<Node>();
  node->op = std::move(command.op);
  const DeviceCode &code = command.code;
  CUfunction function = nullptr;
  if (!module ||
      driver_.cuModuleGetFunction(&function, module, code.function.c_str()) != CUDA_SUCCESS)
    return makeError(StatusCode::InvalidData,
                     "the stage's module has no function '{}' (kernel '{}')", code.function,
                     command.kernel);
  STRATA_RETURN_IF_ERROR(driver_.check(driver_.cuFuncLoad(function), "cuFuncLoad"));
  if (code.sharedBytes > 0) {
    // All of a multiprocessor's, so that two kernels' blocks find room on it.
    constexpr int all = CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    STRATA_RETURN_IF_ERROR(driver_.check(
        driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   int(code.sharedBytes)),
        "cuFuncSetAttribute"));
    STRATA_RETURN_IF_ERROR(
        driver_.check(driver_.cuFuncSetAttribute(
                          function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, all),
                      "cuFuncSetAttribute"));
  }
  node->parameters = std::move(command.slots);
  node->parameters.push_back(command.validRows);
  size_t offset = 0, bytes = 0, expected = node->parameters.size() * sizeof(uint64_t);
  if (driver_.cuFuncGetParamInfo(function, 0, &offset, &bytes) != CUDA_SUCCESS || bytes != expected)
    return makeError(StatusCode::InvalidData,
                     "function '{}' does not take the {} bytes that kernel '{}' is given",
                     code.function, expected, command.kernel);
  node->parameterList[0] = node->parameters.data();
  node->launch = {.func = function,
                  .gridDimX = code.gridX,
                  .gridDimY = code.gridY,
                  .gridDimZ = 1,
                  .blockDimX = code.threads,
                  .blockDimY = 1,
                  .blockDimZ = 1,
                  .sharedMemBytes = code.sharedBytes,
                  .kernelParams = node->parameterList,
                  .extra = nullptr,
                  .kern = nullptr,
                  .ctx = options_.context};
  nodes_.push_back(std::move(node));
  return {};
}

Status Line::buildGraph() {
  STRATA_RETURN_IF_ERROR(driver_.check(driver_.cuGraphCreate(&graph_, 0), "cuGraphCreate"));
  CUgraphNode previous = nullptr;
  for (const auto &node : nodes_) {
    CUgraphNode added = nullptr;
    Status status =
        driver_.check(driver_.cuGraphAddKernelNode(&added, graph_, nullptr, 0, &node->launch),
                      "cuGraphAddKernelNode");
    if (status.isOk() && previous) {
      CUgraphEdgeData edge = {};
      if (options_.dependentLaunch) {
        edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
      }
      status = driver_.check(driver_.cuGraphAddDependencies(graph_, &previous, &added, &edge, 1),
                             "cuGraphAddDependencies");
    }
    if (!status.isOk())
      return std::move(status).at("command", node->op);
    previous = added;
  }
  STRATA_RETURN_IF_ERROR(driver_.check(driver_.cuGraphInstantiateWithFlags(&executable_, graph_, 0),
                                       "cuGraphInstantiateWithFlags"));
  return driver_.check(driver_.cuGraphUpload(executable_, options_.stream), "cuGraphUpload");
}

Status Line::launch() const {
  if (executable_)
    return driver_.check(driver_.cuGraphLaunch(executable_, options_.stream), "cuGraphLaunch");
  for (const auto &node : nodes_) {
    const CUDA_KERNEL_NODE_PARAMS &p = node->launch;
    Status status = driver_.check(driver_.cuLaunchKernel(p.func, p.gridDimX, p.gridDimY, 1,
                                                         p.blockDimX, 1, 1, p.sharedMemBytes,
                                                         options_.stream, p.kernelParams, nullptr),
                                  "cuLaunchKernel");
    // One by one, so that the op that fails can be named.
    if (status.isOk())
      status = driver_.check(driver_.cuStreamSynchronize(options_.stream), "running the kernel");
    if (!status.isOk())
      return std::move(status).at("command", node->op);
  }
  return {};
}

} // namespace strata::cuda
