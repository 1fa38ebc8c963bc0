const queue: (() => void)[] = [];
let scheduled = false;

/**
 * Waits for the next iteration of the event loop. When hundreds of conversations can continue at once (after a
 * decoded batch, or many tool answers), each renders and tokenizes in its own iteration, so that timers and I/O run
 * in between.
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
