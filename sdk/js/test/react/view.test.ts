import { beforeEach, describe, expect, it } from "vitest";
import type { Message, RunInfo, Session } from "../../src/index.js";
import { SessionView } from "../../src/react/view.js";
import { FakePage, FakeSession } from "../render/fake_page.js";

let page: FakePage;
let session: FakeSession;
let view: SessionView;
let renders: number;

function open(maxMessages = 3, maxRuns = 3): void {
  page = new FakePage();
  session = new FakeSession();
  view = new SessionView(
    Object.assign(session, { state: "live", queued: 0 }) as unknown as Session,
    { maxMessages, maxRuns },
    page,
  );
  renders = 0;
  view.subscribe(() => {
    renders += 1;
  });
}

const message = (kind: string, seq: number): Message => ({
  kind,
  seq,
  firstSeq: seq,
  timestamp: 0,
  run: null,
  text: "",
  payload: {},
  late: false,
});

const started = (run: string): RunInfo => ({ run, state: "open", reason: null });

describe("SessionView", () => {
  beforeEach(() => open());

  it("changes once a frame, and not without a change", () => {
    const before = view.snapshot;
    for (let count = 0; count < 50; count += 1) session.add("r", "x");
    session.emit("message", message("data", 1));
    expect(view.snapshot).toBe(before);
    page.draw();
    expect(renders).toBe(1);
    expect(view.snapshot.texts).toEqual({ r: "x".repeat(50) });
    expect(view.snapshot.messages).toHaveLength(1);
    page.draw();
    expect(renders).toBe(1);
  });

  it("keeps what did not change as it is", () => {
    session.add("r", "x");
    session.emit("message", message("data", 1));
    page.draw();
    const { messages, runs, asks } = view.snapshot;
    session.add("r", "y");
    page.draw();
    expect(view.snapshot.messages).toBe(messages);
    expect(view.snapshot.runs).toBe(runs);
    expect(view.snapshot.asks).toBe(asks);
  });

  it.each([
    [2, [1, 2]],
    [3, [1, 2, 3]],
    [4, [2, 3, 4]],
  ])("keeps the last 3 of %d messages", (count, kept) => {
    for (let seq = 1; seq <= count; seq += 1) session.emit("message", message("data", seq));
    page.draw();
    expect(view.snapshot.messages.map(({ seq }) => seq)).toEqual(kept);
  });

  it.each([
    [2, ["r1", "r2"]],
    [3, ["r1", "r2", "r3"]],
    [4, ["r2", "r3", "r4"]],
  ])("keeps the last 3 of %d runs with their texts", (count, kept) => {
    for (let number = 1; number <= count; number += 1) {
      session.emit("run", { ...started(`r${number}`), payload: {} });
      session.add(`r${number}`, "x");
    }
    page.draw();
    expect(view.snapshot.runs.map(({ run }) => run)).toEqual(kept);
    expect(Object.keys(view.snapshot.texts)).toEqual(kept);
  });

  it("shows the rhythm of a run until its end", () => {
    session.emit("rhythm", { kind: "rhythm", run: "r", tokens_per_s: 40 });
    page.draw();
    expect(view.snapshot.rhythm.r).toMatchObject({ tokens_per_s: 40 });
    session.end("r");
    page.draw();
    expect(view.snapshot.rhythm).toEqual({});
  });

  it("shows a rewritten text", () => {
    session.add("r", "what was lost");
    page.draw();
    session.rewrite("r", "what was kept");
    page.draw();
    expect(view.snapshot.texts.r).toBe("what was kept");
  });

  it("tells the session when React is late", () => {
    session.add("r", "x");
    page.draw(3_000);
    page.draw(16);
    expect(session.told).toEqual([3_000, 0]);
  });

  it("leaves nothing behind", () => {
    session.add("r", "x");
    view.stop();
    expect(session.listeners).toBe(0);
    expect(page.waiting).toBe(0);
  });
});
