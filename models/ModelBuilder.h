// Builds a model-level `strata.model`: weights, states and the chain of layers.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "ir/Strata.h"
#include "models/ImportOptions.h"
#include "models/Rope.h"
#include "runtime/base/Status.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace strata {

struct ModelShape {
  std::string family; ///< A word for people.
  int64_t hidden = 0; ///< Width of the residual.
  int64_t layers = 0;
  int64_t vocabulary = 0;
  int64_t context = 0; ///< Tokens that the model was made for.
};

/// A weight of the model: `[rows, columns]`, or `[rows]` where `columns` is 0.
struct Weight {
  mlir::FlatSymbolRefAttr symbol; ///< Null: the model has no such weight.
  int64_t rows = 0;
  int64_t columns = 0;
  std::optional<int64_t> layer; ///< Which of a table, which has rows and columns for each.

  explicit operator bool() const { return symbol != nullptr; }
  Weight ofLayer(int64_t index) const { return {symbol, rows, columns, index}; }
};

/// Where a weight's values lie in the checkpoint (`strata.weight` says what each field means).
struct WeightSource {
  std::string tensor;                              ///< With `stack`: `*` stands for 0, 1, ...
  llvm::SmallVector<int64_t, 4> shape;             ///< Of each tensor.
  int64_t stack = 0;                               ///< 0: one tensor.
  std::optional<std::pair<int64_t, int64_t>> part; ///< First row, of how many.
  int64_t join = 1;
  int64_t layers = 0; ///< Above 0: a table, which has so many layers.
  bool isNegativeExponential = false;
};

/// Where the keys and values of some layers are kept.
struct AttentionState {
  mlir::FlatSymbolRefAttr symbol;
  int64_t window = 0; ///< Tokens that a row sees, its own included; 0: all before it.
};

/// The unit whose segment of the plan holds a weight.
/// State that is one slot a sequence.
struct SlotState {
  mlir::FlatSymbolRefAttr symbol;
};

/// How a router chooses: the attributes of `strata.router`.
struct Routing {
  ir::GateFunction function = ir::GateFunction::softmax;
  int64_t used = 0, groups = 1, groupsUsed = 1, groupTop = 1;
  bool normalise = false;
  double leastSum = 1e-20, scale = 1;
};

/// The operands of `strata.experts`; gate and labels may be null.
struct ExpertWeights {
  ir::Function function = ir::Function::silu;
  Weight gate, up, down, slots, labels;
};

/// The operands and attributes of `strata.ssm_scan`.
struct ScanWeights {
  Weight a, skip, dtBias;
  int64_t heads = 0, headWidth = 0, groups = 0, stateWidth = 0;
  double leastDt = 0, mostDt = 0;
};

std::string layerUnit(int64_t index);
inline constexpr std::string_view embeddingUnit = "embedding";
inline constexpr std::string_view headUnit = "head";
inline constexpr std::string_view sharedUnit = "shared"; ///< What several units read.

/// The ops of one layer, appended in order. Each takes and gives rows: tensor<? x width x f32> of a
/// space. Widths are not checked here: the dialect's verifier does that.
class LayerBuilder {
public:
  LayerBuilder(mlir::OpBuilder builder, mlir::Location location, mlir::Value step)
      : builder_(builder), location_(location), step_(step) {}

  mlir::Value embed(Weight table, llvm::StringRef space, double scale = 1);
  /// `heads` above 0: over each of so many equal parts of a row.
  mlir::Value rmsNorm(mlir::Value input, Weight weight, double epsilon, int64_t heads = 0);
  /// Over each of `groups` equal parts of a row, with a weight for the whole row.
  mlir::Value groupedRmsNorm(mlir::Value input, Weight weight, double epsilon, int64_t groups);
  /// `bias` may be null.
  mlir::Value linear(mlir::Value input, Weight weight, Weight bias, llvm::StringRef space);
  /// `first`: the element of a head that the rotated ones begin at.
  mlir::Value rope(mlir::Value input, Weight frequencies, ir::RopePairs pairs, int64_t heads,
                   double magnitude, int64_t first = 0);
  mlir::Value headLinear(mlir::Value input, Weight weight, bool isTransposed, int64_t tail,
                         int64_t width, llvm::StringRef space);
  /// Attention whose keys are its values followed by component `k`.
  mlir::Value latentAttention(mlir::Value query, AttentionState state, int64_t layer,
                              int64_t queryHeads, double scale, int64_t width,
                              llvm::StringRef space);
  void kvWrite(mlir::Value key, mlir::Value value, AttentionState state, int64_t layer);
  mlir::Value attention(mlir::Value query, AttentionState state, int64_t layer, int64_t queryHeads,
                        int64_t kvHeads, double scale, int64_t width, llvm::StringRef space);
  mlir::Value gated(ir::Function function, mlir::Value gate, mlir::Value up);
  mlir::Value rowGated(ir::Function function, mlir::Value gate, mlir::Value input);
  mlir::Value activation(ir::Function function, mlir::Value input);
  mlir::Value router(mlir::Value logits, const Routing &routing, Weight bias);
  mlir::Value experts(mlir::Value input, mlir::Value routing, const ExpertWeights &weights);
  mlir::Value latentDown(mlir::Value input, Weight weight, int64_t groups);
  mlir::Value latentUp(mlir::Value input, Weight weight, int64_t groups, llvm::StringRef space);
  mlir::Value conv(mlir::Value input, Weight weight, Weight bias, SlotState state, int64_t layer);
  mlir::Value ssmScan(mlir::Value input, mlir::Value dt, const ScanWeights &weights,
                      SlotState state, int64_t layer);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value gatherRows(mlir::Value input);
  mlir::Value logits(mlir::Value input, Weight weight, llvm::StringRef space);
  void sample(mlir::Value logits);
  void yield(mlir::ValueRange values);

private:
  mlir::Type rows(int64_t width, llvm::StringRef space);
  mlir::IntegerAttr layerOf(const Weight &weight); ///< Null where it is no table's.

