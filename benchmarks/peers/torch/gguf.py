"""Reads GGUF files: metadata, and tensors dequantized to F32. F32, F16 and Q8_0 only: what the benchmarks use."""
import mmap
import struct

import numpy as np
import torch

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
F32, F16, Q8_0 = 0, 1, 8


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 4
        version, tensor_count, value_count = self.scalar("<I"), self.scalar("<Q"), self.scalar("<Q")
        assert self.bytes[:4] == b"GGUF" and version >= 2, f"{path} is not a GGUF file of version 2 or later"
        self.metadata = {}
        for _ in range(value_count):
            key = self.string()
            self.metadata[key] = self.value(self.scalar("<I"))
        self.infos = {}
        for _ in range(tensor_count):
            name = self.string()
            shape = [self.scalar("<Q") for _ in range(self.scalar("<I"))]
            self.infos[name] = (shape, self.scalar("<I"), self.scalar("<Q"))
        alignment = self.metadata.get("general.alignment", 32)
        self.data = (self.at + alignment - 1) // alignment * alignment

    def scalar(self, code):
        (value,) = struct.unpack_from(code, self.bytes, self.at)
        self.at += struct.calcsize(code)
        return value

    def string(self):
        length = self.scalar("<Q")
        self.at += length
        return self.bytes[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            of, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(of) for _ in range(count)]
        return self.scalar(SCALARS[kind])

    def tensor(self, name):
        """A tensor as F32; a linear layer's weight is [outputs, inputs]."""
        shape, kind, offset = self.infos[name]
        count, at = int(np.prod(shape)), self.data + offset
        if kind == F32:
            values = np.frombuffer(self.bytes, np.float32, count, at).copy()
        elif kind == F16:
            values = np.frombuffer(self.bytes, np.float16, count, at).astype(np.float32)
        elif kind == Q8_0:
            blocks = np.frombuffer(self.bytes, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, at)
            values = (blocks["q"].astype(np.float32) * blocks["d"].astype(np.float32)[:, None]).reshape(-1)
        else:
            raise ValueError(f"{name}: GGUF type {kind} is not F32, F16 or Q8_0")
        return torch.from_numpy(values.reshape(shape[::-1]))
