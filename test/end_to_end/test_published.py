"""Published models from their configuration alone: what --dry-run counts is their own arithmetic.

Sizes are those of the releases. Parameters are as published; without the correction biases of routers,
which some count and some do not, and without what predicts further tokens.
"""

import json
import os
import resource
import unittest

from tools import EndToEnd, check

F32, BF16 = 4, 2
NEMOTRON = {
    "model_type": "nemotron_h", "vocab_size": 131072, "tie_word_embeddings": False,
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_head_dim": 64,
    "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2, "n_shared_experts": 1,
    "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "max_position_embeddings": 262144,
}
NANO = NEMOTRON | {
    "hidden_size": 2688, "num_hidden_layers": 52,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "mamba_num_heads": 64, "intermediate_size": 1856, "n_routed_experts": 128,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "routed_scaling_factor": 2.5,
    "moe_shared_expert_intermediate_size": 3712,
}
SUPER = NEMOTRON | {
    "hidden_size": 4096, "num_hidden_layers": 88,
    "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
                               "EMEMEMEM*EMEMEMEME",
    "mamba_num_heads": 128, "intermediate_size": 2688, "n_routed_experts": 512,
    "num_experts_per_tok": 22, "moe_intermediate_size": 2688, "routed_scaling_factor": 5.0,
    "moe_shared_expert_intermediate_size": 5376, "moe_latent_size": 1024,
}
QWEN3 = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "rms_norm_eps": 1e-6,
    "rope_theta": 1e6, "vocab_size": 151936, "tie_word_embeddings": False, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True,
    "intermediate_size": 6144, "max_position_embeddings": 40960,
}
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "intermediate_size": 18432,
    "n_group": 8, "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "vocab_size": 129280, "tie_word_embeddings": False, "max_position_embeddings": 163840,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
}


