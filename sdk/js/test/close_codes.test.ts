import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { finalError, isBusyCode, TOO_BIG, UNAUTHENTICATED } from "../src/close_codes.js";

const vectors = JSON.parse(
  readFileSync(new URL("../../conformance/vectors/close_codes.json", import.meta.url), "utf8"),
) as { close_codes: { code: number; reconnect: string }[] };

/** What this client does after a close, in the vectors' words as far as it tells them apart. */
const ruleOf = (code: number): string => {
  if (code === UNAUTHENTICATED) return "new_token";
  if (code === TOO_BIG) return "drop_message";
  return finalError(code, "") === null ? "again" : "no";
};
const OTHERS_WORDS = ["yes", "backoff", "slot"];

describe("close codes", () => {
  it.each(vectors.close_codes)("of the gateway's table are known: $code", ({ code, reconnect }) => {
    expect(ruleOf(code)).toBe(OTHERS_WORDS.includes(reconnect) ? "again" : reconnect);
  });

  it.each([1005, 1006, 1014, 4999])("that are not in it pass: %i (B07)", (code) => {
    expect(ruleOf(code)).toBe("again");
  });

  it("of a gateway that has too much to do are told apart", () => {
    expect([1001, 1013, 4408, 4429].filter(isBusyCode)).toEqual([1013, 4429]);
  });

  it("1000 `moved` ends one socket only", () => {
    expect(finalError(1000, "moved")).toBe(null);
  });
});
