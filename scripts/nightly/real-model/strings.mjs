// Strings that tokenizers are compared on: prose, code, numbers, many scripts, emoji, odd spaces, broken surrogates'
// neighbours, and control tokens spelled as text.
import { makeUniform } from "../../../packages/core/src/index.ts";

const WORDS =
  "the llama of a small model learns to call tools when it should and to answer plainly when it need not".split(" ");
const CODE = [
  "const x = await f(a, { b: [1, 2] });",
  "def g(n):\n    return n ** 2\n",
  "for (;;) {\n\ti += 1;\n}",
  "SELECT * FROM t WHERE a='b';",
  '<div class="x">&amp;</div>',
  "#include <vector>\n\n\n",
  "x==y!=z<=w>>=1",
  "don't won't I'LL they've WE'RE",
];
const CONTROL = [
  "<|im_start|>",
  "<|im_end|>",
  "<|endoftext|>",
  "<|im_start|>user\n",
  "<|im_end",
  "<repo_name>",
  "<file_sep>",
  "<jupyter_start>",
  "<empty_output>",
];
const SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "   \n "];
const RANGES = [
  [0x20, 0x7e],
  [0xa0, 0x24f],
  [0x370, 0x3ff],
  [0x400, 0x4ff],
  [0x590, 0x5ff],
  [0x600, 0x6ff],
  [0x900, 0x97f],
  [0xe00, 0xe7f],
  [0x3040, 0x30ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0x2000, 0x206f],
  [0x20a0, 0x20bf],
  [0x2190, 0x22ff],
  [0x300, 0x36f],
  [0x1f300, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x10400, 0x1044f],
  [0xff00, 0xffef],
  [0x660, 0x669],
  [0x966, 0x96f],
  [0x2460, 0x24ff],
  [0xfe00, 0xfe0f],
];

export function makeStrings(count, seed = 1) {
  const uniform = makeUniform(seed);
  const draw = (n) => Math.floor(uniform() * n);
  const pick = (list) => list[draw(list.length)];
  const number = () => String(draw(10 ** (1 + draw(9)))) + (draw(3) === 0 ? `.${draw(1000)}` : "");
  const letters = () => {
    const [begin, end] = pick(RANGES);
    return Array.from({ length: 1 + draw(12) }, () => String.fromCodePoint(begin + draw(end - begin + 1))).join("");
  };
  const parts = [
    () => pick(WORDS),
    () => pick(WORDS).toUpperCase(),
    number,
    letters,
    letters,
    () => pick(CODE),
    () => pick(CONTROL),
    () => pick(SPACES),
  ];
  return Array.from({ length: count }, () => {
    const length = 1 + draw(16);
    let text = "";
    for (let i = 0; i < length; i++) text += pick(parts)() + (draw(2) === 0 ? pick(SPACES) : "");
    return text;
  });
}
