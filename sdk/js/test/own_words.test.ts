import { describe, expect, it } from "vitest";
import { ForbiddenError, RefusedError } from "../src/errors.js";
import type { JsonObject } from "../src/messages.js";
import { asJson } from "../src/own_words.js";
import { Stage, settle } from "./stage/stage.js";

const circle: Record<string, unknown> = {};
circle.self = circle;

describe("what an application says", () => {
  it.each([["Hello"], [undefined], [null], [[1]], [7], [{ a: 10n }], [circle], [() => ({})]])(
    "is refused at once when it is no JSON object, and holds nothing up: %o",
    async (payload) => {
      const stage = new Stage();
      const session = stage.connect();
      await settle();
      stage.gateway.socket.welcome();
      await settle();

      await expect(session.send(payload as unknown as JsonObject)).rejects.toThrow(RefusedError);
      void session.send({ text: "next" });
      await settle();

      expect(stage.gateway.socket.inputs.map(({ payload }) => payload)).toEqual([{ text: "next" }]);
    },
  );

  it("has no halves of characters: no gateway could read them", () => {
    const cut = "a👍".slice(0, 2);
    const plain = { text: `${cut}b`, [cut]: ["👍", "\\ud800", '"', "\n", "\u0000", "\ufffd"] };

    expect(asJson(plain)).toEqual({ text: "a\ufffdb", "a\ufffd": ["👍", "\\ud800", '"', "\n", "\u0000", "\ufffd"] });
  });

  it("is as it was when it was said, also after the application has changed it", async () => {
    const stage = new Stage();
    const session = stage.connect();
    const payload = { text: "a" };
    void session.send(payload);
    payload.text = "b";
    await settle();
    stage.gateway.socket.welcome();
    await settle();

    expect(stage.gateway.socket.inputs.map(({ payload }) => payload)).toEqual([{ text: "a" }]);
  });

  it("is no unhandled rejection when it is refused and nobody waits", async () => {
    const seen: unknown[] = [];
    const note = (reason: unknown) => seen.push(reason);
    process.on("unhandledRejection", note);
    const stage = new Stage();
    const session = stage.connect({ queueItems: 1 });
    await settle();
    stage.gateway.socket.welcome();
    await settle();

    for (let count = 0; count < 3; count++) void session.send({ text: "full" });
    await session.close();
    void session.send({ text: "closed" });
    void session.pause();
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off("unhandledRejection", note);

    expect(seen).toEqual([]);
  });

  it("is rejected with what ended the session for good", async () => {
    const stage = new Stage();
    const session = stage.connect();
    await settle();
    stage.gateway.socket.welcome();
    await settle();
    const waiting = [session.send({ text: "a" }), session.pause()];
    await settle();
    stage.gateway.socket.end(4403);
    await settle();

    for (const said of [...waiting, session.send({ text: "b" }), session.interrupt("r")]) {
      await expect(said).rejects.toThrow(ForbiddenError);
    }
  });
});
