// A straight line of kernels and products on a GPU: one graph of explicit nodes, a product a child
// graph of what its library does, or the same launches one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/Gemm.h"

namespace strata::cuda {

class Line {
public:
  struct Options {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUstream captureStream = nullptr; ///< A private one: products are recorded on it.
    GemmLibrary *gemms = nullptr;     ///< Where a command is a product.
    bool useGraph = true;
    bool dependentLaunch = false; ///< Kernels wait for their predecessor by themselves.
  };

  /// Finds and loads every function, builds the graph, instantiates and uploads it. Errors:
  /// InvalidData (a function that the module lacks, or that takes other parameters), those of the
  /// driver, with the op named.
  static Result<std::unique_ptr<Line>> create(const Driver &driver, CUmodule module,
                                              std::string name, std::vector<DeviceCommand> commands,
                                              const Options &options);
  ~Line();
  Line(const Line &) = delete;
  Line &operator=(const Line &) = delete;

  const std::string &name() const { return name_; }
  /// Puts the line on its stream. Errors: those of the driver.
  Status launch() const;

private:
  struct Node {
    std::string op;
    CUDA_KERNEL_NODE_PARAMS launch = {};
    std::vector<uint64_t> parameters; ///< The slots, then the address of the valid rows.
    void *parameterList[1] = {};
    std::unique_ptr<GemmProduct> product; ///< Or null; it takes no launch.
  };

  Line(const Driver &driver, std::string name, const Options &options)
      : driver_(driver), name_(std::move(name)), options_(options) {}
  Status addNode(CUmodule module, DeviceCommand command);
  Status addProduct(const DeviceCommand &command);
  Result<CUgraphNode> addToGraph(const Node &node);
  Result<CUgraphNode> addToGraph(const GemmProduct &product);
  Status buildGraph();

  const Driver &driver_;
  std::string name_;
  Options options_;
  std::vector<std::unique_ptr<Node>> nodes_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

} // namespace strata::cuda
