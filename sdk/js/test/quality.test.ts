import { expect, it } from "vitest";
import type { Core } from "../src/core.js";
import { createEmitter } from "../src/events.js";
import { createQuality } from "../src/quality.js";

const stage = () => {
  const clock = { nowMs: 0 };
  const core = { platform: { now: () => clock.nowMs }, conductor: { current: null }, emitter: createEmitter() };
  const quality = createQuality(core as unknown as Core);
  const behind = (ms: number, nowMs: number, isFeed = false) => {
    clock.nowMs = nowMs;
    quality.behind(ms, isFeed);
  };
  return { quality, behind };
};

it("is poor while the page is behind, though the application takes what comes at once", () => {
  const { quality, behind } = stage();
  behind(3_000, 0);
  behind(0, 1, true);
  expect(quality.now().level).toBe("poor");
  behind(0, 2);
  expect(quality.now().level).toBe("good");
});

it.each([
  [2_000, false],
  [2_001, true],
])("of an application that is %d ms behind says degraded: %s", (ms, isDegraded) => {
  const { quality, behind } = stage();
  behind(ms, 0, true);
  expect(quality.isDegraded).toBe(isDegraded);
});

it.each([
  [800, false],
  [801, true],
])("of a round trip of %d ms says degraded: %s", (rtt, isDegraded) => {
  const { quality } = stage();
  quality.sample(rtt);
  expect(quality.isDegraded).toBe(isDegraded);
});

it("takes ten good seconds in a row to be well again", () => {
  const { quality, behind } = stage();
  behind(3_000, 0);
  behind(0, 1_000);
  behind(3_000, 9_000);
  behind(0, 10_000);
  behind(0, 19_999);
  expect(quality.isDegraded).toBe(true);
  behind(0, 20_000);
  expect(quality.isDegraded).toBe(false);
});
