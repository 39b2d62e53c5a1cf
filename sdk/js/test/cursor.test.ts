import { describe, expect, it } from "vitest";
import { formatCursor, parseCursor } from "../src/cursor.js";
import { ProtocolError } from "../src/errors.js";
import { readFrame } from "../src/messages.js";
import { connect } from "../src/session.js";

describe("integers (B09)", () => {
  it("up to 2^53 - 1 come back unchanged", () => {
    expect(formatCursor(parseCursor("ep.f1.9007199254740991"))).toBe("ep.f1.9007199254740991");
  });

  it.each(["ep.f1.9007199254740992", "ep.f1.9007199254740993", "ep.f1.01", "ep.1", "EP.f.1", "ep.f.-1", "", null, 7])(
    "cursor %s is refused",
    (text) => {
      expect(() => parseCursor(text)).toThrow(ProtocolError);
    },
  );

  it("a cursor option that would be rounded is refused at once", () => {
    const options = { url: "http://gw.test", session: "s", cursor: "ep.f1.9007199254740993" };

    expect(() => connect(options)).toThrow(ProtocolError);
  });

  it("a frame whose seq was rounded is refused", () => {
    const text = '{"type":"text","seq":9007199254740993,"payload":{"kind":"data"}}';

    expect(() => readFrame(JSON.parse(text))).toThrow(ProtocolError);
  });
});