  mlir::OpBuilder builder_;
  mlir::Location location_;
  mlir::Value step_;
};

/// Weights and states are declared in any order, before the layers that use them; layers in the
/// order of the chain. What is wrong with the checkpoint's tensors is collected and reported by
/// `finish`.
class ModelBuilder {
public:
  /// All three outlive the builder.
  ModelBuilder(mlir::MLIRContext &context, const Checkpoint &checkpoint,
               const ImportOptions &options);

  /// Comes first. Errors: InvalidArgument where the options ask for what the shape cannot give.
  Status begin(const ModelShape &shape);

  /// Whether the checkpoint holds a tensor. A checkpoint without weights holds none.
  bool stores(const std::string &tensor) const { return checkpoint_.find(tensor); }

  /// A matrix in the type that it is stored in.
  Weight matrix(const std::string &symbol, const std::string &tensor, int64_t rows, int64_t columns,
                std::string_view unit);
  /// A norm's weight or a bias: F32, converted when packed where it is stored in another float
  /// type. `plus` is added to every element: some families store a norm's weight less one.
  Weight vector(const std::string &symbol, const std::string &tensor, int64_t width,
                std::string_view unit, double plus = 0);
  /// A weight of any shape in the type that it is stored in.
  Weight weight(const std::string &symbol, const WeightSource &source,
                llvm::ArrayRef<int64_t> shape, std::string_view unit);
  /// One tensor that holds a matrix for every layer; `ofLayer` of it is what a layer reads.
  Weight table(const std::string &symbol, WeightSource source, int64_t rows, int64_t columns);
  /// The same as `weight` in F32, converted when packed.
  Weight floatWeight(const std::string &symbol, const WeightSource &source,
                     llvm::ArrayRef<int64_t> shape, std::string_view unit);
  /// A table that maps each of `width` things to itself.
  Weight identity(const std::string &symbol, int64_t width);
  /// Frequencies for a rotated `width`; `divisors` names the tensor that divides them, or is empty.
  Weight ropeFrequencies(const std::string &symbol, const RopeParameters &rope, int64_t width,
                         const std::string &divisors = "");

  /// State for keys and values of `kWidth` and `vWidth` of the given layers.
  AttentionState attentionState(const std::string &symbol, int64_t window, int64_t kWidth,
                                int64_t vWidth, llvm::ArrayRef<int64_t> layers);

  /// State of one slot a sequence: F32 components of the given widths for each of the layers.
  SlotState slotState(const std::string &symbol,
                      llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> components,
                      llvm::ArrayRef<int64_t> layers);

  /// Leaves out all tensors whose names begin with `prefix`; says so in a note, where there are
  /// any.
  void skipTensors(const std::string &prefix, std::string_view what);
  const std::vector<std::string> &notes() const { return notes_; }

  /// A tensor that the model does not use and that may be there all the same.
  void ignoreTensor(std::string name) { used_.insert(std::move(name)); }

  using LayerBody = llvm::function_ref<mlir::Value(LayerBuilder &, mlir::Value)>;
  void embedding(llvm::function_ref<mlir::Value(LayerBuilder &)> body);
  void decoder(int64_t index, LayerBody body); ///< From the residual to the next residual.
  /// Norm, logits of the rows that need them, and the draw. `norm` is the norm's tensor in a folder
  /// (a GGUF file has one name for it), `plus` what it is stored less. Where `tied` is null the
  /// head has a matrix of its own; a tied model's, which some folders store all the same, is not
  /// read.
  void head(const std::string &norm, double epsilon, Weight tied, double plus = 0);

  /// Sets the ids that end a generation. Those outside the vocabulary cannot be drawn: left out.
  void setEndOfGeneration(llvm::ArrayRef<int32_t> ids);

  int64_t vocabulary() const { return shape_.vocabulary; }

  /// The model, verified. Errors: InvalidData (tensors missing, surplus or of another shape, by
  /// name), Unimplemented (a tensor's type where it cannot be used).
  Result<mlir::OwningOpRef<mlir::ModuleOp>> finish();

private:
  Weight declare(const std::string &symbol, mlir::RankedTensorType type, const std::string &tensor,
                 mlir::Attribute computed, std::string_view unit, double plus = 0);
  Weight declareFrom(const std::string &symbol, const WeightSource &source,
                     llvm::ArrayRef<int64_t> shape, const WeightType *type, std::string_view unit);
  const Tensor *take(const std::string &tensor, llvm::ArrayRef<int64_t> shape);
  const WeightType *matrixType(const std::string &tensor, const Tensor *stored, int64_t columns);
  mlir::Value layer(ir::LayerKind kind, int64_t index, std::string_view unit, mlir::Value input,
                    LayerBody body);
  std::string stateType(const std::string &wanted) const;
  Status checkTensors() const;
  std::string modelName() const;

  mlir::MLIRContext &context_;
  const Checkpoint &checkpoint_;
  const ImportOptions &options_;
  bool hasWeights_;
  ModelShape shape_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  ir::ModelOp model_;
  ir::ForwardOp forward_;
  mlir::OpBuilder weights_; ///< Inserts before the forward.
  mlir::OpBuilder states_;  ///< Inserts between the weights and the forward.
  mlir::OpBuilder layers_;  ///< Appends to the forward.
  mlir::Value residual_;
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> missing_;
  std::vector<std::string> misshapen_; ///< Each with both shapes.
  std::vector<std::string> notes_;
  Status status_; ///< The first error that is none of these.
};

} // namespace strata
