import { describe, expect, it } from "vitest";
import type { CursorStore } from "../src/store.js";
import { Stage, settle } from "./stage/stage.js";

const never = new Promise<never>(() => undefined);
const fail = (): never => {
  throw new Error("quota");
};

describe("a store of the application", () => {
  it.each([
    ["that throws in the call", { isShared: false, load: fail, save: fail }],
    ["that rejects", { isShared: false, load: async () => fail(), save: async () => fail() }],
  ])("%s costs the place and nothing else", async (_name, store: CursorStore) => {
    const stage = new Stage();
    const session = stage.connect({ store });
    const errors: string[] = [];
    session.on("error", ({ message }) => errors.push(message));
    await settle();
    stage.gateway.socket.welcome();
    void session.send({ text: "a" });
    await settle();
    void session.send({ text: "b" });
    await settle();

    expect(stage.gateway.socket.inputs.map(({ payload }) => payload)).toEqual([{ text: "a" }, { text: "b" }]);
    expect(errors).toContain("the store could not be written");
    await session.close();
  });

  it("that never answers is waited for once, and holds neither a connection nor an input nor the end up", async () => {
    const stage = new Stage();
    const session = stage.connect({ store: { isShared: false, load: () => never, save: () => never } });
    const errors: string[] = [];
    session.on("error", ({ message }) => errors.push(message));
    await settle();
    expect(stage.gateway.sockets).toHaveLength(0);
    await stage.clock.advance(5_000);
    await settle();
    stage.gateway.socket.welcome();
    void session.send({ text: "a" });
    await settle();

    expect(stage.gateway.socket.inputs).toHaveLength(1);
    expect(errors).toEqual(["the store could not be read"]);
    await session.close();
  });

  it("that hangs at a save is given up", async () => {
    const stage = new Stage();
    const session = stage.connect({ store: { isShared: false, load: async () => null, save: () => never } });
    await settle();
    stage.gateway.socket.welcome();
    void session.send({ text: "a" });
    await settle();
    expect(stage.gateway.socket.inputs).toHaveLength(0);
    await stage.clock.advance(5_000);
    await settle();

    expect(stage.gateway.socket.inputs).toHaveLength(1);
    await session.close();
  });
});
