import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CLOSE_CODES, reconnectAfter } from "../src/close_codes.js";
import { judge } from "../src/endings.js";

const vectors = JSON.parse(
  readFileSync(new URL("../../conformance/vectors/close_codes.json", import.meta.url), "utf8"),
) as { close_codes: { code: number; reconnect: string }[] };

describe("close codes", () => {
  it("are the gateway's, every row and no row more", () => {
    expect(Object.fromEntries(CLOSE_CODES)).toEqual(
      Object.fromEntries(vectors.close_codes.map(({ code, reconnect }) => [code, reconnect])),
    );
  });

  it.each([1001, 1005, 1006, 1011, 1012, 1013, 1014, 4408, 4429, 4999])(
    "%i is followed by another attempt (B07)",
    (code) => {
      expect(judge({ kind: "closed", code, reason: "" }).kind).toBe("again");
    },
  );

  it.each([1000, 1002, 1003, 1007, 1008, 4403, 4404, 4409])("%i is final (B07)", (code) => {
    expect(judge({ kind: "closed", code, reason: "" }).kind).toBe("final");
  });

  it("4401 asks for a new token", () => {
    expect(judge({ kind: "closed", code: 4401, reason: "" }).kind).toBe("new_token");
  });

  it("1000 `moved` ends one socket only", () => {
    expect(reconnectAfter(1000, "moved")).toBe("yes");
  });
});
