import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Segment } from "../../src/segmenter/index.js";
import { optionsOf, run, type WireOptions } from "./run.js";

interface Vector {
  readonly name: string;
  readonly options: WireOptions;
  readonly input: readonly string[];
  readonly segments: readonly { text: string; is_code?: boolean; fields?: object }[];
}

const file = new URL("../../../conformance/vectors/segmenter.json", import.meta.url);
const { vectors } = JSON.parse(readFileSync(file, "utf8")) as { vectors: readonly Vector[] };

function asJson({ text, isCode, fields }: Segment): object {
  return isCode ? { text, is_code: true, fields } : { text };
}

describe("the vectors that the gateway is held against", () => {
  it.each(vectors.map((vector) => [vector.name, vector] as const))("%s", (_name, vector) => {
    const text = vector.input.join("");
    for (const feeds of [vector.input, [text], [...text], text.split("")]) {
      expect(run(optionsOf(vector.options), feeds).map(asJson)).toEqual(vector.segments);
    }
  });
});
