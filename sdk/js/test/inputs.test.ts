import { describe, expect, it } from "vitest";
import { ClosedError, ConflictError, QueueFullError, RefusedError, TooLargeError } from "../src/errors.js";
import { MemoryStore } from "../src/store.js";
import { json, refusal } from "./stage/gateway.js";
import { Stage, settle } from "./stage/stage.js";

const outcome = (promise: Promise<unknown>): { value?: unknown; error?: unknown } => {
  const result: { value?: unknown; error?: unknown } = {};
  promise.then(
    (value) => {
      result.value = value;
    },
    (error: unknown) => {
      result.error = error;
    },
  );
  return result;
};
const accepted = (seq: number) => ({ kind: "accepted", what: "input", seq });

describe("inputs", () => {
  it("are numbered from the welcome, and settle when they are accepted", async () => {
    const stage = new Stage();
    const session = stage.connect();
    const first = outcome(session.send({ text: "a" }));
    const second = outcome(session.send({ text: "b" }));
    await settle();
    stage.gateway.socket.welcome({ input_seq: 7 });
    await settle();
    const sent = stage.gateway.socket.inputs.map(({ seq }) => seq);
    stage.gateway.socket.control(accepted(8));
    await settle();

    expect(sent).toEqual([8, 9]);
    expect([first.value, second.value]).toEqual([accepted(8), undefined]);
    expect(session.queued).toBe(1);
  });

  it("keep their order, also while the part that says them is being loaded", async () => {
    for (let ticks = 0; ticks < 40; ticks++) {
      const stage = new Stage();
      const session = stage.connect();
      void session.send({ text: "a" });
      void session.send({ text: "b" });
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      void session.send({ text: "c" });
      await settle();
      stage.gateway.socket.welcome();
      await settle();

      expect(stage.gateway.socket.inputs.map(({ payload }) => (payload as { text: string }).text)).toEqual([
        "a",
        "b",
        "c",
      ]);
    }
  });

  it("go again under the same numbers on the next connection", async () => {
    const stage = new Stage();
    const session = await stage.live();
    void session.send({ text: "a" });
    void session.send({ text: "b" });
    await settle();
    stage.gateway.socket.end();
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome({ input_seq: 1 });
    await settle();

    expect(stage.gateway.socket.inputs.map(({ seq, payload }) => [seq, payload])).toEqual([
      [1, { text: "a" }],
      [2, { text: "b" }],
    ]);
  });

  it("keep at most sixteen in flight", async () => {
    const stage = new Stage();
    const session = await stage.live();
    for (let i = 0; i < 20; i++) void session.send({ i });
    await settle();
    const sent = stage.gateway.socket.inputs.length;
    stage.gateway.socket.control(accepted(1));
    await settle();

    expect([sent, stage.gateway.socket.inputs.length]).toEqual([16, 17]);
  });

  it("are kept with their numbers before they are sent, and survive a reload", async () => {
    const stage = new Stage();
    const store = new MemoryStore();
    const kept: number[] = [];
    const save = store.save.bind(store);
    store.save = async (name, place) => {
      kept.push(stage.gateway.sockets[0]?.inputs.length ?? 0);
      return save(name, place);
    };
    const session = await stage.live({ store });
    const lost = outcome(session.send({ text: "a" }));
    await settle();
    const whenKept = kept.at(-1);
    await session.close();
    await stage.live({ store });

    expect(whenKept).toBe(0);
    expect(lost.error).toBeInstanceOf(ClosedError);
    expect(stage.gateway.socket.query.client).toBe(stage.gateway.sockets[0]?.query.client);
    expect(stage.gateway.socket.inputs.map(({ seq, payload }) => [seq, payload])).toEqual([[1, { text: "a" }]]);
  });

  it("said before the store is read come behind those in it, and nothing is written before", async () => {
    const stage = new Stage();
    const place = { client: "tab", user: null, cursor: "e.f.0", inputs: [{ seq: 1, payload: { text: "kept" } }] };
    const log: string[] = [];
    const session = stage.connect({
      store: {
        isShared: false,
        load: async () => {
          await settle();
          log.push("read");
          return place;
        },
        save: async (_name, { inputs }) => void log.push(`${inputs.length} written`),
      },
    });
    void session.send({ text: "new" });
    await settle();
    await settle();
    stage.gateway.socket.welcome();
    await settle();

    expect(stage.gateway.socket.inputs.map(({ seq, payload }) => [seq, payload])).toEqual([
      [1, { text: "kept" }],
      [2, { text: "new" }],
    ]);
    expect(log.slice(0, 2)).toEqual(["read", "2 written"]);
  });

  it("of another user are dropped, with everything else that was kept", async () => {
    const stage = new Stage();
    const store = new MemoryStore();
    const session = await stage.live({ store, user: "ann" });
    stage.gateway.socket.end();
    void session.send({ text: "ann's" }).catch(() => undefined);
    await settle();
    await session.close();
    await stage.live({ store, user: "bob" });

    expect(stage.gateway.socket.inputs).toEqual([]);
    expect(stage.gateway.socket.query.client).not.toBe(stage.gateway.sockets[0]?.query.client);
  });

  it("fail at once when they are too many, and when they are too large", async () => {
    const stage = new Stage();
    const session = await stage.live({ queueItems: 2 });
    stage.gateway.socket.control({ kind: "rhythm" });
    const limit = 64 * 1024 - '{"text":""}'.length;
    const tooLarge = outcome(session.send({ text: "x".repeat(limit + 1) }));
    void session.send({ text: "x".repeat(limit) });
    void session.send({ text: "2" });
    const tooMany = outcome(session.send({ text: "3" }));
    await settle();

    expect(tooLarge.error).toBeInstanceOf(TooLargeError);
    expect(tooMany.error).toBeInstanceOf(QueueFullError);
    expect(stage.gateway.socket.inputs.length).toBe(2);
  });

  it("go on from the expected number after a conflict", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const first = outcome(session.send({ text: "a" }));
    const second = outcome(session.send({ text: "b" }));
    await settle();
    const conflict = { kind: "error", what: "input", seq: 1, code: "conflict", message: "taken", retryable: false };
    stage.gateway.socket.control({ ...conflict, expected: 4 });
    await settle();
    stage.gateway.socket.control(accepted(4));
    await settle();

    expect(first.error).toBeInstanceOf(ConflictError);
    expect(second.value).toEqual(accepted(4));
  });

  it("that are refused do not hold up the others", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const first = outcome(session.send({ text: "a" }));
    const second = outcome(session.send({ text: "b" }));
    await settle();
    const error = { kind: "error", what: "input", retryable: false, message: "no" };
    stage.gateway.socket.control({ ...error, seq: 1, code: "bad_request" });
    stage.gateway.socket.control({ ...error, seq: 2, code: "expected", expected: 1 });
    await stage.clock.advance(1_000);
    stage.gateway.socket.control(accepted(1));
    await settle();

    expect(first.error).toBeInstanceOf(RefusedError);
    expect(second.value).toEqual(accepted(1));
  });

  it("wait as long as the server says, and then go again in order", async () => {
    const stage = new Stage();
    const session = await stage.live();
    for (const text of ["a", "b"]) void session.send({ text });
    await settle();
    const error = { kind: "error", what: "input", message: "later" };
    stage.gateway.socket.control({ ...error, seq: 1, code: "over_limit", retryable: true, after_ms: 3_000 });
    stage.gateway.socket.control({ ...error, seq: 2, code: "expected", retryable: false, expected: 1 });
    await stage.clock.advance(2_999);
    const early = stage.gateway.socket.inputs.length;
    await stage.clock.advance(1);

    expect([early, ...stage.gateway.socket.inputs.map(({ seq }) => seq)]).toEqual([2, 1, 2, 1, 2]);
  });

  it("that are too big for the connection fail, and it comes back (1009)", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const big = outcome(session.send({ text: "x".repeat(1_000) }));
    const small = outcome(session.send({ text: "b" }));
    await settle();
    stage.gateway.socket.end(1009, "too big");
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome();
    await settle();

    expect(big.error).toBeInstanceOf(TooLargeError);
    expect([small.error, stage.gateway.socket.inputs]).toEqual([
      undefined,
      [{ type: "text", seq: 1, payload: { text: "b" } }],
    ]);
  });

  it("go by HTTP, one after the other, where the connection cannot carry them", async () => {
    const stage = new Stage();
    const answers = [
      null,
      refusal(503, "busy", { "Retry-After": "1" }),
      json({ what: "input", seq: 1 }),
      json({ what: "input", seq: 2 }),
    ];
    stage.gateway.onRequest = ({ url }) => {
      if (url.pathname.endsWith("/input")) return answers.shift() ?? null;
      return json({
        frames: [{ type: "control", payload: { kind: "welcome", cursor: "e.f.0", input_seq: 0 } }],
        cursor: "e.f.0",
      });
    };
    let polls = 0;
    const poll = stage.gateway.onRequest;
    stage.gateway.onRequest = (request) =>
      request.url.pathname.endsWith("/messages") && polls++ > 0 ? null : poll(request);
    const session = stage.connect({ channel: "poll" });
    await settle();
    const first = outcome(session.send({ text: "a" }));
    const second = outcome(session.send({ text: "b" }));
    await stage.clock.advance(20_000);

    const posts = stage.gateway.requests.filter(({ method }) => method === "POST").map(({ body }) => body?.seq);
    expect([first.value, second.value]).toEqual([
      { what: "input", seq: 1 },
      { what: "input", seq: 2 },
    ]);
    expect(posts).toEqual([1, 1, 1, 2]);
  });
});

