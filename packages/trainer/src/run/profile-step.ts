import { Session } from "node:inspector/promises";
import { writeAtomically } from "../checkpoints/run-folder.js";

/** Runs work under V8's CPU profiler and writes the profile; Chrome's developer tools and speedscope open the file. */
export async function profileStep<T>(file: string, work: () => Promise<T>): Promise<T> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    const result = await work();
    const { profile } = await session.post("Profiler.stop");
    await writeAtomically(file, JSON.stringify(profile));
    return result;
  } finally {
    session.disconnect();
  }
}
