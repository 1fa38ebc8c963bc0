// Fresh adapters have B = 0, and then A has no gradient: numbers between -0.01 and 0.01 take their place, the same each time.
export async function fillAdapter(model) {
  let state = 1;
  const draw = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  for (const { name, shape } of model.listTensors().filter(({ name }) => name.endsWith(".lora_b"))) {
    const length = shape.reduce((product, n) => product * n, 1);
    await model.writeTensor(
      name,
      Float32Array.from({ length }, () => 0.02 * draw()),
    );
  }
}
