import { describe, expect, it } from "vitest";
import { createBackoff } from "../src/backoff.js";
import type { Surroundings } from "../src/core.js";
import { seeded } from "./stage/stage.js";

const waits = (backoffBase: number, backoffMax: number, random: () => number) =>
  createBackoff({ platform: { random }, settings: { timing: { backoffBase, backoffMax } } } as Surroundings);

describe("The waits", () => {
  it("stays finite and within its bounds for five thousand failures (B05)", () => {
    const backoff = waits(1_000, 30_000, seeded(5));

    const delays = Array.from({ length: 5_000 }, () => backoff.nextDelayMs());
    const eager = waits(0, 30_000, () => 1);
    const zeroes = Array.from({ length: 5_000 }, () => eager.nextDelayMs());

    expect(Math.max(...zeroes)).toBe(0);
    expect(delays.every((delay) => Number.isFinite(delay) && delay >= 0 && delay <= 30_000)).toBe(true);
    expect(Math.max(...delays.slice(20))).toBeGreaterThan(20_000);
  });

  it("doubles its ceiling from the base to the cap", () => {
    const backoff = waits(1_000, 30_000, () => 1);

    expect(Array.from({ length: 7 }, () => backoff.nextDelayMs())).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
  });

  it("jitters the first wait, too (B06)", () => {
    const delays = Array.from({ length: 50 }, (_, seed) => waits(1_000, 30_000, seeded(seed * 7919)).nextDelayMs());

    expect(new Set(delays.map((delay) => Math.floor(delay / 100))).size).toBeGreaterThan(5);
  });

  it("never comes earlier than a server says, and at most a quarter later", () => {
    const random = seeded(3);
    const backoff = waits(1_000, 30_000, random);

    const delays = Array.from({ length: 100 }, () => backoff.nextDelayMs(4_000));

    expect(Math.min(...delays)).toBeGreaterThanOrEqual(4_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(5_000);
  });
});
