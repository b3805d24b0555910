// Where each field of the step, out and device-table blocks lies, and how large a handoff is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/Strata.h"

namespace strata {

struct BlockField {
  std::string name;
  std::string type; ///< i32, u32, f32, u64
  uint64_t offset;
  uint64_t count;

  uint64_t bytes() const { return count * (type == "u64" ? 8 : 4); }
};

struct BlockFields {
  std::vector<BlockField> fields;
  uint64_t bytes = 0;

  void add(std::string name, std::string type, uint64_t count);
  const BlockField *find(llvm::StringRef name) const;
};

/// What bounds the blocks.
struct BlockBounds {
  uint64_t rows;
  uint64_t sequences;
  uint64_t headRows;
  uint64_t context;
  uint64_t vocabulary;
};

/// `states`: those of the stage.
BlockFields stepFields(llvm::ArrayRef<ir::StateOp> states, const BlockBounds &bounds);
BlockFields outFields(const BlockBounds &bounds);
/// What a sequence keeps between steps, by slot: the last id, and where the stage draws, what the
/// sampler knows of the sequence.
BlockFields tableFields(bool hasHead, const BlockBounds &bounds);

/// Bytes of a slot of a handoff: `rows` rows of `width` floats.
uint64_t handoffSlotBytes(int64_t width, int64_t rows);

} // namespace strata