class Sum:
    """Weights of a model: matrices are stored in BF16, vectors and convolutions in F32."""

    def __init__(self):
        self.parameters = self.bytes = 0

    def matrix(self, *size, times=1):
        self._add(BF16, size, times)

    def vector(self, *size, times=1):
        self._add(F32, size, times)

    def _add(self, element, size, times):
        elements = 1
        for extent in size:
            elements *= extent
        self.parameters += elements * times
        self.bytes += self.table(element * elements) * times

    @staticmethod
    def table(size):
        """Everything begins at a multiple of 64 bytes."""
        return -(-size // 64) * 64


def of_nemotron(c):
    """(parameters, bytes of weights, of KV a token, of state a sequence)"""
    total, h, kinds = Sum(), c["hidden_size"], c["hybrid_override_pattern"]
    mamba, expert, attention = (kinds.count(kind) for kind in "ME*")
    heads, states = c["mamba_num_heads"], c["ssm_state_size"]
    inner = heads * c["mamba_head_dim"]
    conv = inner + 2 * c["n_groups"] * states
    q, kv = (c[f"num_{n}_heads"] * c["head_dim"] for n in ("attention", "key_value"))
    total.matrix(c["vocab_size"], h, times=2)
    total.vector(h, times=len(kinds) + 1)
    total.matrix(inner + conv + heads, h, times=mamba)
    total.matrix(h, inner, times=mamba)
    total.vector(conv, c["conv_kernel"], times=mamba)
    total.vector(conv, times=mamba)
    total.vector(heads, times=3 * mamba)
    total.vector(inner, times=mamba)
    total.matrix(2 * q + 2 * kv, h, times=attention)
    experts, width = c["n_routed_experts"], c.get("moe_latent_size") or h
    total.matrix(experts, h, times=expert)
    total.matrix(experts, c["moe_intermediate_size"], width, times=2 * expert)
    total.matrix(c["moe_shared_expert_intermediate_size"], h, times=2 * expert)
    if width != h:
        total.matrix(width, h, times=2 * expert)
    biases = expert * Sum.table(F32 * experts)
    state = mamba * F32 * (conv * (c["conv_kernel"] - 1) + inner * states)
    tables = Sum.table(F32 * experts)
    return total.parameters, total.bytes + biases + tables, attention * 2 * kv * BF16, state


def of_qwen3(c):
    total, h, layers = Sum(), c["hidden_size"], c["num_hidden_layers"]
    q, kv = (c[f"num_{n}_heads"] * c["head_dim"] for n in ("attention", "key_value"))
    total.matrix(c["vocab_size"], h, times=2)
    total.vector(h, times=2 * layers + 1)
    total.matrix(2 * q + 2 * kv, h, times=layers)
    total.vector(c["head_dim"], times=2 * layers)
    total.matrix(c["num_experts"], h, times=layers)
    total.matrix(c["num_experts"], c["moe_intermediate_size"], h, times=3 * layers)
    tables = Sum.table(F32 * c["num_experts"]) + Sum.table(F32 * c["head_dim"] // 2)
    return total.parameters, total.bytes + tables, layers * 2 * kv * BF16, 0


def of_deepseek(c):
    total, h, layers, heads = (Sum(), c["hidden_size"], c["num_hidden_layers"],
                               c["num_attention_heads"])
    dense = c["first_k_dense_replace"]
    sparse = layers - dense
    plain, rotary, value = (c[f"{n}_head_dim"] for n in ("qk_nope", "qk_rope", "v"))
    total.matrix(c["vocab_size"], h, times=2)
    total.vector(h, times=2 * layers + 1)
    total.matrix(c["q_lora_rank"], h, times=layers)
    total.vector(c["q_lora_rank"], times=layers)
    total.matrix(heads * (plain + rotary), c["q_lora_rank"], times=layers)
    total.matrix(c["kv_lora_rank"] + rotary, h, times=layers)
    total.vector(c["kv_lora_rank"], times=layers)
    total.matrix(heads * (plain + value), c["kv_lora_rank"], times=layers)
    total.matrix(h, heads * value, times=layers)
    total.matrix(c["intermediate_size"], h, times=3 * dense)
    total.matrix(c["n_routed_experts"], h, times=sparse)
    total.matrix(c["n_routed_experts"] + 1, c["moe_intermediate_size"], h, times=3 * sparse)
    biases = sparse * Sum.table(F32 * c["n_routed_experts"])
    tables = Sum.table(F32 * c["n_routed_experts"]) + Sum.table(F32 * rotary // 2)
    kept = layers * (c["kv_lora_rank"] + rotary) * BF16
    return total.parameters, total.bytes + biases + tables, kept, 0


# Parameters, KV bytes a token and MiB of state a sequence as they are published or follow by hand.
MODELS = {
    "nano": (NANO, of_nemotron, 31577937344, 6144, 47.62),
    "super": (SUPER, of_nemotron, 120668687360, 8192, 164.69),
    "qwen3": (QWEN3, of_qwen3, 30532122624, 98304, 0),
    "deepseek": (DEEPSEEK, of_deepseek, 671026404352, 70272, 0),
}
CONTEXT, SEQUENCES = 8192, 4


class Published(EndToEnd):
    def table(self, name, config, *options):
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        table = check("strata-compile", path, "--dry-run", "--explain=json",
                      "--weight-type", "bf16", "--kv", "f16", *options, timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Of the processor, of all threads together: other work on this machine does not count.
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 30)
        return json.loads(table)

    def bytes_of(self, stage, name):
        return sum(entry["bytes"] for entry in stage["memory"] if entry["name"].startswith(name))

    def test_sums_are_the_configurations_own(self):
        for name, (config, arithmetic, parameters, kv, state) in MODELS.items():
            with self.subTest(name):
                counted, weights, kv_bytes, state_bytes = arithmetic(config)
                self.assertEqual((counted, kv_bytes), (parameters, kv))
                self.assertAlmostEqual(state_bytes / (1 << 20), state, delta=0.005)
                table = self.table(name, config, "--max-context", CONTEXT, "--max-seqs", SEQUENCES)
                stage = table["stages"][0]
                self.assertEqual(self.bytes_of(stage, "weights"), weights)
                self.assertEqual(self.bytes_of(stage, "state kv"), SEQUENCES * CONTEXT * kv)
                self.assertEqual(self.bytes_of(stage, "state recurrent"), SEQUENCES * state_bytes)

    def grown(self, config):
        """Bytes that a row more takes, from 512 rows to 1024, outside weights and state."""
        sizes = []
        for rows in (512, 1024):
            table = self.table("rows", config, "--buckets", f"r{rows}s1", "--max-seqs", 1,
                               "--max-context", 4096)
            stage = table["stages"][0]
            fixed = sum(self.bytes_of(stage, name) for name in ("weights", "state"))
            sizes.append(stage["totals"]["computed"] - fixed)
        return (sizes[1] - sizes[0]) / 512

    def test_row_16_nano_grows_by_what_its_experts_hold(self):
        kinds = NANO["hybrid_override_pattern"]
        self.assertEqual((kinds.count("*"), kinds.count("M")), (6, 23))
        grown = self.grown(NANO)
        self.assertLessEqual(grown, 33000 * F32)
        # An expert more for each token: its inner row, and an id and a weight in the lists.
        more = self.grown(NANO | {"num_experts_per_tok": 7})
        self.assertEqual(more - grown, (1856 + 2) * F32)


if __name__ == "__main__":
    unittest.main()
