import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { type BlockFields, type Segment, Segmenter } from "../../src/segmenter/index.js";
import { optionsOf, type WireOptions } from "./run.js";

type Step = readonly [what: "feed" | "tick" | "flush" | "move", nowMs: number, text: string, segments: unknown[]];
interface Case {
  readonly options: WireOptions;
  readonly steps: readonly Step[];
}

const file =
  process.env.SEGMENTER_CASES ?? new URL("../../../conformance/vectors/segmenter_random.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { cases: readonly Case[] };

function asJson({ text, isCode, fields }: Segment): unknown {
  if (!isCode) return text;
  const { block, language, part, last } = fields as BlockFields;
  return [text, block, language, part, last];
}

it("makes of random texts, feeds, ticks and moves what the gateway makes of them", () => {
  for (const { options, steps } of cases) {
    let segmenter = new Segmenter(optionsOf(options));
    const done: Step[] = steps.map(([what, now, text, _]) => {
      if (what === "move") segmenter = new Segmenter(optionsOf(options), segmenter.save());
      const segments =
        what === "feed"
          ? segmenter.feed(text, now)
          : what === "tick"
            ? segmenter.tick(now)
            : what === "flush"
              ? segmenter.flush()
              : [];
      return [what, now, text, segments.map(asJson)];
    });
    expect({ options, steps: done }).toEqual({ options, steps });
  }
});
