// Results of this machine (x) that must agree with those of an emulated platform (e), with bounds. Each comparison returns its
// findings, in words.

const difference = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i])));
const norm = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
const short = (x) => x.toExponential(1);

/** Largest ratio of a tensor's difference to its norm. */
function compareGradients(ours, theirs) {
  const ratios = Object.entries(ours).map(([name, values]) => {
    const others = theirs[name];
    return norm(values.map((x, i) => x - others[i])) / norm(values);
  });
  return { worst: Math.max(...ratios), count: ratios.length };
}

function compareSteps(ours, theirs) {
  const ratio = (key) => Math.max(...ours.map((step, i) => Math.abs(step[key] / theirs[i][key] - 1)));
  return { loss: ratio("loss"), gradNorm: ratio("gradNorm") };
}

const phases = ["generated", "after"];

/** Largest difference of decoding's logprobs and score()'s, on one platform. */
const compareWithScores = ({ f32 }) =>
  Math.max(
    ...phases.flatMap((phase) => f32[phase].results.map(({ logprobs, scores }) => difference(logprobs, scores))),
  );

export const compareRuns = [
  {
    name: "F32: the same tokens, greedy and sampled, before and after training",
    compare: ({ f32: x }, { f32: e }, expect) => {
      let worst = 0;
      for (const phase of phases) {
        for (const [i, { tokenIds, logprobs }] of x[phase].results.entries()) {
          const other = e[phase].results[i];
          expect(JSON.stringify(tokenIds) === JSON.stringify(other.tokenIds), `${phase} ${i}: other tokens`);
          worst = Math.max(worst, difference(logprobs, other.logprobs));
        }
        worst = Math.max(worst, difference(x[phase].scores, e[phase].scores));
      }
      expect(worst < 2e-5, `logprobs differ by ${worst}`);
      return `logprobs within ${short(worst)}`;
    },
  },
  {
    name: "F32: decoding and score() agree on each",
    compare: (x, e, expect) => {
      const [ours, theirs] = [compareWithScores(x), compareWithScores(e)];
      expect(Math.max(ours, theirs) < 2e-6, `here: ${ours}, emulated: ${theirs}`);
      return `here within ${short(ours)}, emulated ${short(theirs)}`;
    },
  },
  ...[
    { key: "f32", name: "F32", gradients: 1e-5, loss: 1e-5, gradNorm: 1e-5 },
    { key: "q8", name: "Q8_0", gradients: 5e-3, loss: 2e-3, gradNorm: 1e-2 },
  ].flatMap(({ key, name, ...bounds }) => [
    {
      name: `${name}: gradients`,
      compare: (x, e, expect) => {
        const { worst, count } = compareGradients(x[key].trained.gradients, e[key].trained.gradients);
        expect(count === 28 && worst < bounds.gradients, `${count} tensors differ by up to ${worst}`);
        return `${count} tensors within ${short(worst)}`;
      },
    },
    {
      name: `${name}: five steps of AdamW`,
      compare: (x, e, expect) => {
        const { loss, gradNorm } = compareSteps(x[key].trained.steps, e[key].trained.steps);
        expect(loss < bounds.loss && gradNorm < bounds.gradNorm, `loss ${loss}, gradient norm ${gradNorm}`);
        const steps = e[key].trained.steps;
        expect(steps.at(-1).loss < steps[0].loss, "the loss does not fall");
        return `loss within ${short(loss)}, gradient norm within ${short(gradNorm)}, relative`;
      },
    },
  ]),
];
