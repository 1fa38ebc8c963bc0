// real-model.json as tables in Markdown.
import { writeFileSync } from "node:fs";

const exact = (value) => value.toExponential(1);
const table = (head, rows) => [
  `| ${head.join(" | ")} |`,
  `|${head.map((_, i) => (i === 0 ? " --- " : " --: ")).join("|")}|`,
  ...rows.map((row) => `| ${row.join(" | ")} |`),
];

export function writeReport(path, report) {
  const { machine, model, versions, channels, scores = [], gradients = [], greedy = [], adapter = [] } = report;
  const { tokenizer, renderings, deltas } = report;
  const lines = [
    "# A published model, beside code of others",
    "",
    `\`${model.file}\`, SHA-256 \`${model.sha256}\`. ${machine.cpu}, Node ${machine.node.slice(1)}.`,
  ];
  if (versions)
    lines.push(
      `Oracle: PyTorch ${versions.torch}, transformers ${versions.transformers}, \`LlamaForCausalLM\` in float64 over the file's own`,
      "dequantized weights, which gguf-py's reader confirms. Norms and angles, which transformers computes in float32, are computed in float64 there.",
    );
  if (tokenizer)
    lines.push(
      ...["", "## Tokens, renderings, deltas", ""],
      `- ${tokenizer.strings} strings, ${tokenizer.tokens} tokens: ${tokenizer.plainDiffers} differ from Hugging Face's tokenizers where control tokens`,
      `  are text, ${tokenizer.specialDiffers} where they are tokens; ${tokenizer.notRestored} are not restored from their tokens. (The tokenizer that transformers`,
      `  itself makes of the GGUF gives other ids for ${tokenizer.rebuiltByTransformersDiffers}: it does not split digits.)`,
      `- ${renderings.renderings} renderings of ${renderings.conversations} conversations by ${renderings.templates} templates, beside transformers'`,
      `  \`apply_chat_template\`: ${renderings.differ.reduce((sum, row) => sum + row.renderings, 0)} differ, ${renderings.refusedByBoth} are refused by both.`,
      ...renderings.differ.map(
        (row) => `  - ${row.template}, ${row.renderings}: transformers says "${row.transformers}".`,
      ),
      `- Deltas beside whole renderings: ${Object.entries(deltas)
        .map(
          ([outcome, titles]) => `${titles.length} ${outcome}${outcome === "equal" ? "" : ` (${titles.join(", ")})`}`,
        )
        .join(", ")}.`,
    );
  if (scores.length > 0) {
    const cells = ({ tokens, mean, p99, max }) => [tokens, ...[mean, p99, max].map(exact)];
    lines.push(
      ...["", "## Scores: distance of a logprob from the oracle's, in nats", ""],
      ...table(
        [
          "type",
          "who",
          ...["text", "chat"].flatMap((kind) => ["tokens", "mean", "99 %", "most"].map((what) => `${kind}, ${what}`)),
          "measured",
        ],
        scores.map(({ type, who, text, chat, measured }) => [type, who, ...cells(text), ...cells(chat), measured]),
      ),
      "",
      `The largest channel of the residual stream stands ${Math.round(channels.residual)} times above the median one, of what products take ${Math.round(channels.products)} times.`,
    );
  }
  if (gradients.length > 0)
    lines.push(
      ...["", "## Gradients, beside PyTorch's autograd", ""],
      ...table(
        [
          "type",
          "trained",
          "kernel",
          "loss",
          "all tensors",
          "median tensor",
          "worst tensor",
          "worst cosine",
          "worst",
          "measured",
        ],
        gradients.map((row) => [
          ...[row.type, row.trainable, row.kernel, exact(row.loss), exact(row.whole), exact(row.median)],
          ...[exact(row.worstError), row.worstCosine.toFixed(6), `\`${row.worstTensor}\``, row.measured],
        ]),
      ),
      "",
      "Relative errors in the Euclidean norm.",
    );
  if (adapter.length > 0)
    lines.push(
      ...["", "## An adapter that Cria trained: distance of logprobs, in nats", ""],
      ...table(
        [
          "type",
          "Cria, transformers (merged): mean",
          "most",
          "Cria, stock llama.cpp: mean",
          "most",
          "stock, transformers: mean",
          "what it moved: mean",
          "measured",
        ],
        adapter.map(({ type, transformers, stock, stockAndTransformers, moved, measured }) => [
          ...[type, exact(transformers.mean), exact(transformers.max), exact(stock.mean), exact(stock.max)],
          ...[exact(stockAndTransformers.mean), exact(moved.mean), measured],
        ]),
      ),
    );
  if (greedy.length > 0)
    lines.push(
      ...["", "## Greedy tokens, beside stock llama.cpp", ""],
      ...table(
        ["type", "kernel", "prompts", "equal to the end", "where the others part", "measured"],
        greedy.map(({ type, kernel, prompts, count, equal, parted, measured }) => [
          ...[type, kernel, `${prompts} of ${count} tokens`, equal],
          parted.map(({ token, margin }) => `token ${token}, a lead of ${margin.toPrecision(2)}`).join("; ") || "-",
          measured,
        ]),
      ),
      "",
      "A lead: by how much the logit of stock's token stands above the second one where the two part.",
    );
  lines.push("", "Again: `node --conditions=cria-source --import tsx scripts/nightly/real-model.mjs`.", "");
  writeFileSync(path, lines.join("\n"));
}
