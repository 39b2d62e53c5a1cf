import { describe, expect, it } from "vitest";
import { Reader, Stage, settle } from "./stage/stage.js";

describe("messages", () => {
  it("wait for a loop or a listener, unacknowledged", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.delta(1, "one ", 0).delta(2, "two", 4);
    await stage.clock.advance(1_000);
    const before = [session.text("r"), stage.gateway.socket.controls("ack").length];
    const reader = new Reader(session);
    await stage.clock.advance(250);

    expect(before).toEqual(["", 0]);
    expect(reader.texts).toEqual(["one ", "two"]);
    expect(stage.gateway.socket.controls("ack")).toEqual([{ kind: "ack", seq: 2 }]);
  });

  it("are acknowledged no further than a slow loop took them", async () => {
    const stage = new Stage();
    const session = await stage.live();
    for (let seq = 1; seq <= 5; seq++) stage.gateway.socket.delta(seq, "x", seq - 1);
    const loop = session[Symbol.asyncIterator]();
    await loop.next();
    await loop.next();
    await stage.clock.advance(1_000);

    expect(stage.gateway.socket.controls("ack").at(-1)).toEqual({ kind: "ack", seq: 2 });
    expect(session.cursor).toBe("e.f.2");
  });

  it("are acknowledged every 32 KiB", async () => {
    const stage = new Stage();
    const session = await stage.live();
    session.on("message", () => undefined);
    const text = "x".repeat(8 * 1024);
    for (let seq = 1; seq <= 8; seq++) stage.gateway.socket.delta(seq, text, (seq - 1) * text.length);

    expect(stage.gateway.socket.controls("ack").map(({ seq }) => seq)).toEqual([4, 8]);
  });

  it("that a loop left are there for the next loop", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.delta(1, "a", 0).delta(2, "b", 1).delta(3, "c", 2);
    const first: string[] = [];
    for await (const { text } of session) {
      first.push(text);
      if (text === "b") break;
    }
    const reader = new Reader(session);
    await settle();

    expect([first, reader.texts]).toEqual([["a", "b"], ["c"]]);
  });

  it("are read by one loop at a time", async () => {
    const session = await new Stage().live();
    session[Symbol.asyncIterator]();

    expect(() => session[Symbol.asyncIterator]()).toThrow("another loop");
  });

  it("are given to those that were asked for at once, one after the other, and the end to the rest", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const loop = session[Symbol.asyncIterator]();
    const taken = [loop.next(), loop.next(), loop.next()];
    await settle();
    stage.gateway.socket.delta(1, "a", 0).delta(2, "b", 1);
    await settle();
    await session.close();

    const results = await Promise.all(taken);
    expect(results.map(({ done, value }) => (done ? "end" : value?.text))).toEqual(["a", "b", "end"]);
  });

  it("are not waited for by a loop that was left", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const loop = session[Symbol.asyncIterator]();
    const waiting = loop.next();
    await settle();
    await loop.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    stage.gateway.socket.delta(1, "a", 0);
    await settle();

    for await (const { text } of session) {
      expect(text).toBe("a");
      break;
    }
  });

  it("that came before the end can still be taken; then the loop ends", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.delta(1, "a", 0);
    await session.close();
    const reader = new Reader(session);
    await settle();

    const late = new Reader(session);
    await settle();

    expect([reader.texts, reader.isDone, reader.error]).toEqual([["a"], true, null]);
    expect([late.texts, late.isDone, late.error]).toEqual([[], true, null]);
  });

  it("a listener that throws disturbs nobody", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const uncaught: unknown[] = [];
    const catcher = (error: unknown) => uncaught.push(error);
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException").once("uncaughtException", catcher);
    session.on("message", () => {
      throw new Error("of the application");
    });
    const seen: string[] = [];
    session.on("message", ({ text }) => seen.push(text));
    stage.gateway.socket.delta(1, "a", 0);
    await new Promise((resolve) => setImmediate(resolve));
    process.removeAllListeners("uncaughtException");
    for (const other of others) process.on("uncaughtException", other);

    expect([seen, String(uncaught[0]), session.state]).toEqual([["a"], "Error: of the application", "live"]);
  });
});

