"""GGUF version 3, read and written: metadata, and tensors as float32.

For files that these tests made or know; the C++ reader is the one that must survive hostile files.
"""

import mmap
import struct
from dataclasses import dataclass

import numpy as np

from weight_types import BY_GGUF_ID, BY_NAME

ALIGNMENT = 32
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_TYPE_IDS = {
    "u8": 0,
    "i8": 1,
    "u16": 2,
    "i16": 3,
    "u32": 4,
    "i32": 5,
    "f32": 6,
    "bool": 7,
    "string": 8,
    "u64": 10,
    "i64": 11,
    "f64": 12,
}


@dataclass
class TensorInfo:
    shape: tuple  # row-major, outermost first: the reverse of the file's order
    type_id: int
    offset: int  # from the start of the file


class GgufFile:
    """`metadata` by key; `tensor(name)` dequantises to float32."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._position = 0
        magic, version = self._take(4), self._scalar("<I")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: not a GGUF file of version 2 or 3")
        tensor_count, pair_count = self._scalar("<Q"), self._scalar("<Q")
        self.metadata = {}
        for _ in range(pair_count):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("<I"))
        self.tensors = {}
        for _ in range(tensor_count):
            name = self._string()
            dimensions = [self._scalar("<Q") for _ in range(self._scalar("<I"))]
            self.tensors[name] = TensorInfo(
                tuple(reversed(dimensions)), self._scalar("<I"), self._scalar("<Q")
            )
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        start = -(-self._position // alignment) * alignment
        for info in self.tensors.values():
            info.offset += start

    def _take(self, count):
        data = self._map[self._position : self._position + count]
        self._position += count
        return data

    def _scalar(self, layout):
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _string(self):
        return self._take(self._scalar("<Q")).decode("utf-8", "surrogateescape")

    def _value(self, kind):
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            element, count = self._scalar("<I"), self._scalar("<Q")
            return [self._value(element) for _ in range(count)]
        return self._scalar(_SCALARS[kind])

    def tensor(self, name):
        info = self.tensors[name]
        weight_type = BY_GGUF_ID[info.type_id]
        size = weight_type.byte_size(int(np.prod(info.shape)))
        return weight_type.dequantise(self._map[info.offset : info.offset + size], info.shape)


def _encode_string(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def _encode(kind, value):
    return (
        _encode_string(value) if kind == "string" else struct.pack(_SCALARS[_TYPE_IDS[kind]], value)
    )


def write_gguf(path, metadata, tensors):
    """`metadata`: (key, type, value) triples, an array's type being `[u32]`; `tensors`: (name, type
    name, float32 array) triples, stored in the order given."""
    header = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, kind, value in metadata:
        header.append(_encode_string(key))
        if kind.startswith("["):
            element = kind.strip("[]")
            header.append(struct.pack("<IIQ", _ARRAY, _TYPE_IDS[element], len(value)))
            header.extend(_encode(element, item) for item in value)
        else:
            header.append(struct.pack("<I", _TYPE_IDS[kind]) + _encode(kind, value))
    offset, bodies = 0, []
    for name, type_name, values in tensors:
        weight_type = BY_NAME[type_name]
        body = weight_type.quantise(values)
        header.append(_encode_string(name))
        header.append(
            struct.pack(
                f"<I{values.ndim}QIQ",
                values.ndim,
                *reversed(values.shape),
                weight_type.gguf_id,
                offset,
            )
        )
        bodies.append(body + bytes(-len(body) % ALIGNMENT))
        offset += len(bodies[-1])
    start = b"".join(header)
    with open(path, "wb") as file:
        file.write(start + bytes(-len(start) % ALIGNMENT))
        file.writelines(bodies)


def interleave_heads(values, heads):
    """Rows of each head from half-split to interleaved order: row 2i is the old row i, row 2i + 1
    the old i + width / 2. That is how converters that descend from llama's leave q and k."""
    width = len(values) // heads
    split = values.reshape(heads, 2, width // 2, -1)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(values.shape)
