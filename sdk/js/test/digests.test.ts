import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { sha256 } from "../src/digests.js";

describe("sha256", () => {
  it.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1_000, 100_003])("of %i bytes equals Node's", (length) => {
    const data = Uint8Array.from({ length }, (_, i) => (i * 31 + length) & 255);

    expect(sha256(data)).toBe(createHash("sha256").update(data).digest("hex"));
  });
});
