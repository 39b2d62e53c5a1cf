import { describe, expect, it } from "vitest";
import { ownOrder } from "../src/gateway_order.js";
import { readOptions } from "../src/options.js";
import { Stage, seeded } from "./stage/stage.js";

const urls = ["http://a", "http://b", "http://c", "http://d"];

describe("The gateways' order", () => {
  it("begins with the first, and three hundred sessions spread over the others", () => {
    const random = seeded(11);

    const orders = Array.from({ length: 300 }, () => ownOrder(urls, random));

    expect(new Set(orders.map(([first]) => first))).toEqual(new Set(["http://a"]));
    for (const place of [1, 2, 3])
      for (const url of urls.slice(1)) {
        const count = orders.filter((order) => order[place] === url).length;
        expect(count).toBeGreaterThanOrEqual(60);
        expect(count).toBeLessThanOrEqual(140);
      }
  });

  it.each([0, 0.5, 0.999_999, 1])("has every gateway once, also when chance says %d", (drawn) => {
    for (const count of [1, 2, 3, 4])
      expect([...ownOrder(urls.slice(0, count), () => drawn)].sort()).toEqual(urls.slice(0, count));
  });

  it("is drawn by the session's own chance", () => {
    const orders = Array.from({ length: 20 }, (_, seed) =>
      readOptions({ url: urls, session: "s" }, seeded(seed * 7919)).urls.join(),
    );

    expect(new Set(orders).size).toBeGreaterThan(2);
  });

  it("is gone round: each is reached before any is tried again, and then again in that order", async () => {
    const stage = new Stage(5);
    stage.connect({ url: urls, channel: "websocket" });
    await stage.clock.advance(600_000); // nobody answers

    const tried = stage.gateway.sockets.slice(0, 8).map(({ url }) => url.hostname);
    expect(tried[0]).toBe("a");
    expect([...tried.slice(0, 4)].sort()).toEqual(["a", "b", "c", "d"]);
    expect(tried).toHaveLength(8);
    expect(tried.slice(4)).toEqual(tried.slice(0, 4));
  });
});