describe("controls", () => {
  it("are said again on the next connection until they are settled", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const cancel = outcome(session.cancel("r", "enough"));
    stage.gateway.socket.end();
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome();
    await settle();
    const [said] = stage.gateway.socket.controls("cancel");
    stage.gateway.socket.control({ kind: "accepted", what: "cancel", id: said?.id, run: "r" });
    await settle();

    expect(said).toMatchObject({ run: "r", reason: "enough" });
    expect(cancel.value).toMatchObject({ kind: "accepted", run: "r" });
  });

  it("a pause holds on later connections", async () => {
    const stage = new Stage();
    const session = await stage.live();
    void session.pause();
    const [said] = stage.gateway.socket.controls("pause");
    stage.gateway.socket.control({ kind: "accepted", what: "pause", id: said?.id });
    stage.gateway.socket.end();
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome();
    await settle();

    expect(stage.gateway.socket.controls("pause").length).toBe(1);
  });

  it("an interrupt says what was seen, and no text of the run comes after it", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.delta(1, "one ", 0);
    const loop = session[Symbol.asyncIterator]();
    await loop.next();
    stage.gateway.socket.delta(2, "two", 4).text(3, { kind: "run_end", run: "r", reason: "interrupted" });
    const interrupted = outcome(session.interrupt("r"));
    const [said] = stage.gateway.socket.controls("interrupt");
    stage.gateway.socket.control({ kind: "accepted", what: "interrupt", id: said?.id, run: "r" });
    await settle();
    const next = await loop.next();

    expect(said?.seen).toEqual({ seq: 1, at: 4 });
    expect(interrupted.value).toBeDefined();
    expect([next.value?.kind, session.text("r")]).toEqual(["run_end", "one "]);
  });
});
