"""The weight types as numpy functions: float32 arrays to stored bytes and back.

Written from the format's definition (GGUF block layouts) and sharing nothing with the C++ table, so
that the two can disagree.
"""

from dataclasses import dataclass
from typing import Callable

import numpy as np


def _halves(blocks, offset):
    """The little-endian IEEE half at `offset` of every block, as a float32 column."""
    return blocks[:, offset : offset + 2].copy().view("<f2").astype(np.float32)


def _nibbles(blocks, offset):
    """32 values a block: the low nibbles of 16 bytes, then their high nibbles."""
    packed = blocks[:, offset : offset + 16]
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _pack_nibbles(values):
    values = values.astype(np.uint8)
    return values[:, :16] | values[:, 16:] << 4


def _half_bytes(column):
    return column.astype("<f2").view(np.uint8).reshape(-1, 2)


def _reciprocal(d):
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def _write_f32(x):
    return x.astype("<f4").view(np.uint8)


def _write_f16(x):
    return x.astype("<f2").view(np.uint8)


def _write_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 64, rounded).astype("<u2").view(np.uint8)


def _read_bf16(data):
    return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _write_q8_0(x):
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    scaled = x * _reciprocal(d)  # by the float32 scale, not by the half that is stored
    q = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled).astype(np.int8)
    return np.concatenate([_half_bytes(d), q.view(np.uint8)], axis=1)


def _read_q8_0(blocks):
    return _halves(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _write_q4_0(x):
    extreme = np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)
    d = extreme / np.float32(-8)
    q = np.minimum(15, np.trunc(x * _reciprocal(d) + np.float32(8.5)))
    return np.concatenate([_half_bytes(d), _pack_nibbles(q)], axis=1)


def _read_q4_0(blocks):
    return _halves(blocks, 0) * (_nibbles(blocks, 2) - 8)


def _write_q4_1(x):
    low = x.min(axis=1, keepdims=True)
    d = (x.max(axis=1, keepdims=True) - low) / np.float32(15)
    q = np.minimum(15, np.trunc((x - low) * _reciprocal(d) + np.float32(0.5)))
    return np.concatenate([_half_bytes(d), _half_bytes(low), _pack_nibbles(q)], axis=1)


def _read_q4_1(blocks):
    return _halves(blocks, 0) * _nibbles(blocks, 4) + _halves(blocks, 2)


@dataclass(frozen=True)
class WeightType:
    name: str
    gguf_id: int
    block_elements: int
    block_bytes: int
    write: Callable  # [blocks, block_elements] float32 -> [blocks, block_bytes] bytes
    read: Callable  # the inverse

    def byte_size(self, elements):
        if elements % self.block_elements:
            raise ValueError(f"{elements} elements are no whole number of {self.name} blocks")
        return elements // self.block_elements * self.block_bytes

    def quantise(self, values):
        """The stored bytes of `values` (any shape; rows must be whole numbers of blocks)."""
        self.byte_size(values.shape[-1])
        flat = np.ascontiguousarray(values, dtype=np.float32)
        return self.write(flat.reshape(-1, self.block_elements)).tobytes()

    def dequantise(self, data, shape):
        """Float32 values of `shape` from stored bytes."""
        elements = int(np.prod(shape))
        raw = np.frombuffer(data, np.uint8, self.byte_size(elements))
        return self.read(raw.reshape(-1, self.block_bytes)).reshape(shape)


WEIGHT_TYPES = [
    WeightType("f32", 0, 1, 4, _write_f32, lambda b: b.view("<f4").astype(np.float32)),
    WeightType("f16", 1, 1, 2, _write_f16, lambda b: b.view("<f2").astype(np.float32)),
    WeightType("bf16", 30, 1, 2, _write_bf16, _read_bf16),
    WeightType("q4_0", 2, 32, 18, _write_q4_0, _read_q4_0),
    WeightType("q4_1", 3, 32, 20, _write_q4_1, _read_q4_1),
    WeightType("q8_0", 8, 32, 34, _write_q8_0, _read_q8_0),
]
BY_NAME = {t.name: t for t in WEIGHT_TYPES}
BY_GGUF_ID = {t.gguf_id: t for t in WEIGHT_TYPES}
