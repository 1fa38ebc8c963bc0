"""Byte-level BPE from a GGUF's vocabulary, with the embedded policy's pre-tokenizer: digits one by one."""
import re

PIECES = re.compile(r"[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def printable_bytes():
    """GPT-2's printable stand-in for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


class Tokenizer:
    def __init__(self, metadata):
        self.tokens = metadata["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        merges = metadata["tokenizer.ggml.merges"]
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self.to_text = printable_bytes()
        self.to_byte = {text: byte for byte, text in self.to_text.items()}
        types = metadata["tokenizer.ggml.token_type"]
        self.special = {token for token, kind in zip(self.tokens, types) if kind in (3, 4)}
        self.split = re.compile("(" + "|".join(re.escape(token) for token in self.special) + ")")
        self.cache = {}

    def encode_piece(self, piece):
        if piece in self.cache:
            return self.cache[piece]
        parts = [self.to_text[byte] for byte in piece.encode()]
        while len(parts) > 1:
            rank, i = min((self.ranks.get(pair, 1 << 30), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == 1 << 30:
                break
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        self.cache[piece] = [self.ids[part] for part in parts]
        return self.cache[piece]

    def encode(self, text):
        ids = []
        for part in self.split.split(text):
            if part in self.special:
                ids.append(self.ids[part])
            else:
                for piece in PIECES.findall(part):
                    ids += self.encode_piece(piece)
        return ids

    def decode(self, ids):
        text = b""
        for i in ids:
            token = self.tokens[i]
            text += token.encode() if token in self.special else bytes(self.to_byte[c] for c in token)
        return text.decode("utf-8", "replace")
