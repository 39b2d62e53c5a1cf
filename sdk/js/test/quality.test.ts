import { expect, it } from "vitest";
import { Quality } from "../src/quality.js";

it("is poor while the page is behind, though the application takes what comes at once", () => {
  const quality = new Quality();
  quality.behind(3_000, 0);
  quality.behind(0, 1, true);
  expect(quality.current().level).toBe("poor");
  quality.behind(0, 2);
  expect(quality.current().level).toBe("good");
});

it.each([
  [2_000, false],
  [2_001, true],
])("of an application that is %d ms behind says degraded: %s", (ms, isDegraded) => {
  const quality = new Quality();
  quality.behind(ms, 0, true);
  expect(quality.isDegraded).toBe(isDegraded);
});

it.each([
  [800, false],
  [801, true],
])("of a round trip of %d ms says degraded: %s", (rtt, isDegraded) => {
  const quality = new Quality();
  quality.sample(rtt, 0);
  expect(quality.isDegraded).toBe(isDegraded);
});

it("takes ten good seconds in a row to be well again", () => {
  const quality = new Quality();
  quality.behind(3_000, 0);
  quality.behind(0, 1_000);
  quality.behind(3_000, 9_000);
  quality.behind(0, 10_000);
  quality.behind(0, 19_999);
  expect(quality.isDegraded).toBe(true);
  quality.behind(0, 20_000);
  expect(quality.isDegraded).toBe(false);
});
