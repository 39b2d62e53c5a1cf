import { describe, expect, it } from "vitest";
import { json, type PlayedRequest } from "./stage/gateway.js";
import { Reader, Stage } from "./stage/stage.js";

describe("long poll", () => {
  const stageOf = (pollMs: number) => {
    const stage = new Stage();
    let polls = 0;
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = (request) => {
      const { url } = request;
      if (!url.pathname.endsWith("/messages")) return new Response("<html>", { status: 502 });
      const n = ++polls;
      const since = url.searchParams.get("since") ?? "e.f.0";
      const seq = Number(since.split(".")[2]);
      const delta = { kind: "delta", run: "r", text: "x", at: seq };
      const welcome = {
        type: "control",
        payload: { kind: "welcome", connection: `p${n}`, cursor: since, input_seq: 0 },
      };
      const frames = n === 1 ? [welcome] : [welcome, { type: "text", seq: seq + 1, payload: delta }];
      const cursor = n === 1 ? since : `e.f.${seq + 1}`;
      const body = { connection: `p${n}`, frames, cursor, head: seq + 1, more: false, close: null };
      return new Promise((resolve) => stage.clock.after(pollMs, () => resolve(json(body))));
    };
    return stage;
  };
  const polls = (stage: Stage): PlayedRequest[] =>
    stage.gateway.requests.filter(({ url }) => url.pathname.endsWith("/messages"));

  it("goes on from each answer's cursor, and replaces the connection before", async () => {
    const stage = stageOf(100);
    const reader = new Reader(stage.connect({ channel: "poll", timing: { pollWait: 25_000 } }));
    await stage.clock.advance(350);

    expect(
      polls(stage).map(({ url }) => ["wait", "since", "replaces"].map((name) => url.searchParams.get(name))),
    ).toEqual([
      ["0.1", null, null],
      ["25", "e.f.0", "p1"],
      ["25", "e.f.1", "p2"],
      ["25", "e.f.2", "p3"],
    ]);
    expect(reader.texts).toEqual(["x", "x"]);
  });

  it("sends no poll while a better connection is opened, which it would take over from", async () => {
    const stage = stageOf(100);
    const session = stage.connect({ timing: { climbAfter: 4_000, backoffBase: 100 } });
    const reader = new Reader(session);
    while (session.channel !== "poll") await stage.clock.advance(100);
    const before = stage.gateway.sockets.length;
    stage.gateway.onSocket = () => undefined;
    while (stage.gateway.sockets.length === before) await stage.clock.advance(100);
    const count = polls(stage).length;
    await stage.clock.advance(2_000);
    const after = polls(stage).length;
    stage.gateway.socket.welcome();
    const { seq = 0 } = { seq: reader.messages.length };
    stage.gateway.socket.delta(seq + 1, "y", seq);
    await stage.clock.advance(20_000);

    expect([after, polls(stage).length]).toEqual([count, count]);
    expect([session.channel, reader.texts.at(-1)]).toEqual(["websocket", "y"]);
  });

  it("goes on when that connection cannot be opened", async () => {
    const stage = stageOf(100);
    const session = stage.connect({ timing: { climbAfter: 4_000, backoffBase: 100 } });
    session.on("message", () => undefined);
    while (session.channel !== "poll") await stage.clock.advance(100);
    await stage.clock.advance(20_000);
    const count = polls(stage).length;
    await stage.clock.advance(5_000);

    expect(session.channel).toBe("poll");
    expect(polls(stage).length).toBeGreaterThan(count + 10);
  });

  it("pauses by not polling", async () => {
    const stage = stageOf(100);
    const session = stage.connect({ channel: "poll" });
    session.on("message", () => undefined);
    await stage.clock.advance(1_000);
    await session.pause();
    await stage.clock.advance(200);
    const paused = polls(stage).length;
    await stage.clock.advance(5_000);
    const still = polls(stage).length;
    await session.resume();
    await stage.clock.advance(1_000);

    expect(still).toBe(paused);
    expect(polls(stage).length).toBeGreaterThan(paused + 5);
  });
});
