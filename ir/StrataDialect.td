//===- StrataDialect.td - the strata dialect ------------------------------===//
//
// The dialect has three levels. *Model*: one forward body with symbolic rows, as a chain of layers of
// compute ops on tensors. *Placed*: stages, each on its device, that own their layers, weights and
// state, with handoffs between them. *Planned*: dispatches of kernels on buffers, in the order in which
// they run, at the offsets that the planner chose.
//
//===----------------------------------------------------------------------===//

#ifndef STRATA_DIALECT
#define STRATA_DIALECT

include "mlir/IR/OpBase.td"

def StrataDialect : Dialect {
  let name = "strata";
  let cppNamespace = "::strata::ir";
  let summary = "A language model on its way from checkpoint to plan";
  let description = [{
    A `strata.model` is lowered in place through three levels.

    1. **Model.** Weights, states and one `strata.forward` with symbolic rows: a chain of
       `strata.layer` regions (embedding, decoder layers, head) of compute ops on tensors.
    2. **Placed.** `strata.stage` ops, one a device, that own their layers, replicas of the weights that
       these read, their state and ports; `strata.handoff` ops join ports. Later one `strata.forward`
       a bucket, with static rows.
    3. **Planned.** `strata.dispatch` ops on `!strata.buffer` values in a fixed order, and one
       `strata.arena` a forward that places the buffers. One straight line per stage and bucket.

    The text is the compiler's whole state: stopped after any pass, printed and parsed again, the same
    plan results.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

class Strata_Op<string mnemonic, list<Trait> traits = []> : Op<StrataDialect, mnemonic, traits>;

#endif // STRATA_DIALECT
