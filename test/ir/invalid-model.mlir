// The attributes of a model are what is to be served. Bounds are checked where the text is read: behind
// this door sizes are multiplied without a look, and buckets and rings are as large as they say.
//
// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'strata.model' op hidden is 0, must be 1 to 2147483647}}
strata.model @m attributes {family = "f", hidden = 0 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// expected-error @below {{vocabulary is -5, must be 1 to 2147483647}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = -5 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// expected-error @below {{layers is 65537, must be 0 to 65536}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 65537 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// expected-error @below {{max_context is 1073741825, must be 1 to 1073741824}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 1073741825 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// expected-error @below {{max_sequences is 0, must be 1 to 65536}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 0 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// Doubling buckets up to this would never end.
// expected-error @below {{max_rows is 9223372036854775807, must be 1 to 1048576}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 9223372036854775807 : i64, devices = ["cpu:x86-64-v3"]} {
}

// -----

// expected-error @below {{names no device}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = []} {
}

// -----

// expected-error @below {{2 device sizes for 1 devices}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], device_bytes = array<i64: 1, 2>} {
}

// -----

// expected-error @below {{split has 2 entries for 1 devices}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], split = array<i64: 1, 1>} {
}

// -----

// expected-error @below {{buckets are pairs of rows and sequences, found 3 numbers}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], buckets = array<i64: 1, 1, 4>} {
}

// -----

// expected-error @below {{bucket of 128 rows and 129 sequences: at least one of each, and no more sequences than rows}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], buckets = array<i64: 128, 129>} {
}

// -----

// expected-error @below {{bucket of 0 rows and 0 sequences}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], buckets = array<i64: 0, 0, 128, 1>} {
}

// -----

// Rings of handoffs hold max_rows rows: a larger bucket would write past them.
// expected-error @below {{max_rows is 128 but the largest bucket has 256 rows}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], buckets = array<i64: 1, 1, 256, 1>} {
}

// -----

// expected-error @below {{max_rows is 128 but the largest bucket has 8 rows}}
strata.model @m attributes {family = "f", hidden = 64 : i64, layers = 2 : i64,
    vocabulary = 512 : i64, max_context = 512 : i64, max_sequences = 4 : i64,
    max_rows = 128 : i64, devices = ["cpu:x86-64-v3"], buckets = array<i64: 1, 1, 8, 1>} {
}

// -----

// expected-error @below {{requires attribute 'devices'}}
"strata.model"() <{sym_name = "m", family = "f"}> ({ ^bb0: }) : () -> ()

// -----

// A region without a block, as only the generic form can write it.
// expected-error @below {{region #0 ('body') failed to verify constraint: region with 1 blocks}}
"strata.model"() <{sym_name = "m", family = "f", hidden = 8 : i64, layers = 0 : i64,
    vocabulary = 8 : i64, max_context = 8 : i64, max_sequences = 1 : i64, max_rows = 1 : i64,
    devices = ["cpu:x86-64-v3"]}> ({}) : () -> ()
