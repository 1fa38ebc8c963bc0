// The desk of a library: its books, in memory, and the two tools that work with them.
import { type BaseTool, tool } from "cria";
import { z } from "zod";
import { makeRandom, pick, shuffle } from "../learn/random.js";

export interface Book {
  title: string;
  /** A number of four digits. */
  id: number;
  /** Date of return, if it is lent today. */
  due: string;
  /** Whether training never sees its title. */
  isHeldOut: boolean;
}

const list = (words: string) => words.split(", ");
const adjectives = list(
  "Silver, Silent, Broken, Golden, Hidden, Distant, Frozen, Crimson, Wandering, Forgotten, Burning, Gentle, Hollow, Restless, Secret, Stolen",
);
const things = list(
  "Harbor, Garden, Mirror, Lantern, River, Castle, Orchard, Compass, Meadow, Letter, Clock, Island, Bridge, Violin, Kingdom, Shadow",
);
const people = list(
  "Sailor, Painter, Doctor, Baker, Captain, Widow, Gardener, Thief, Teacher, Hunter, Pilot, Clockmaker, Beekeeper, Singer, Judge, Fisherman",
);
const places = list(
  "Lisbon, Cairo, Vienna, Bombay, Havana, Prague, Dublin, Kyoto, Naples, Boston, Tangier, Oslo, Lima, Athens, Quebec, Sydney",
);
const months = list("January, February, March, April, May, June, July, August, September, October, November, December");

const heldOutTitles = 200;

/** The books of a library: the same seed gives the same ones. */
export function makeCatalogue(seed: number): Book[] {
  const random = makeRandom(seed);
  const pairs = <T>(first: readonly T[], second: readonly T[], join: (a: T, b: T) => string) =>
    first.flatMap((a) => second.map((b) => join(a, b)));
  const titles = [
    ...pairs(adjectives, things, (adjective, thing) => `The ${adjective} ${thing}`),
    ...pairs(people, places, (person, place) => `The ${person} of ${place}`),
    ...pairs(things, people, (thing, person) => `A ${thing} for the ${person}`),
    ...pairs(adjectives, places, (adjective, place) => `${adjective} Days in ${place}`),
  ];
  const ids = shuffle(
    Array.from({ length: 9000 }, (_, i) => 1000 + i),
    random,
  );
  return shuffle(titles, random).map((title, i) => ({
    title,
    id: ids[i]!,
    due: `${1 + Math.floor(random() * 28)} ${pick(months, random)}`,
    isHeldOut: i < heldOutTitles,
  }));
}

export const catalogue: readonly Book[] = makeCatalogue(1);

const byTitle = new Map(catalogue.map((book) => [book.title.toLowerCase(), book]));
const byId = new Map(catalogue.map((book) => [book.id, book]));

export const search = tool({
  name: "search",
  description: "the id of the book with a title",
  inputSchema: z.object({ title: z.string().describe("The whole title") }),
  execute: ({ title }) => byTitle.get(title.trim().toLowerCase())?.id ?? "error: no book has this title",
});

export const loan = tool({
  name: "loan",
  description: "lends the book with an id, and gives the date when it is due",
  inputSchema: z.object({ id: z.int().describe("What the search gave") }),
  /** Loans of this conversation: others have the same books, and none sees another's loans. */
  create: () => new Set<number>(),
  execute: ({ id }, { state: lent }) => {
    const book = byId.get(id);
    if (book === undefined) return "error: no book has this id";
    if (lent.has(id)) return "error: this book is on loan";
    lent.add(id);
    return book.due;
  },
});

/** The tools that `tools.yaml` names. */
export const tools: readonly BaseTool[] = [search, loan];
