// The Mamba-2 mixer: projection, convolution, state-space scan, gated norm, projection.
//
//   z, c, d = the rows of Win n;  x, B, C = silu(conv(c));  y = scan(x, B, C, d)
//   out = Wout norm(silu(z) * y), the norm over each group of the row
#pragma once

#include "models/ModelBuilder.h"

namespace strata {

struct MambaShape {
  int64_t heads = 0, headWidth = 0, groups = 1, stateWidth = 0, taps = 0;
  int64_t normGroups = 1; ///< Parts of a row that are normed apart.
  bool hasConvBias = true;
  double epsilon = 0, leastDt = 0, mostDt = 0;

  int64_t inner() const { return heads * headWidth; }
  int64_t convWidth() const { return inner() + 2 * groups * stateWidth; }
};

/// The state of a model's Mamba-2 layers.
SlotState mambaState(ModelBuilder &model, const MambaShape &shape, llvm::ArrayRef<int64_t> layers);

/// `time_step_limit` of a config.json, where it is there. Errors go to the reader.
void readTimeStepLimit(ConfigReader &config, MambaShape &shape);

/// What relates the sizes; `prefix` is that of the keys' names in messages.
void checkMambaShape(ConfigReader &config, const MambaShape &shape, const std::string &groupsKey);

class Mamba2Mixer {
public:
  /// Declares the weights of layer `layer`. `prefix` is `blk.3.` or `backbone.layers.3.mixer.`.
  Mamba2Mixer(ModelBuilder &model, const MambaShape &shape, bool isGguf, const std::string &prefix,
              int64_t layer, int64_t hidden);

  /// From normed rows to what is added to the residual.
  mlir::Value build(LayerBuilder &ops, mlir::Value n, SlotState state) const;

private:
  const MambaShape &shape_;
  int64_t layer_;
  Weight inZ_, inConv_, inDt_, conv_, convBias_, norm_, out_;
  ScanWeights scan_;
};

} // namespace strata
