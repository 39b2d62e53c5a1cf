import { beforeEach, describe, expect, it } from "vitest";
import { RunChunks } from "../../src/ai-sdk/chunks.js";
import { type RunItem, RunRecords } from "../../src/ai-sdk/run_records.js";
import { ToolCalls } from "../../src/ai-sdk/tool_calls.js";
import type { Session } from "../../src/index.js";
import { FakeSession } from "../render/fake_page.js";

let session: FakeSession;
let runs: RunRecords;

beforeEach(() => {
  session = new FakeSession();
  runs = new RunRecords(session as unknown as Session);
});

function itemsOf(run: string): RunItem[] {
  const items: RunItem[] = [];
  runs.get(run)?.follow((item) => items.push(item))();
  return items;
}

describe("RunRecords", () => {
  it("tells latecomers everything, texts joined, in order", () => {
    session.add("r", "a");
    session.add("r", "b");
    session.emit("thinking", { run: "r", added: "hm", isRewritten: false });
    session.add("r", "c");
    session.end("r");
    expect(itemsOf("r").map((item) => ("text" in item ? item.text : item.kind))).toEqual(["ab", "hm", "c", "end"]);
  });

  it("goes on with a rewritten text that begins as the old one did", () => {
    session.add("r", "ab");
    const seen: RunItem[] = [];
    runs.get("r")?.follow((item) => seen.push(item));
    session.rewrite("r", "abc");
    expect(seen).toEqual([
      { kind: "text", text: "ab" },
      { kind: "text", text: "c" },
    ]);
  });

  it("says when what was shown is no longer true, and has the new text for who reads again", () => {
    session.add("r", "ab");
    const seen: string[] = [];
    runs.get("r")?.follow((item) => seen.push(item.kind));
    session.rewrite("r", "xy");
    expect(seen).toEqual(["text", "broken"]);
    expect(itemsOf("r")).toEqual([{ kind: "text", text: "xy" }]);
  });

  it.each([
    [15, 15],
    [16, 16],
    [17, 16],
  ])("of %d ended runs keeps %d, and all open ones", (count, kept) => {
    session.add("open", "x");
    for (let number = 0; number < count; number += 1) session.end(`r${number}`);
    session.add("last", "x");
    const known = Array.from({ length: count }, (_, number) => runs.get(`r${number}`)).filter(Boolean);
    expect(known).toHaveLength(kept);
    expect(runs.get("open")).toBeDefined();
    expect(runs.open?.run).toBe("last");
  });
});

describe("RunChunks", () => {
  it.each([
    ["complete", {}, { type: "finish", finishReason: "stop" }],
    ["complete", { finish_reason: "max_tokens" }, { type: "finish", finishReason: "length" }],
    ["incomplete", {}, { type: "finish", finishReason: "other" }],
    ["cancelled", {}, { type: "finish", finishReason: "other" }],
    ["abandoned", {}, { type: "error", errorText: "the producer fell silent and did not come back" }],
    ["failed", { problem: "no money" }, { type: "error", errorText: "no money" }],
    ["vanished", {}, { type: "error", errorText: "the run ended as vanished" }],
  ])("ends a run that is %s %j", (reason, more, last) => {
    const chunks = new RunChunks("r").of({ kind: "end", payload: { kind: "run_end", reason, ...more } });
    expect(chunks[chunks.length - 1]).toEqual(last);
  });

  it("opens and closes parts as they change", () => {
    const chunks = new RunChunks("r");
    const all = [
      chunks.of({ kind: "thinking", text: "hm" }),
      chunks.of({ kind: "text", text: "a" }),
      chunks.of({ kind: "text", text: "b" }),
      chunks.pause(),
    ].flat();
    expect(all.map(({ type }) => type)).toEqual([
      "reasoning-start",
      "reasoning-delta",
      "reasoning-end",
      "text-start",
      "text-delta",
      "text-delta",
      "text-end",
    ]);
  });
});

describe("ToolCalls", () => {
  it("reads OpenAI's pieces of two calls, told apart by index", () => {
    const calls = new ToolCalls("r");
    calls.take({ tool_calls: [{ index: 0, id: "c0", function: { name: "a", arguments: '{"x":' } }] });
    calls.take({ tool_calls: [{ index: 1, id: "c1", function: { name: "b", arguments: "" } }] });
    calls.take({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] });
    expect(calls.close()).toEqual([
      { type: "tool-input-available", toolCallId: "c0", toolName: "a", input: { x: 1 } },
      { type: "tool-input-available", toolCallId: "c1", toolName: "b", input: {} },
    ]);
  });

  it("says of arguments that are no JSON that they are none", () => {
    const calls = new ToolCalls("r");
    calls.take({ id: "c", name: "a", arguments: '{"x"' });
    expect(calls.close()[0]).toMatchObject({ type: "tool-input-error", input: '{"x"' });
  });

  it.each([[{}], [{ text: "x" }], [[]], [undefined]])("leaves %j to the application", (data) => {
    expect(new ToolCalls("r").take(data)).toBe(null);
  });
});
