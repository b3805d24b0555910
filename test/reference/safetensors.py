"""Safetensors files and Hugging Face's sharded sets of them, read as numpy arrays and written."""

import json
import os
import struct

import numpy as np

from weight_types import BY_NAME

_FLOATS = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_INTEGERS = {"I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_safetensors(path):
    """Every tensor of the file by name: float types as float32, integers as they are."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        kind, shape = entry["dtype"], entry["shape"]
        if kind in _FLOATS:
            tensors[name] = BY_NAME[_FLOATS[kind]].dequantise(data[begin:end], shape)
        elif kind == "F64":
            tensors[name] = np.frombuffer(data[begin:end], "<f8").reshape(shape)
        else:
            tensors[name] = np.frombuffer(data[begin:end], _INTEGERS[kind]).reshape(shape)
    return tensors


def write_safetensors(path, tensors):
    """`tensors`: (name, `f32` | `f16` | `bf16`, float32 array) triples."""
    header, bodies, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, type_name, values in tensors:
        body = BY_NAME[type_name].quantise(values)
        header[name] = {
            "dtype": type_name.upper(),
            "shape": list(values.shape),
            "data_offsets": [offset, offset + len(body)],
        }
        bodies.append(body)
        offset += len(body)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(bodies)


INDEX = "model.safetensors.index.json"


def read_folder(folder):
    """The tensors of a folder that holds `model.safetensors` or shards with an index."""
    index = os.path.join(folder, INDEX)
    if not os.path.exists(index):
        return read_safetensors(os.path.join(folder, "model.safetensors"))
    with open(index) as file:
        weight_map = json.load(file)["weight_map"]
    shards = {
        shard: read_safetensors(os.path.join(folder, shard)) for shard in set(weight_map.values())
    }
    return {name: shards[shard][name] for name, shard in weight_map.items()}


def write_folder(folder, tensors, shards=1):
    """As transformers saves: one file, or `shards` files of consecutive tensors and an index."""
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return
    bounds = [len(tensors) * i // shards for i in range(shards + 1)]
    weight_map, total = {}, 0
    for i in range(shards):
        part = tensors[bounds[i] : bounds[i + 1]]
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        write_safetensors(os.path.join(folder, name), part)
        weight_map.update({tensor: name for tensor, _, _ in part})
        total += sum(BY_NAME[kind].byte_size(values.size) for _, kind, values in part)
    with open(os.path.join(folder, INDEX), "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, file, indent=2)
