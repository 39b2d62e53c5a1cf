import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../src/messages.js";
import { json } from "./stage/gateway.js";
import { Reader, Stage, settle } from "./stage/stage.js";

const delta = (seq: number, text: string, at: number) => ({
  type: "text",
  seq,
  payload: { kind: "delta", run: "r", text, at },
});
const history = (frames: unknown[], cursor: string) =>
  json({ frames, cursor, head: 9, more: false, connection: null, close: null } as JsonObject);

describe("order", () => {
  it("repeats are dropped, and a merged frame is sliced where we are", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live());
    stage.gateway.socket.delta(1, "a", 0).delta(1, "a", 0).delta(2, "b", 1);
    stage.gateway.socket.delta(4, "abcd", 0, { first_seq: 1 }).delta(3, "c", 2);
    await settle();

    expect(reader.messages.map(({ seq, firstSeq, text }) => [seq, firstSeq, text])).toEqual([
      [1, 1, "a"],
      [2, 2, "b"],
      [4, 3, "cd"],
    ]);
  });

  it("several messages in one frame are taken in order, each once", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live());
    stage.gateway.socket.say([delta(1, "a", 0), delta(2, "b", 1)]).say([delta(1, "a", 0), delta(3, "c", 2)]);
    await settle();

    expect(stage.gateway.socket.query.batch).toBe("1");
    expect(reader.texts).toEqual(["a", "b", "c"]);
  });

  it("of several messages in one frame those before a bad one count, and the socket is left", async () => {
    for (const bad of [7, null, [], [delta(2, "b", 1)], { type: "text" }]) {
      const stage = new Stage();
      const reader = new Reader(await stage.live());
      stage.gateway.socket.say([delta(1, "a", 0), bad, delta(2, "b", 1)]);
      await settle();

      expect([bad, reader.texts, stage.gateway.socket.wasClosedByClient]).toEqual([bad, ["a"], true]);
    }
  });

  it("a session that is closed by one of several messages hears no more of them", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const heard: unknown[] = [];
    session.on("message", ({ seq }) => {
      heard.push(seq);
      void session.close();
    });
    stage.gateway.socket.say([delta(1, "a", 0), delta(2, "b", 1)]);
    await settle();

    expect(heard).toEqual([1]);
  });

  it("frames out of order wait for what is before them", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live());
    stage.gateway.socket.delta(3, "c", 2).delta(2, "b", 1);
    await stage.clock.advance(199);
    stage.gateway.socket.delta(1, "a", 0);
    await stage.clock.advance(1_000);

    expect(reader.texts).toEqual(["a", "b", "c"]);
    expect(stage.gateway.requests).toEqual([]);
  });

  it("what is missing for 200 ms is fetched from history", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live());
    stage.gateway.onRequest = () => history([delta(1, "a", 0), delta(2, "b", 1)], "e.f.2");
    stage.gateway.socket.delta(3, "c", 2);
    await stage.clock.advance(199);
    const early = stage.gateway.requests.length;
    await stage.clock.advance(1);

    expect(early).toBe(0);
    expect(stage.gateway.requests[0]?.url.searchParams.get("since")).toBe("e.f.0");
    expect(reader.texts).toEqual(["a", "b", "c"]);
    expect(stage.gateway.sockets.length).toBe(1);
  });

  it("what history does not have either is asked for once more, and then named as a gap", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const reader = new Reader(session);
    stage.gateway.onRequest = () => history([], "e.f.0");
    stage.gateway.onSocket = (socket) => socket.welcome({ cursor: "e.f.0" }).delta(3, "c", 2);
    stage.gateway.socket.delta(3, "c", 2);
    await stage.clock.advance(5_000);

    expect(stage.gateway.sockets.length).toBe(2);
    expect(
      reader.messages.map(({ kind, seq, payload }) => [kind, seq, payload.first, payload.last, payload.reason]),
    ).toEqual([
      ["gap", null, 1, 2, "missing"],
      ["delta", 3, undefined, undefined, undefined],
    ]);
  });

  it("a fork goes on where we are, without a repeat", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const reader = new Reader(session);
    stage.gateway.socket.delta(1, "a", 0).delta(2, "b", 1);
    stage.gateway.socket.control({ kind: "forked", cursor: "e.g.1", base: 2 }).delta(2, "b", 1).delta(3, "c", 2);
    await settle();

    expect([reader.texts, session.cursor]).toEqual([["a", "b", "c"], "e.g.3"]);
  });

  it("a new epoch is told as a gap, and texts are cut to what is true", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const reader = new Reader(session);
    const rewritten: boolean[] = [];
    session.on("text", ({ isRewritten }) => rewritten.push(isRewritten));
    stage.gateway.socket.delta(1, "one two", 0).end();
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome({ cursor: "n.f.1", resumed: "gap" });
    const gap = { kind: "gap", first: 1, last: 1, reason: "epoch_changed", cursor: "n.f.1", runs: { r: 4 } };
    stage.gateway.socket.control(gap).delta(2, "2", 4);
    await settle();

    expect(reader.messages.map(({ kind }) => kind)).toEqual(["delta", "gap", "delta"]);
    expect([session.text("r"), rewritten, session.cursor]).toEqual(["one 2", [false, true], "n.f.2"]);
  });

  it("a predecessor on a log that we left is not heard", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live());
    const old = stage.gateway.socket.delta(1, "a", 0);
    old.control({ kind: "reconnect_later", after_ms: 0 });
    await stage.clock.advance(1);
    stage.gateway.socket.welcome({ cursor: "n.f.0", resumed: "gap" });
    stage.gateway.socket.control({
      kind: "gap",
      first: 1,
      last: 1,
      reason: "epoch_changed",
      cursor: "n.f.0",
      runs: {},
    });
    old.delta(2, "ghost", 1);
    stage.gateway.socket.delta(1, "new", 0);
    await settle();

    expect(reader.texts).toEqual(["a", "", "new"]);
  });

  it("a snapshot that our predecessor's messages have overtaken changes nothing", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const reader = new Reader(session);
    const old = stage.gateway.socket.delta(1, "abc", 0);
    old.control({ kind: "reconnect_later", after_ms: 0 });
    await stage.clock.advance(1);
    old.delta(2, "def", 3);
    stage.gateway.socket.welcome({ cursor: "e.f.1", resumed: "snapshot" });
    stage.gateway.socket.control({ kind: "snapshot", run: "r", at: 0, text: "abc", last: true, cursor: "e.f.1" });
    stage.gateway.socket.delta(2, "def", 3).delta(3, "g", 6);
    await settle();

    expect([session.text("r"), reader.texts]).toEqual(["abcdefg", ["abc", "def", "g"]]);
  });

  it("a number that a double cannot hold is the end, not a loop", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.onmessage?.({ data: '{"type":"text","seq":9007199254740993,"payload":{"kind":"data"}}' });
    await stage.clock.advance(10_000);

    expect([session.error?.code, stage.gateway.sockets.length]).toEqual(["protocol", 1]);
  });
});

