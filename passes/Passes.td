//===- Passes.td - the pipeline's passes ----------------------------------===//
//
// One entry a pass, in the order in which they run. Each says what it accepts, what it leaves and what it
// does not try. Every pass checks that its predecessor was the last to run (`after` on the model).
//
//===----------------------------------------------------------------------===//

#ifndef STRATA_PASSES
#define STRATA_PASSES

include "mlir/Pass/PassBase.td"

class Strata_Pass<string name> : Pass<"strata-" # name, "::strata::ir::ModelOp"> {
  let dependentDialects = ["::strata::ir::StrataDialect"];
}

def VerifyModel : Strata_Pass<"verify-model"> {
  let summary = "Check that the model is one chain from embedding to sampling";
  let description = [{
    Accepts the model level as a family or a person wrote it. Leaves it unchanged.

    There is one `strata.forward` with symbolic rows; its ops are layers: the embedding, decoder layers
    0, 1, ... as many as the model says, the head. Each takes what the layer before yields. The residual
    is `tensor<? x hidden x f32>`. The embedding embeds; the head gathers rows, makes logits of the
    vocabulary's width and samples. Ops with positions or state stand in decoder layers alone, and what
    attention reads was written before. The head reads its rows by the gather only: it may run
    several times over what one body left.
  }];
}

def Canonicalize : Strata_Pass<"canonicalize"> {
  let summary = "Drop what does not reach the sample or the state";
  let description = [{
    Folds and erases compute ops without a use, then weights without a user (a tied model's spare head,
    say). Does not reorder and does not change arithmetic.
  }];
}

