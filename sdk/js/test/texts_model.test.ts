import { expect, it } from "vitest";
import { createRunText } from "../src/texts.js";

const encoder = new TextEncoder();
const PIECES = ["a", "é", "👍", "xyz ", "👩‍👩‍👧"];

function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % below;
  };
}

it.each([...Array(100).keys()])("a text through overlaps and cuts is that of a plain model (%i)", (seed) => {
  const random = randomOf(seed);
  const text = createRunText();
  let model: string[] = [];
  for (let step = 0; step < 60; step++) {
    if (random(10) === 0) {
      model = model.slice(0, random(model.length + 1));
      text.cut(encoder.encode(model.join("")).length);
    } else {
      const begin = model.length - Math.min(random(4), model.length);
      const fresh = [...(PIECES[random(PIECES.length)] ?? "")];
      const at = encoder.encode(model.slice(0, begin).join("")).length;
      text.add([...model.slice(begin), ...fresh].join(""), at);
      model.push(...fresh);
    }

    expect(text.value()).toBe(model.join(""));
    expect(text.length).toBe(encoder.encode(model.join("")).length);
  }
});