describe("digests", () => {
  const end = (text: string) => ({
    kind: "run_end",
    run: "r",
    reason: "complete",
    bytes: Buffer.byteLength(text),
    sha256: createHash("sha256").update(text).digest("hex"),
  });
  const start = (seq: number) => ({ type: "text", seq, payload: { kind: "run_start", run: "r" } });

  const ended = async (truth: string, fetched: unknown[]) => {
    const stage = new Stage();
    const session = await stage.live();
    const seen: unknown[] = [];
    session.on("digest", (event) => seen.push(event));
    session.on("text", ({ isRewritten }) => isRewritten && seen.push(session.text("r")));
    stage.gateway.onRequest = () => history(fetched, "e.f.9");
    stage.gateway.socket.text(1, { kind: "run_start", run: "r" }).delta(2, "abc", 0).text(3, end(truth));
    await stage.clock.advance(100);
    return { seen, requests: stage.gateway.requests.length };
  };

  it("that are equal are said so", async () => {
    expect(await ended("abc", [])).toEqual({ seen: [{ run: "r", ok: true, healed: false }], requests: 0 });
  });

  it("that differ heal the text once from history", async () => {
    const fetched = [start(1), delta(2, "abd", 0)];

    expect(await ended("abd", fetched)).toEqual({ seen: ["abd", { run: "r", ok: true, healed: true }], requests: 1 });
  });

  it("that differ are healed by a later request when the first one breaks", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const seen: unknown[] = [];
    session.on("digest", (event) => seen.push(event));
    let asked = 0;
    stage.gateway.onRequest = () => {
      asked += 1;
      if (asked === 1) throw new TypeError("network error");
      return history([start(1), delta(2, "abd", 0)], "e.f.9");
    };
    stage.gateway.socket.text(1, { kind: "run_start", run: "r" }).delta(2, "abc", 0).text(3, end("abd"));
    await stage.clock.advance(5_000);

    expect([seen, asked]).toEqual([[{ run: "r", ok: true, healed: true }], 2]);
  });

  it("that still differ are reported, and the text is left as it is", async () => {
    const fetched = [start(1), delta(2, "abc", 0)];

    expect(await ended("abd", fetched)).toEqual({ seen: [{ run: "r", ok: false, healed: false }], requests: 1 });
  });

  it("are compared again when the end comes again, but nothing is fetched twice", async () => {
    const stage = new Stage();
    const session = await stage.live();
    session.on("message", () => undefined);
    stage.gateway.onRequest = () => history([], "e.f.3");
    stage.gateway.socket.text(1, { kind: "run_start", run: "r" }).delta(2, "abc", 0).text(3, end("abd"));
    await stage.clock.advance(100);
    stage.gateway.socket.text(4, end("abd"));
    await stage.clock.advance(100);

    expect(stage.gateway.requests.length).toBe(1);
  });

  it("a run that was joined in its middle after a reload gets its beginning back", async () => {
    const stage = new Stage();
    const session = await stage.live({ cursor: "e.f.2" });
    session.on("message", () => undefined);
    stage.gateway.onRequest = () => history([start(1), delta(2, "one ", 0), delta(3, "two", 4)], "e.f.3");
    stage.gateway.socket.delta(3, "two", 4);
    await settle();

    expect(session.text("r")).toBe("one two");
  });
});
