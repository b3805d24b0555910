// Which shapes of a forward a model is served with.
#pragma once

#include <string>
#include <vector>

#include "ir/Strata.h"

namespace strata {

struct BucketShape {
  int64_t rows;
  int64_t sequences;
  bool body;
  bool head;

  std::string name() const;
};

/// Most rows of a body and of a head.
int64_t mostBodyRows(llvm::ArrayRef<BucketShape> shapes);
int64_t mostHeadRows(llvm::ArrayRef<BucketShape> shapes);

/// Body buckets by rising rows, then sequences; after them the head buckets.
std::vector<BucketShape> bucketShapes(ir::ModelOp model);

} // namespace strata
