"""Token ids by Hugging Face's tokenizers, and renderings by transformers' apply_chat_template. One JSON request on standard input, one
JSON answer on standard output.

  {"command": "tokenize", "model": FILE, "texts": [...]}
      -> {"plain": [[ID]], "special": [[ID]], "rebuilt": N}
      The vocabulary and merges of the GGUF in a byte-level BPE that splits digits, as SmolLM2's tokenizer.json has it. plain: what
      spells a special token is text. rebuilt: texts of which the tokenizer that transformers makes of the GGUF gives other ids.
  {"command": "render", "cases": [{"template", "messages", "tools", "prompt", "variables"}]}
      -> {"texts": [text or null, ...], "errors": [...]}
"""

import json
import sys
from pathlib import Path

import transformers
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

transformers.logging.set_verbosity_error()

CONTROL = 3


def build(file):
    fields = GGUFReader(file).fields
    read = lambda key: fields[f"tokenizer.ggml.{key}"].contents()
    words, kinds = read("tokens"), read("token_type")
    merges = [tuple(pair.split(" ", 1)) for pair in read("merges")]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(word, special=True, normalized=False) for word, kind in zip(words, kinds) if kind == CONTROL]
    )
    return tokenizer


def tokenize(request):
    tokenizer = build(request["model"])
    texts = request["texts"]
    special = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    tokenizer.encode_special_tokens = True
    plain = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    path = Path(request["model"])
    rebuilt = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    theirs = rebuilt(texts, add_special_tokens=False)["input_ids"]
    return {"plain": plain, "special": special, "rebuilt": sum(a != b for a, b in zip(theirs, special))}


def render(request):
    texts, errors = [], []
    for case in request["cases"]:
        try:
            rendered, _ = render_jinja_template(
                conversations=[case["messages"]],
                tools=case["tools"] or None,
                chat_template=case["template"],
                add_generation_prompt=case["prompt"],
                **case["variables"],
            )
            texts.append(rendered[0])
            errors.append(None)
        except Exception as error:  # A template's own complaint is an answer.
            texts.append(None)
            errors.append(str(error)[:300])
    return {"texts": texts, "errors": errors}


if __name__ == "__main__":
    request = json.load(sys.stdin)
    json.dump({"tokenize": tokenize, "render": render}[request["command"]](request), sys.stdout)
