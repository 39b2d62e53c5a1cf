import { describe, expect, it } from "vitest";
import type { JsonObject } from "../src/messages.js";
import { readFrame } from "../src/messages.js";
import { createRunText, createRunTexts } from "../src/texts.js";
import { seeded } from "./stage/stage.js";

const control = (payload: JsonObject) => readFrame({ type: "control", payload });
const message = (payload: JsonObject) => readFrame({ type: "text", seq: 1, payload });

describe("RunText", () => {
  it("slices an overlap by bytes, not by characters", () => {
    const text = createRunText();
    text.add("wör", 0);

    expect(text.add("rld", 3)).toEqual({ text: "ld", isRewritten: false });
    expect(text.value()).toBe("world".replace("o", "ö"));
    expect(text.length).toBe(6);
  });

  it("equals its source whatever repeats and overlaps come", () => {
    const random = seeded(11);
    const source = Array.from({ length: 400 }, () => ["a", "é", "🙂", "漢", "\ufeff"][Math.floor(random() * 5)]).join(
      "",
    );
    const bytes = new TextEncoder().encode(source);
    const isStart = (at: number) => at === bytes.length || ((bytes[at] ?? 0) & 0xc0) !== 0x80;
    const text = createRunText();
    let shown = "";
    while (text.length < bytes.length) {
      let from = Math.max(0, text.length - Math.floor(random() * 9));
      while (!isStart(from)) from--;
      let to = Math.min(bytes.length, text.length + 1 + Math.floor(random() * 9));
      while (!isStart(to)) to++;
      shown += text.add(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from, to)), from).text;
    }

    expect(shown).toBe(source);
    expect(text.value()).toBe(source);
  });

  it("shows nothing twice when a cut text is written again", () => {
    const text = createRunText();
    text.add("one two three", 0);
    text.cut(4);

    expect(text.value()).toBe("one ");
    expect(text.add("two ", 4)).toEqual({ text: "", isRewritten: false });
    expect(text.add("three!", 8)).toEqual({ text: "!", isRewritten: false });
    expect(text.value()).toBe("one two three!");
  });

  it("says when a cut text went on differently", () => {
    const text = createRunText();
    text.add("one two three", 0);
    text.cut(4);

    expect(text.add("four", 4)).toEqual({ text: "four", isRewritten: true });
    expect(text.value()).toBe("one four");
  });

  it("knows that it is not whole after a hole, until its beginning is fetched", () => {
    const text = createRunText();
    text.add("three", 8);
    const whole = createRunText();
    whole.add("one two thr", 0);

    expect([text.isWhole, text.value()]).toEqual([false, "three"]);
    expect(text.prepend(whole)).toBe(true);
    expect([text.isWhole, text.value(), text.length]).toEqual([true, "one two three", 13]);
  });
});

describe("RunTexts", () => {
  it("cuts texts and thinking to the lengths that a new epoch names, and drops other runs", () => {
    const texts = createRunTexts();
    texts.apply(message({ kind: "delta", run: "a", text: "0123456789", at: 0 }));
    texts.apply(message({ kind: "thinking", run: "a", text: "abcdef", at: 0 }));
    texts.apply(message({ kind: "delta", run: "b", text: "gone", at: 0 }));

    texts.apply(control({ kind: "gap", reason: "epoch_changed", runs: { a: 4 }, thinking: { a: 2 } }));

    expect(texts.runs.get("a")?.text.value()).toBe("0123");
    expect(texts.runs.get("a")?.thinking.value()).toBe("ab");
    expect(texts.runs.get("b")?.text.value()).toBe("");
  });

  it("keeps the texts of the last sixteen runs that ended", () => {
    const texts = createRunTexts();
    for (let n = 0; n < 20; n++) texts.apply(message({ kind: "run_end", run: `r${n}`, reason: "complete" }));

    expect([...texts.runs.keys()]).toEqual(Array.from({ length: 16 }, (_, n) => `r${n + 4}`));
  });

  it("rebuilds a run from the parts of a snapshot, and shows only what is new", () => {
    const texts = createRunTexts();
    texts.apply(message({ kind: "delta", run: "a", text: "one ", at: 0 }));

    const first = texts.apply(control({ kind: "snapshot", run: "a", at: 0, text: "one tw", start: {} }));
    const second = texts.apply(control({ kind: "snapshot", run: "a", at: 6, text: "o", end: { reason: "complete" } }));

    expect([first?.added.text, first?.begins]).toEqual(["tw", true]);
    expect([second?.added.text, second?.end]).toEqual(["o", { reason: "complete" }]);
    expect(texts.runs.get("a")?.reason).toBe("complete");
  });
});
