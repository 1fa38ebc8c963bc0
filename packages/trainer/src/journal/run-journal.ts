import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AnswerJournal, ConversationJournal, JournalPlace, JournalQuestion } from "@cria/rollout";
import { guardRunWrite, JOURNAL_FOLDER } from "../checkpoints/run-folder.js";
import { type JournalEntry, JournalFile } from "./journal-file.js";

/** The conversations of a step: those that it learns from, or those of its baselines. */
export type JournalPass = "sampled" | "greedy";

/**
 * Records what a run's tools, interactions and judges answer until a checkpoint holds the step. After a kill the
 * conversations begin again from their seeds, and hear the recorded answers. Entries are found by their place in the
 * schedule: step, pass, row, sample, attempt, turn and call.
 */
export class RunJournal {
  private readonly steps = new Map<number, StepJournal>();

  private constructor(
    private readonly folder: string,
    private readonly warn: (text: string) => void,
  ) {}

  /**
   * Opens the journal of a run folder.
   * @param done steps that its checkpoint holds; their entries are dropped.
   */
  static async open(runFolder: string, done: number, warn: (text: string) => void): Promise<RunJournal> {
    const journal = new RunJournal(join(runFolder, JOURNAL_FOLDER), warn);
    await journal.drop(done);
    return journal;
  }

  /** The journal of a step's conversations. Errors of its file are thrown when something is asked. */
  at(step: number, pass: JournalPass): AnswerJournal {
    const journal = this.steps.get(step) ?? new StepJournal(this.nameFile(step), this.warn);
    this.steps.set(step, journal);
    return { open: (place) => journal.open(pass, place) };
  }

  /** Drops the entries of all steps up to `step`, because a checkpoint holds them. */
  async drop(step: number): Promise<void> {
    for (const [number, journal] of this.steps) {
      if (number > step) continue;
      this.steps.delete(number);
      await journal.close();
    }
    for (const name of await readdir(this.folder).catch(() => []))
      if (Number.parseInt(name, 10) <= step)
        await guardRunWrite(this.folder, () => rm(join(this.folder, name), { force: true }));
  }

  async close(): Promise<void> {
    for (const journal of this.steps.values()) await journal.close();
    this.steps.clear();
  }

  private nameFile(step: number): string {
    return join(this.folder, `${step}.jsonl`);
  }
}

class StepJournal {
  private readonly file: JournalFile;
  /** Entries of an earlier process. */
  private recorded: Promise<Map<string, JournalEntry>> | undefined;
  private hasWarned = false;

  constructor(
    path: string,
    private readonly warn: (text: string) => void,
  ) {
    this.file = new JournalFile(path);
  }

  open(pass: JournalPass, { uid, sample, attempt }: JournalPlace): ConversationJournal {
    return {
      ask: async <T>(question: JournalQuestion, ask: () => Promise<T>): Promise<T> => {
        const { kind, name, turn, call, asked } = question;
        const place = JSON.stringify([pass, uid, sample, attempt, turn, call, kind, name]);
        this.recorded ??= this.file.read();
        const entry = (await this.recorded).get(place);
        if (entry?.asked === asked) {
          if (question.keepsState) await ask();
          return entry.answer as T;
        }
        if (entry) this.warnOfOther(kind, name);
        const answer = await ask();
        if (!question.signal?.aborted) await this.file.append({ place, asked, answer });
        return answer;
      },
    };
  }

  close(): Promise<void> {
    return this.file.close();
  }

  private warnOfOther(kind: JournalQuestion["kind"], name: string): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    this.warn(
      `a conversation went otherwise than before the run stopped, and what is asked then is asked again (${kind} ${name}): ${this.file.path} has no answer to it. Settings, model, data or the machine have changed`,
    );
  }
}
