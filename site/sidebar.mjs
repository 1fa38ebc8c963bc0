/** The pages of docs/ in the order in which one reads them: files without their ending. A page's title is its first heading. */
export const groups = [
  { title: "Begin", pages: ["start", "agents", "own-model"] },
  {
    title: "Train",
    pages: ["tasks", "rewards", "judges", "teachers", "sft", "runs", "sampling-ahead", "coach", "view", "images", "cluster"],
  },
  { title: "Use what was trained", pages: ["serve"] },
  {
    title: "More",
    pages: [
      "verl",
      "testing",
      "replay",
      "determinism",
      "tracing",
      "cluster-security",
      "cluster-trust",
      "cluster-sizes",
    ],
  },
  { title: "How it works", pages: ["how-it-works", "episodes", "algorithms", "performance", "gpu", "real-models"] },
  {
    title: "Reference",
    pages: [
      "commands",
      "config",
      "metrics",
      "coach-rules",
      "verl-keys",
      "verl-scripts",
      "algorithm-settings",
      "differences",
      "dump",
      "endpoint",
      "clients",
      "view-api",
      "image-models",
      "check-model",
      "glossary",
    ],
  },
];