def ProfileUnits : Strata_Pass<"profile-units"> {
  let summary = "Measure each distinct layer by planning it alone";
  let description = [{
    Runs the back half of the pipeline on the model cut into one stage a unit, in the largest bucket, and
    attaches a `#strata.unit_cost`: bytes of weights, state for the promise, arena, what sampling needs
    on a GPU (scratch of a CPU is one a worker and known at boot), commands, and the time of a decode step
    and of a full prompt chunk (bytes over the target's bandwidth, or operations over its rate).

    It would be wrong to add up the arenas: only declared values cross layers, so a stage's arena is
    their maximum.
  }];
}

def PartitionStages : Strata_Pass<"partition-stages"> {
  let summary = "Give every layer its stage";
  let description = [{
    Sets `stage` on each layer: by the model's `split` (decoder layers a stage), or by exact search for
    the least maximum stage time among the splits whose stages fit their devices. The embedding is of
    the first stage and the head of the last. Refuses more stages than units, a split of another length
    or sum, and models that do not fit: then with the table and the shortfall.
  }];
}

def ReplicateConstants : Strata_Pass<"replicate-constants"> {
  let summary = "List the stages that hold each weight";
  let description = [{
    Sets `stages` on every weight to exactly the stages whose layers read it: one replica a stage, shared
    by all its forwards. A tied embedding has two where first and last stage differ.
  }];
}

def InsertHandoffs : Strata_Pass<"insert-handoffs"> {
  let summary = "Outline each stage and join them by handoffs";
  let description = [{
    Replaces weights, states and forward by one isolated `strata.stage` a device. A stage owns replicas of
    its weights, the part of each state that its layers use, and its layers. A value that crosses stages
    leaves by an output port and arrives by an input port; a `strata.handoff` joins them. Values may only
    cross to the next stage, which the chain of layers guarantees.
  }];
}

def VerifyPlacement : Strata_Pass<"verify-placement"> {
  let summary = "Check that stages are disjoint, complete and own what they use";
  let description = [{
    The stages hold the decoder layers 0 .. layers - 1 once each, in order; the first embeds, the last
    has the head; every port is joined once; handoffs lead forwards; every weight and state of a stage
    is used in it.
  }];
}

def InstantiateBuckets : Strata_Pass<"instantiate-buckets"> {
  let summary = "Clone the body for every bucket and the head for every head bucket";
  let description = [{
    Replaces a stage's symbolic forward by one a bucket with static rows: the model's `buckets`, or rows
    1, 2, 4, ... to `max_rows` with as many sequences as rows and `max_sequences` allow, and from 32
    rows on also with one sequence. Buckets of up to `max_sequences` rows hold body and head; larger
    ones the body. The head alone becomes `@h1`, `@h2`, ... over rows gathered from what a body left.

    ```mlir
    // max_rows 64, max_sequences 4:
    // r1s1 r2s2 r4s4 (body head) r8s4 r16s4 r32s1 r32s4 r64s1 r64s4 (body) h1 h2 h4 (head)
    ```
  }];
}

def ExpandExperts : Strata_Pass<"expand-experts"> {
  let summary = "Turn experts into explicit ops, in groups that bound their memory";
  let description = [{
    Replaces each `strata.experts` by `strata.expert_lists` and, for one group of experts after the other,
    `strata.expert_up` (the gate first, where there is one) and `strata.expert_down` onto the sum so far. Every
    expert stands in one group, so its weights are read once a forward. A group holds as many experts as
    keep the inner activations of a row within a limit even when all rows choose them; where the rows are
    few, one group holds all.

        32 rows, 4 of 64 experts of 8192 a row: 2 at once, 32 groups, 2 * 8192 values a row
        1 row:                                  all in one group,    4 * 8192 values

    Experts are added in order of their numbers whatever the groups: results do not depend on them.
    Anything but static rows would be wrong to feed.
  }];
}

def ChooseLayouts : Strata_Pass<"choose-layouts"> {
  let summary = "Choose one physical layout for each weight";
  let description = [{
    Sets `layout` on the stages' weights. One layout serves all readers of a weight. On the CPU's plain
    kernels it is `rows`: row-major blocks, as in the checkpoint.
  }];
}

def SelectKernels : Strata_Pass<"select-kernels"> {
  let summary = "Replace compute ops by invocations of kernels, fused where a kernel can";
  let description = [{
    Inlines the layers and lowers every compute op to `strata.invoke`, with all slots of the kernel's
    signature filled. A residual addition fuses into the linear op before it where that has no other
    use; element-wise ops reuse their operand's memory where it dies. An op, type or shape for which the
    target has no kernel is refused by name.
  }];
}

def PadTailChunks : Strata_Pass<"pad-tail-chunks"> {
  let summary = "Decide in which buckets every prompt remainder runs";
  let description = [{
    Writes the model's `tails`: for each remainder below a chunk the cheapest multiset of buckets for one
    sequence, the last one padded. The target says what a launch costs and what an empty row costs: on a
    CPU nothing, so there the smallest bucket that holds the remainder is best.
  }];
}

def OrderOps : Strata_Pass<"order-ops"> {
  let summary = "Order a layer's invocations so that the peak falls";
  let description = [{
    Moves invocations within their layer, never across layers and never against a dependency (values,
    memory reused in place, state). Searches all orders of small layers by dynamic programming over
    sets, larger ones greedily, and keeps the old order unless the peak of live bytes falls.
  }];
}

def AssignBuffers : Strata_Pass<"assign-buffers"> {
  let summary = "Turn values into buffers with lifetimes";
  let description = [{
    Replaces invocations by dispatches on `!strata.buffer` and states the allocation problem as a
    `strata.pack`: values tied to one another are one buffer, alive from its first write to its last
    use; sizes are rounded up to 64 bytes. The residual lives throughout, and so do logits from their
    write on, since the host reads them after the launch.
  }];
}

def PlanMemory : Strata_Pass<"plan-memory"> {
  let summary = "Answer each allocation problem";
  let description = [{
    Replaces every `strata.pack` by a `strata.arena` with offsets, peak, lower bound and whether the peak
    is proven least. Equal problems are solved once. The answer passes an independent checker.
  }];
  let options = [
    Option<"nodeLimit", "node-limit", "uint64_t", "2000000",
           "search nodes for one problem; the answer is the same on every machine">
  ];
}

def VerifyPlan : Strata_Pass<"verify-plan"> {
  let summary = "Check the planned level as a whole";
  let description = [{
    Every stage has the same buckets; dispatches follow their arena; no slot is missing against the
    kernel's signature; buffers are used only while alive; live buffers do not overlap; scratch covers
    every dispatch; the tail table is complete; replicas of a weight agree.
  }];
}

#endif // STRATA_PASSES
