//===- StrataTypes.td - types ---------------------------------------------===//

#ifndef STRATA_TYPES
#define STRATA_TYPES

include "ir/StrataDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Strata_Type<string name, string typeMnemonic> : TypeDef<StrataDialect, name> {
  let mnemonic = typeMnemonic;
}

def Strata_QuantType : Strata_Type<"Quant", "quant"> {
  let summary = "a block-quantised element";
  let description = [{
    The element type of a weight that is stored in blocks, such as `!strata.quant<q4_1>`. The name is a
    row of the weight-type table (`runtime/checkpoint/WeightTypes.h`), which alone knows how many
    elements and bytes a block has; the innermost dimension is a whole number of blocks.
  }];
  let parameters = (ins StringRefParameter<"row of the weight-type table">:$name);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Strata_StepType : Strata_Type<"Step", "step"> {
  let summary = "the step block";
  let description = [{
    The only input of a launch: for each row its sequence, position and id; for each sequence its length,
    slot, block tables and sampling parameters; for each head row the row that it gathers.
  }];
}

def Strata_BufferType : Strata_Type<"Buffer", "buffer"> {
  let summary = "a region of the arena";
  let description = "`!strata.buffer<512>` is 512 bytes of the stage's arena, 64-byte aligned.";
  let parameters = (ins "int64_t":$bytes);
  let assemblyFormat = "`<` $bytes `>`";
}

#endif // STRATA_TYPES
