"""Requests that come, go and share batches and state blocks: each is what it would be alone."""

import unittest

import numpy as np

import forward
from checkpoint import load
from make_checkpoint import Shape, make_gguf
from tools import INSTRUMENTED, EndToEnd, data

ALONE = 1000  # steps between arrivals that let each request run by itself


def random_trace(seed, count, ids, context):
    """`count` requests: prompts cut from `ids`, greedy or sampled, a fifth of them withdrawn."""
    random = np.random.default_rng(seed)
    trace, arrival = [], 0
    for i in range(count):
        arrival += int(random.integers(0, 4))
        start = int(random.integers(0, len(ids) - 1))
        length = min(int(random.choice([1, 2, 7, 16, 17, 40, 100])), len(ids) - start, context - 1)
        most = min(int(random.integers(1, 33)), context - length)
        request = {"arrival": arrival, "prompt": ids[start : start + length], "max_tokens": most}
        request["ignore_eos"] = True
        if random.random() < 0.5:
            request |= {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "seed": i}
        if random.random() < 0.2:
            request["cancel"] = arrival + int(random.integers(0, 20))
        trace.append(request)
    return trace


def one_by_one(trace):
    """The same requests, each after the one before has ended and none withdrawn."""
    kept = [{k: v for k, v in request.items() if k != "cancel"} for request in trace]
    return [request | {"arrival": i * ALONE} for i, request in enumerate(kept)]


def most_at_once(outcomes):
    """The largest number of requests that were in the middle of their answers in one step."""
    edges = sorted(
        edge
        for o in outcomes
        if o["ids"]
        for edge in ((o["first_step"], 1), (o["finished_step"], -1))
    )
    running = np.cumsum([change for _, change in edges])
    return int(running.max())


class Replay(EndToEnd):
    """Over a generated model; the subclass below takes a real one."""

    CONTEXT = 128
    OPTIONS = ("--kv", "f32", "--max-context", CONTEXT)

    def model(self):
        path = self.path("tiny.gguf")
        make_gguf(Shape("smollm2", layers=3), path, "q4_1", "q8_0", seed=8)
        return path

    def ids(self):
        return np.random.default_rng(1).integers(3, 320, 300).tolist()

    def setUp(self):
        self.checkpoint = self.model()

    def outcomes(self, plan, trace):
        found = self.replay(plan, trace)
        self.assertEqual([o["request"] for o in found], list(range(len(trace))))
        return found

    def check_against_alone(self, plan, trace):
        together = self.outcomes(plan, trace)
        alone = self.outcomes(plan, one_by_one(trace))
        for i, (ours, own) in enumerate(zip(together, alone)):
            with self.subTest(request=i):
                self.assertEqual(own["finish_reason"], "length")
                count = len(own["ids"])
                if ours["finish_reason"] == "cancelled":
                    self.assertIn("cancel", trace[i])
                    count = len(ours["ids"])
                self.assertEqual(ours["ids"], own["ids"][:count])
                # Each depends on a whole row of logits, and must have the same bits.
                self.assertEqual(ours["log_probabilities"], own["log_probabilities"][:count])
        return together

    def test_batches_of_two_and_five(self):
        ids = self.ids()
        for sequences in (2, 5):
            plan = self.plan(self.checkpoint, *self.OPTIONS, "--max-seqs", sequences)
            trace = [
                {"arrival": 0, "prompt": ids[i : 2 * i + 20], "max_tokens": 30, "ignore_eos": True}
                for i in range(sequences)
            ]
            together = self.check_against_alone(plan, trace)
            self.assertEqual(most_at_once(together), sequences)

    def test_two_hundred_requests(self):
        """Blocks are freed and reused in whatever order requests end, and chunks of long prompts
        run beside answers."""
        plan = self.plan(self.checkpoint, *self.OPTIONS, "--max-seqs", 5)
        trace = random_trace(7, 200, self.ids(), self.CONTEXT)
        together = self.check_against_alone(plan, trace)
        self.assertEqual(most_at_once(together), 5)
        withdrawn = [o for o in together if o["finish_reason"] == "cancelled"]
        self.assertGreater(len(withdrawn), 10)

    def test_shuffled_blocks(self):
        """No result depends on where in the pool a sequence's state lies."""
        plan = self.plan(self.checkpoint, *self.OPTIONS, "--max-seqs", 5)
        trace = random_trace(11, 60, self.ids(), self.CONTEXT)
        expected = self.outcomes(plan, trace)
        for seed in (1,) if INSTRUMENTED else (1, 2, 3):
            with self.subTest(seed=seed):
                found = self.replay(plan, trace, "--shuffle-blocks", seed)
                self.assertEqual(found, expected)

    def test_alone_is_the_reference(self):
        """What the others are compared with is right itself."""
        model, ids = load(self.checkpoint), self.ids()
        plan = self.plan(self.checkpoint, *self.OPTIONS, "--max-seqs", 5)
        prompts = [ids[i : i + 3 + 7 * i] for i in range(10)]
        trace = [{"prompt": p, "max_tokens": 12, "ignore_eos": True} for p in prompts]
        for prompt, outcome in zip(prompts, self.outcomes(plan, trace)):
            expected = forward.greedy(model, prompt, 12, stop=False)
            if expected.smallest_gap > 1e-3:
                self.assertEqual(outcome["ids"], expected.ids)


class ReplayStories(Replay):
    CONTEXT = 256
    OPTIONS = ("--kv", "f32", "--max-context", CONTEXT)

    def model(self):
        return data("stories260K/stories260K.gguf")

    def ids(self):
        model = load(self.checkpoint)
        return [1] + forward.greedy(model, [1], 255, stop=False).ids


if __name__ == "__main__":
    unittest.main()
