import type { Context, Hono } from "hono";
import { z } from "zod";
import type { SessionRecord } from "../model/sessions.js";
import { readFields } from "../protocol/read-fields.js";
import { refuseField } from "../request-error.js";
import type { Endpoint } from "./endpoint.js";
import { receiveJson } from "./receive-json.js";
import type { ServeEnv } from "./serve-env.js";

const MOST_TEXT = 65_536;

const createSchema = z.object({
  id: z.string().nullish(),
  seed: z.number().int().min(0).max(0xffff_ffff).nullish(),
  metadata: z.unknown().optional(),
});

const rewardSchema = z.object({
  reward: z.number().nullish(),
  rewards: z.record(z.string(), z.number()).nullish(),
  node: z.string().nullish(),
  text: z.string().max(MOST_TEXT).nullish(),
});

/** Routes that create, reward, end and read sessions. */
export function addSessionRoutes(app: Hono<ServeEnv>, endpoint: Endpoint): void {
  const { sessions, limits } = endpoint;
  const receive = (c: Context<ServeEnv>) => receiveJson(c, limits.bodyBytes);

  app.post("/sessions", async (c) => {
    endpoint.checkOpen();
    const hasBody = (c.req.header("content-length") ?? "0") !== "0" || c.req.header("transfer-encoding") !== undefined;
    const given = readFields(createSchema, hasBody ? await receive(c) : {});
    const { id, seed, metadata } = given;
    return c.json(describe(sessions.create({ id: id ?? undefined, seed: seed ?? undefined, metadata })), 201);
  });

  app.get("/sessions/:session", (c) => c.json(describe(sessions.get(c.req.param("session")))));

  app.post("/sessions/:session/reward", async (c) => {
    const record = sessions.get(c.req.param("session"));
    const { reward = null, rewards = null, node = null, text = null } = readFields(rewardSchema, await receive(c));
    if (reward === null && rewards === null && text === null)
      throw refuseField(
        "reward",
        "a number, a number for each role in rewards, or a text in the field text",
        "neither",
      );
    if (reward !== null) record.session.reward(reward, node ?? undefined);
    if (rewards !== null) record.session.reward(rewards);
    const given = { reward, ...(rewards === null ? {} : { rewards }), node, text };
    record.rewards.push(given);
    return c.json({ object: "session.reward", session: record.id, ...given });
  });

  app.post("/sessions/:session/end", (c) => c.json({ ...describe(sessions.end(c.req.param("session"))), ended: true }));

  app.get("/sessions/:session/trajectory", (c) => {
    const record = sessions.get(c.req.param("session"));
    return c.json({ ...describe(record), ...record.session.describe(), rewards: record.rewards });
  });
}

function describe({ id, metadata, running, tokens }: SessionRecord) {
  return { object: "session", id, base_path: `/sessions/${id}/v1`, running, tokens, metadata: metadata ?? null };
}
