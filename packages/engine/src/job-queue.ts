/** Jobs of one model's trainer run one after another; a second call waits for the first, whatever became of it. */
export class JobQueue {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(job: () => Promise<T>): Promise<T> {
    const result = this.last.then(job, job);
    this.last = result.catch(() => undefined);
    return result;
  }
}
