import { describe, expect, it } from "vitest";
import { type Segment, Segmenter, type SegmentOptions } from "../../src/segmenter/index.js";
import { run } from "./run.js";

const measure = (text: string): number => [...text].length;
const options = (maxWidth: number): SegmentOptions => ({ mode: "width", measure, maxWidth });
const texts = (segments: readonly Segment[]): string[] => segments.map((segment) => segment.text);

describe("mode width", () => {
  it("breaks after words, and lets white space hang over", () => {
    expect(texts(run(options(9), ["one two three four"]))).toEqual(["one two ", "three ", "four"]);
    expect(texts(run(options(7), ["one two  three"]))).toEqual(["one two  ", "three"]);
  });

  it.each([
    [6, ["abc ", "def"]],
    [7, ["abc def"]],
    [8, ["abc def"]],
  ])("takes what is exactly as wide as %d", (maxWidth, lines) => {
    expect(texts(run(options(maxWidth), ["abc def"]))).toEqual(lines);
  });

  it("ends a line where the text does", () => {
    expect(texts(run(options(20), ["a b\n\nc"]))).toEqual(["a b\n", "\n", "c"]);
  });

  it("cuts a word only where it alone is too wide, and no grapheme", () => {
    expect(texts(run(options(4), ["ab abcdefghi"]))).toEqual(["ab ", "abcd", "efgh", "i"]);
    expect(texts(run(options(3), ["e\u0301e\u0301e\u0301e\u0301"]))).toEqual([
      "e\u0301",
      "e\u0301",
      "e\u0301",
      "e\u0301",
    ]);
  });

  it("breaks scripts without spaces anywhere, but not before a closing mark", () => {
    expect(texts(run(options(3), ["今天很好。今"]))).toEqual(["今天很", "好。今"]);
    expect(texts(run(options(4), ["今天很好。今"]))).toEqual(["今天很", "好。今"]);
  });

  it("does not depend on how the text arrived, and no line is wider", () => {
    const text = "The gateway 今天很好 resumes  every\nsession: Donaudampfschiff, e\u0301te\u0301! 👨‍👩‍👧‍👦 ok ";
    for (const width of [1, 2, 5, 8, 13, 40]) {
      const whole = run(options(width), [text]);
      expect(texts(whole).join("")).toBe(text);
      for (const size of [1, 2, 3, 7]) {
        const feeds = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
          text.slice(at * size, (at + 1) * size),
        );
        expect(run(options(width), feeds)).toEqual(whole);
      }
      for (const line of texts(whole)) {
        // One grapheme goes on a line, however wide.
        expect(measure(line.trimEnd()) <= width || [...new Intl.Segmenter().segment(line.trimEnd())].length === 1).toBe(
          true,
        );
      }
    }
  });

  it("tells which line a part belongs to when time pushes it out", () => {
    const segmenter = new Segmenter({ ...options(9), maxDelayMs: 10 });
    const out = [
      ...segmenter.feed("one tw", 0),
      ...segmenter.tick(5),
      ...segmenter.tick(10),
      ...segmenter.feed("o three", 20),
      ...segmenter.flush(),
    ];
    expect(out.map(({ text, fields }) => [text, fields])).toEqual([
      ["one tw", { line: 1, last: false }],
      ["o ", { line: 1, last: true }],
      ["three", { line: 2, last: true }],
    ]);
  });

  it("goes on where another one saved its state", () => {
    const first = new Segmenter(options(9));
    const out = first.feed("one two thr", 0);
    const second = new Segmenter(options(9), first.save());
    out.push(...second.feed("ee four", 0), ...second.flush());
    expect(texts(out)).toEqual(["one two ", "three ", "four"]);
  });
});
