// A layout is said once a weight, whatever reads it: packers write it and the runtime can fill it.
//
// RUN: strata-opt %s --pass-pipeline='builtin.module(strata.model(strata-choose-layouts))' | FileCheck %s

strata.model @m attributes {family = "f", hidden = 16 : i64, layers = 0 : i64,
    vocabulary = 32 : i64, max_context = 32 : i64, max_sequences = 1 : i64, max_rows = 4 : i64,
    devices = ["cpu:x86-64-v3", "cpu:x86-64-v3"], after = "expand-experts"} {
  strata.stage @s0 on "cpu:x86-64-v3" layers 0 to 0 embedding {
    // CHECK: strata.weight @table : tensor<32x32x!strata.quant<q8_0>> {{.*}}layout "rows"
    strata.weight @table : tensor<32x32x!strata.quant<q8_0>> from "t" unit "u"
  }
  strata.stage @s1 on "cpu:x86-64-v3" layers 0 to 0 head {
    // CHECK: strata.weight @table : {{.*}}layout "rows"
    // CHECK: strata.weight @norm : {{.*}}layout "rows"
    strata.weight @table : tensor<32x32x!strata.quant<q8_0>> from "t" unit "u"
    strata.weight @norm : tensor<16xf32> from "n" unit "u"
  }
}
