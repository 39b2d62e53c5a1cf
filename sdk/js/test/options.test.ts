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
    [{ ...good, session: "" }],
    [{ ...good, channel: "sockets" }],
    [{ ...good, heartbeat: 1 }],
  ])("that can never work are refused at once: %o", (options) => {
    expect(() => readOptions(options as unknown as ConnectOptions)).toThrow(
      expect.objectContaining({ code: "bad_options" }),
    );
  });

  it("may be one address or several, with a path and an IPv6 host", () => {
    expect(readOptions(good).urls).toEqual(["https://relay.example.com"]);
    expect(readOptions({ ...good, url: ["ws://[::1]:8080/relay/", "wss://b"] }).urls).toEqual([
      "http://[::1]:8080/relay",
      "https://b",
    ]);
  });
});
