import { describe, expect, it } from "vitest";
import { type ConnectOptions, readOptions } from "../src/options.js";

const good = { url: "https://relay.example.com", session: "s" };

describe("options", () => {
  it.each([
    [{}],
    [{ session: "s" }],
    [{ ...good, url: [] }],
    [{ ...good, url: "relay.example.com:8080" }],
    [{ ...good, url: "https://relay.example.com?token=x" }],
    [{ ...good, url: "https://relay.example.com?" }],
    [{ ...good, url: "https://relay.example.com#top" }],
    [{ ...good, url: "ftp://relay.example.com" }],
    [{ ...good, url: ["https://relay.example.com", ""] }],
    [{ ...good, session: "" }],
    [{ ...good, channel: "sockets" }],
    [{ ...good, heartbeat: 1 }],
  ])("that can never work are refused at once: %o", (options) => {
    expect(() => readOptions(options as unknown as ConnectOptions, Math.random)).toThrow(
      expect.objectContaining({ code: "bad_options" }),
    );
  });

  it("may be one address or several, with a path and an IPv6 host", () => {
    expect(readOptions(good, Math.random).urls).toEqual(["https://relay.example.com"]);
    expect(readOptions({ ...good, url: ["ws://[::1]:8080/relay/", "wss://b"] }, Math.random).urls).toEqual([
      "http://[::1]:8080/relay",
      "https://b",
    ]);
  });
});
