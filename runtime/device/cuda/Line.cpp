#include "runtime/device/cuda/Line.h"

namespace strata::cuda {

Result<std::unique_ptr<Line>> Line::create(const Driver &driver, CUmodule module, std::string name,
                                           std::vector<DeviceCommand> commands,
                                           const Options &options) {
  std::unique_ptr<Line> line(new Line(driver, std::move(name), options));
  for (DeviceCommand &command : commands) {
    std::string op = command.op;
    Status status =
        command.gemm ? line->addProduct(command) : line->addNode(module, std::move(command));
    if (!status.isOk())
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

Status Line::addProduct(const DeviceCommand &command) {
  auto node = std::make_unique<Node>();
  node->op = command.op;
  STRATA_ASSIGN_OR_RETURN(node->product, options_.gemms->prepare(*command.gemm));
  nodes_.push_back(std::move(node));
  return {};
}

Result<CUgraphNode> Line::addToGraph(const Node &node) {
  if (node.product)
    return addToGraph(*node.product);
  CUgraphNode added = nullptr;
  STRATA_RETURN_IF_ERROR(
      driver_.check(driver_.cuGraphAddKernelNode(&added, graph_, nullptr, 0, &node.launch),
                    "cuGraphAddKernelNode"));
  return added;
}

// The library has no explicit nodes, so that its one call is recorded.
Result<CUgraphNode> Line::addToGraph(const GemmProduct &product) {
  CUgraph recorded = nullptr;
  CUgraphNode added = nullptr;
  STRATA_RETURN_IF_ERROR(driver_.check(
      driver_.cuStreamBeginCapture(options_.captureStream, CU_STREAM_CAPTURE_MODE_RELAXED),
      "cuStreamBeginCapture"));
  Status status = product.run(options_.captureStream);
  Status ended = driver_.check(driver_.cuStreamEndCapture(options_.captureStream, &recorded),
                               "cuStreamEndCapture");
  if (status.isOk())
    status = std::move(ended);
  if (status.isOk())
    status = driver_.check(driver_.cuGraphAddChildGraphNode(&added, graph_, nullptr, 0, recorded),
                           "cuGraphAddChildGraphNode"); // a copy
  if (recorded)
    (void)driver_.cuGraphDestroy(recorded);
  STRATA_RETURN_IF_ERROR(std::move(status));
  return added;
}

Status Line::buildGraph() {
  STRATA_RETURN_IF_ERROR(driver_.check(driver_.cuGraphCreate(&graph_, 0), "cuGraphCreate"));
  CUgraphNode previous = nullptr;
  bool isBehindProduct = false;
  for (const auto &node : nodes_) {
    Result<CUgraphNode> made = addToGraph(*node);
    if (!made.isOk())
      return std::move(made).status().at("command", node->op);
    CUgraphNode added = *made;
    Status status;
    if (previous) {
      CUgraphEdgeData edge = {};
      if (options_.dependentLaunch && !isBehindProduct && !node->product) {
        edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
      }
      status = driver_.check(driver_.cuGraphAddDependencies(graph_, &previous, &added, &edge, 1),
                             "cuGraphAddDependencies");
    }
    if (!status.isOk())
      return std::move(status).at("command", node->op);
    previous = added;
    isBehindProduct = node->product != nullptr;
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
    Status status =
        node->product
            ? node->product->run(options_.stream)
            : driver_.check(driver_.cuLaunchKernel(p.func, p.gridDimX, p.gridDimY, 1, p.blockDimX,
                                                   1, 1, p.sharedMemBytes, options_.stream,
                                                   p.kernelParams, nullptr),
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
