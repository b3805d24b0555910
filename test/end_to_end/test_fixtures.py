"""One tiny random model per family of transformers', against what transformers computes."""

import unittest

from safetensors import read_safetensors
from tools import EndToEnd, data


class Fixtures(EndToEnd):
    def check(self, name):
        golden = read_safetensors(data(f"fixtures/{name}/golden.safetensors"))
        plan = self.plan(data(f"fixtures/{name}"), "--kv", "f32", "--max-context", 512)
        prompt, greedy = golden["prompt_ids"].tolist(), golden["greedy_ids"].tolist()
        self.assert_close(self.logits(plan, prompt), golden["prompt_logits"], 3e-4)
        # The golden ids go on past end tokens, where the model happened to choose one.
        request = {"prompt": prompt, "max_tokens": len(greedy), "ignore_eos": True}
        self.assertEqual(self.replay(plan, [request])[0]["ids"], greedy)

    def test_llama_rope_llama3(self):
        self.check("llama-rope-llama3")

    def test_mistral_window(self):
        self.check("mistral-window")

    def test_qwen2_bias(self):
        self.check("qwen2-bias")

    def test_qwen3_qknorm(self):
        self.check("qwen3-qknorm")

    def test_gemma3(self):
        self.check("gemma3")

    def test_qwen3_moe(self):
        self.check("qwen3-moe")

    def test_mamba2(self):
        self.check("mamba2")

    def test_deepseek_v3(self):
        self.check("deepseek-v3")

    def test_nemotron_h_dense(self):
        self.check("nemotron-h-dense")

    def test_nemotron_h_moe(self):
        self.check("nemotron-h-moe")

    def test_nemotron_h_latent(self):
        self.check("nemotron-h-latent")


if __name__ == "__main__":
    unittest.main()
