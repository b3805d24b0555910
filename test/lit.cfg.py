"""lit's configuration: which files are tests, and what their RUN lines may name."""

import os
import sys

import lit.formats

config.name = "strata"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "end_to_end"]  # texts that a Python test compiles
config.test_source_root = os.path.join(config.strata_source, "test")
config.test_exec_root = os.path.join(config.strata_build, "test")

# strata-opt, strata-compile, strata-run, then FileCheck, not and split-file.
tools = [os.path.join(config.strata_build, "bin"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join(tools + [os.environ["PATH"]])

config.substitutions += [
    ("%python", sys.executable),
    ("%source", config.strata_source),
]

# `REQUIRES: test-data` marks a test that reads the shared data, at %data.
data = os.environ.get("STRATA_TEST_DATA") or os.path.join(config.strata_source, "..", "shared", "data")
if os.path.isdir(data):
    config.available_features.add("test-data")
config.substitutions.append(("%data", os.path.normpath(data)))

# `REQUIRES: smollm2` marks a test of the model that `.ci/fetch-model smollm2` fetches, in %models.
models = os.environ.get("STRATA_MODELS") or os.path.join(config.strata_source, "models-cache")
if os.path.exists(os.path.join(models, "SmolLM2-135M-Instruct.Q4_1.gguf")):
    config.available_features.add("smollm2")
config.substitutions.append(("%models", models))
