import { describe, expect, it } from "vitest";
import { createEventParser } from "../src/sse.js";

const LINES = [
  "\ufeff: a comment",
  "",
  "data: one",
  "data: two",
  "id: e.f.1",
  "",
  "data",
  "",
  "event: named",
  "data:without space",
  ": ping",
  ":",
  "data:  two spaces",
  "retry: 100",
  "unknown",
  "",
  "data: 🙂 \u2028 \u2029 \u0085 \u000b",
  "",
  "event: lost without data",
  "",
  "",
];
const EVENTS = [
  ["message", "one\ntwo"],
  ["named", "without space\n two spaces"],
  ["message", "🙂 \u2028 \u2029 \u0085 \u000b"],
];

function parse(parts: string[]): [string, string][] {
  const events: [string, string][] = [];
  const parser = createEventParser((name, data) => events.push([name, data]));
  for (const part of parts) parser.push(part);
  return events;
}

describe.each([
  ["LF", "\n"],
  ["CR", "\r"],
  ["CRLF", "\r\n"],
])("event streams with %s (S05, S06, S08)", (_, end) => {
  const stream = LINES.join(end);

  it("are parsed whole", () => {
    expect(parse([stream])).toEqual(EVENTS);
  });

  it("are parsed character by character", () => {
    expect(parse([...stream])).toEqual(EVENTS);
  });

  it("are parsed at every split in two", () => {
    for (let at = 0; at <= stream.length; at++) {
      expect(parse([stream.slice(0, at), stream.slice(at)])).toEqual(EVENTS);
    }
  });
});
