const queue: (() => void)[] = [];
let scheduled = false;

/**
 * Waits for a turn on the event loop. When hundreds of conversations can go on at once (a batch was decoded, many tools
 * answered), each renders and tokenizes in a separate iteration of the event loop, so that timers and I/O run in
 * between.
 */
export function takeTurn(): Promise<void> {
  return new Promise((resolve) => {
    queue.push(resolve);
    schedule();
  });
}

function schedule(): void {
  if (scheduled || queue.length === 0) return;
  scheduled = true;
  setImmediate(() => {
    scheduled = false;
    queue.shift()?.();
    schedule();
  });
}
