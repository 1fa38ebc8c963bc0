/** Runs the jobs of one model's trainer one after another: a second call waits until the first has ended or failed. */
export class JobQueue {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(job: () => Promise<T>): Promise<T> {
    const result = this.last.then(job, job);
    this.last = result.catch(() => undefined);
    return result;
  }
}
