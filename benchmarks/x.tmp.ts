import { loadModel } from "@cria/engine";
import { embeddedPolicyPath } from "@cria/models";
const m = await loadModel({ path: process.argv[2] ?? embeddedPolicyPath, threads: 1, contextSize: 255, maxSequences: 65, device: "cpu", kvType: "f16", flashAttention: true, deterministic: false });
for (const [n, steps] of [[64, 200]] as const) for (let r = 0; r < 3; r++) {
  const s = Array.from({ length: n }, () => m.createSequence());
  await Promise.all(s.map((x) => x.prefill([300, 301, 302])));
  const a = m.schedulerStats(); const t = performance.now(); const c = process.cpuUsage();
  await Promise.all(s.map((x, i) => x.generate([305], { maxTokens: steps, temperature: 1, seed: i, stopTokens: [] })));
  const wall = performance.now() - t; const b = m.schedulerStats();
  const llama = 1e3 * (b.llamaSeconds - a.llamaSeconds), busy = 1e3 * (b.busySeconds - a.busySeconds); const k = 1e3 / (n * steps);
  console.log(n, "us/token: wall", (wall * k).toFixed(1), "llama", (llama * k).toFixed(1), "busy-llama", ((busy - llama) * k).toFixed(2), "wall-busy", ((wall - busy) * k).toFixed(2), "calls", b.decodeCalls - a.decodeCalls, "cpu", ((process.cpuUsage(c).user) / 1e3 * k).toFixed(1));
  for (const x of s) x.dispose();
}
