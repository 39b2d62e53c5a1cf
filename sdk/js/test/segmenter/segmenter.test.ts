import { describe, expect, it } from "vitest";
import { Segmenter, type SegmentOptions, SegmentStateError } from "../../src/segmenter/index.js";
import { run } from "./run.js";

describe("Segmenter", () => {
  it("lets the first text go at once, and later text after the delay", () => {
    const segmenter = new Segmenter({ maxDelayMs: 60 });
    expect(segmenter.feed("Hello", 100)).toEqual([]);
    expect(segmenter.dueMs()).toBe(100);
    expect(segmenter.tick(100)).toEqual([{ text: "Hello", isCode: false }]);
    segmenter.feed(" world", 200);
    expect(segmenter.dueMs()).toBe(260);
    expect(segmenter.tick(259)).toEqual([]);
    expect(segmenter.tick(260)).toHaveLength(1);
    expect(segmenter.dueMs()).toBe(null);
  });

  it("puts a character together that was cut between two feeds", () => {
    expect(run({ mode: "raw" }, ["a\ud83d", "\udc4bb"]).map(({ text }) => text)).toEqual(["a", "👋b"]);
  });

  it("replaces half characters that stay alone", () => {
    expect(run({ mode: "raw" }, ["a\udc4b", "b\ud83d"]).map(({ text }) => text)).toEqual(["a\ufffd", "b", "\ufffd"]);
  });

  it.each<[string, SegmentOptions]>([
    ["an unknown mode", { mode: "words" as "raw" }],
    ["tokens below 1", { tokens: 0 }],
    ["tokens above 1000", { tokens: 1001 }],
    ["a delay above 10 s", { maxDelayMs: 10_001 }],
    ["maxBytes below 16", { maxBytes: 15 }],
    ["maxBytes above 1024", { maxBytes: 1025 }],
    ["a pattern in another mode", { pattern: "a" }],
    ["no pattern in mode pattern", { mode: "pattern" }],
    ["a pattern that matches nothing", { mode: "pattern", pattern: "a*" }],
    ["a measure in another mode", { measure: () => 1, maxWidth: 5 }],
    ["a width of 0", { mode: "width", measure: () => 1, maxWidth: 0 }],
  ])("refuses %s", (_name, options) => {
    expect(() => new Segmenter(options)).toThrow(RangeError);
  });

  it.each<SegmentOptions>([
    { tokens: 1 },
    { tokens: 1000 },
    { maxBytes: 16 },
    { maxBytes: 1024 },
    { maxDelayMs: 10_000 },
  ])("takes %j", (options) => {
    expect(() => new Segmenter(options)).not.toThrow();
  });

  it("takes a pattern of the page's own", () => {
    expect(run({ mode: "pattern", pattern: /;/ }, ["a;b;c and much more text"]).map(({ text }) => text)).toEqual([
      "a;",
      "b;",
      "c and much more text",
    ]);
  });

  it.each([
    "",
    "null",
    "{}",
    "[1]",
    '[2,"tokens",true,null,"","",[0,0]]',
    '[1,"raw",true,null,"","",[]]',
    '[1,"tokens",true,null,"a","",[0,9]]',
  ])("refuses the state %s", (state) => {
    expect(() => new Segmenter({}, state)).toThrow(SegmentStateError);
  });
});