describe("asks and runs", () => {
  it("an ask is told once, at once, and is gone when it is resolved", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const asked: string[] = [];
    session.on("ask", ({ ask }) => asked.push(ask));
    const ask = { kind: "ask", ask: "a1", message: "Delete?" };
    stage.gateway.socket.control({ kind: "ask_open", seq: 1, ask }).text(1, ask);
    const open = session.asks.map(({ message }) => message);
    stage.gateway.socket.text(2, { kind: "ask_resolved", ask: "a1", status: "answered", value: "yes" });

    expect([asked, open, session.asks]).toEqual([["a1"], ["Delete?"], []]);
  });

  it("runs are open until their end", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const seen: unknown[] = [];
    session.on("run", ({ run, state, reason }) => seen.push([run, state, reason]));
    stage.gateway.socket.text(1, { kind: "run_start", run: "r" });
    const open = session.runs;
    stage.gateway.socket.text(2, { kind: "run_end", run: "r", reason: "cancelled" });

    expect(open).toEqual([{ run: "r", state: "open", reason: null }]);
    expect(seen).toEqual([
      ["r", "open", null],
      ["r", "ended", "cancelled"],
    ]);
  });
});

describe("degradation", () => {
  it("whole segments are handed out, their text is equal", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live({ segments: "whole" }));
    const { socket } = stage.gateway;
    socket.delta(1, "One ", 0).delta(2, "two. ", 4).delta(3, "Three", 9);
    await stage.clock.advance(499);
    const early = [...reader.texts];
    await stage.clock.advance(1);

    expect(early).toEqual(["One two. "]);
    expect(reader.texts).toEqual(["One two. ", "Three"]);
    expect(reader.messages[0]).toMatchObject({ firstSeq: 1, seq: 2 });
  });

  it("a message that says more than its text is handed out by itself", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live({ segments: "whole" }));
    stage.gateway.socket.delta(1, "One ", 0).delta(2, "two ", 4);
    stage.gateway.socket.text(3, { kind: "delta", run: "r", text: "three.", at: 8, mood: "glad" });
    await settle();

    expect(reader.messages.map(({ text, payload }) => [text, payload.mood])).toEqual([
      ["One two ", undefined],
      ["three.", "glad"],
    ]);
  });

  it("a part of a sentence does not wait behind another kind of message", async () => {
    const stage = new Stage();
    const reader = new Reader(await stage.live({ segments: "whole" }));
    stage.gateway.socket.delta(1, "Half", 0).text(2, { kind: "run_end", run: "r", reason: "complete" });
    await settle();

    expect(reader.messages.map(({ kind }) => kind)).toEqual(["delta", "run_end"]);
  });

  it("begins above 800 ms round trip, and ends after ten seconds of good ones", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const levels: string[] = [];
    session.on("quality", ({ level }) => levels.push(level));
    const { socket } = stage.gateway;
    const slow = async (ms: number) => {
      socket.isDead = true;
      session.probe();
      await stage.clock.advance(ms);
      socket.isDead = false;
      socket.control({ kind: "pong" });
    };
    await slow(900);
    const reader = new Reader(session);
    socket.delta(1, "A", 0).delta(2, "b.", 1);
    await settle();
    const joined = reader.texts.length;
    for (let i = 0; i < 12; i++) {
      await slow(20);
      await stage.clock.advance(1_000);
    }
    socket.delta(3, "C", 3).delta(4, "d.", 4);
    await settle();

    expect([joined, reader.texts]).toEqual([1, ["Ab.", "C", "d."]]);
    expect([levels[0], levels.at(-1)]).toEqual(["poor", "good"]);
  });

  it("a renderer that is behind is a reason, too", async () => {
    const stage = new Stage();
    const session = await stage.live();
    session.reportBehind(2_001);

    expect(session.quality.level).toBe("poor");
  });
});
