/**
 * Results of a function by the text that they follow from, the newest `most` of them. Conversations of a group have many
 * texts in common: what the template prints, and what their tools answer.
 */
export class RecentResults<T> {
  private readonly results = new Map<string, T>();

  /**
   * @param most number of results that are kept.
   * @param longest UTF-16 units; results of longer keys are not kept.
   */
  constructor(
    private readonly most: number,
    private readonly longest: number,
  ) {}

  get(key: string, compute: () => T): T {
    const known = this.results.get(key);
    if (known !== undefined) return known;
    const result = compute();
    if (key.length > this.longest) return result;
    if (this.results.size >= this.most) this.results.delete(this.results.keys().next().value!);
    this.results.set(key, result);
    return result;
  }
}
