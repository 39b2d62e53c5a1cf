import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { AuthError, ForbiddenError, NotFoundError, SupersededError } from "../src/errors.js";
import { json, refusal } from "./stage/gateway.js";
import { Reader, Stage, settle } from "./stage/stage.js";

describe("the token", () => {
  it.each([[" t\n"], [() => "t\r\n"]])("is without the line break of the file that it came from: %o", async (token) => {
    const stage = new Stage();
    stage.connect({ token });
    await settle();

    expect(stage.gateway.socket.protocols[1]).toBe("bearer.t");
  });

  it("is asked for before every attempt, and a source that fails is no end (U04)", async () => {
    const stage = new Stage();
    let calls = 0;
    const session = stage.connect({
      token: async () => {
        calls += 1;
        if (calls <= 2) throw new Error("secret endpoint down");
        return `t${calls}`;
      },
    });
    await stage.clock.advance(10_000);
    stage.gateway.socket.welcome().end(1011);
    await stage.clock.advance(10_000);

    expect(stage.gateway.sockets.map(({ protocols }) => protocols[1])).toEqual(["bearer.t3", "bearer.t4"]);
    expect(session.error).toBe(null);
  });

  it("that is refused twice in a row is the end, also as an error of the loop (U04)", async () => {
    const stage = new Stage();
    const session = stage.connect({ token: () => "the-same" });
    const reader = new Reader(session);
    stage.gateway.onSocket = (socket) => socket.open().end(4401, "expired");

    await stage.clock.advance(60_000);

    expect(stage.gateway.sockets.length).toBe(2);
    expect(session.error).toBeInstanceOf(AuthError);
    expect(reader.error).toBe(session.error);
    expect(String(session.error) + JSON.stringify(session.error)).not.toContain("the-same");
  });

  it("is in nothing that a session prints (U02)", async () => {
    const stage = new Stage();
    const session = await stage.live({ token: "marker-of-a-secret" });
    stage.gateway.socket.control({ kind: "error", code: "busy", message: "later", retryable: true, after_ms: 10 });

    expect(inspect(session, { depth: 20 })).not.toContain("marker-of-a-secret");
    expect(stage.gateway.socket.url.href).not.toContain("marker-of-a-secret");
  });

  it("that is let in only to be refused at once is no new one", async () => {
    const stage = new Stage();
    const session = stage.connect({ token: () => "the-same" });
    stage.gateway.onSocket = (socket) => socket.welcome().end(4401, "revoked");

    await stage.clock.advance(60_000);

    expect([stage.gateway.sockets.length, session.error?.code]).toEqual([2, "unauthenticated"]);
  });

  it("that is new is tried once more, and lets us in (U04)", async () => {
    const stage = new Stage();
    const tokens = ["old", "new"];
    const session = stage.connect({ token: () => tokens.shift() ?? "late" });
    stage.gateway.onSocket = (socket) => {
      if (socket.protocols[1] === "bearer.old") socket.open().end(4401, "expired");
      else socket.welcome();
    };

    await stage.clock.advance(10_000);

    expect([session.state, stage.gateway.sockets.length]).toEqual(["live", 2]);
  });

  it("without a source is not tried again", async () => {
    const stage = new Stage();
    const session = stage.connect({ token: "fixed" });
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => refusal(401, "unauthenticated");

    await stage.clock.advance(60_000);

    expect([session.error?.code, stage.gateway.sockets.length]).toEqual(["unauthenticated", 1]);
  });

  it("is sent in the first message when it fits no subprotocol item", async () => {
    const stage = new Stage();
    stage.connect({ token: "with spaces, and comma" });
    await settle();
    stage.gateway.socket.open();

    expect(stage.gateway.socket.protocols).toEqual(["relayrouter.v1"]);
    expect(stage.gateway.socket.controls("auth")[0]?.token).toBe("with spaces, and comma");
    expect(stage.gateway.socket.url.href).not.toContain("spaces");
  });

  it("that ends soon is renewed in band", async () => {
    const stage = new Stage();
    const tokens = ["a", "b"];
    await stage.live({ token: () => tokens.shift() ?? "c" });
    stage.gateway.socket.control({ kind: "expiring", after_ms: 30_000 });
    await settle();

    expect(stage.gateway.socket.controls("auth")).toEqual([{ kind: "auth", token: "b" }]);
  });
});

describe("a refusal that a browser cannot see (U07)", () => {
  it.each([
    [401, "unauthenticated", AuthError],
    [403, "forbidden", ForbiddenError],
    [404, "not_found", NotFoundError],
    [410, "gone", NotFoundError],
  ])("%i is told by the same URL without an upgrade", async (status, code, type) => {
    const stage = new Stage();
    const session = stage.connect({ token: "t" });
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => refusal(status, code);

    await stage.clock.advance(60_000);

    expect(session.error).toBeInstanceOf(type);
    expect(stage.gateway.requests[0]?.headers.Authorization).toBe("Bearer t");
    expect(stage.gateway.requests[0]?.url.href).not.toContain("bearer");
    expect(stage.gateway.sockets.length).toBe(1);
  });

  it("is none when the gateway would let us in: the transport failed", async () => {
    const stage = new Stage();
    const session = stage.connect({ channel: "websocket" });
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => json({ ok: true });

    await stage.clock.advance(30_000);

    expect(session.error).toBe(null);
    expect(stage.gateway.sockets.length).toBeGreaterThan(2);
  });
});

describe("two tabs with one client id (B08)", () => {
  it("the first one stays closed once it was superseded", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.control({ kind: "superseded" });
    stage.gateway.socket.end(4409, "superseded");

    await stage.clock.advance(30_000);

    expect(session.error).toBeInstanceOf(SupersededError);
    expect(stage.gateway.sockets.length).toBe(1);
  });

  it("a duplicated tab takes an id of its own, and none of the other's inputs", async () => {
    const stage = new Stage();
    const place = { client: "tab", user: null, cursor: "e.f.5", inputs: [{ seq: 3, payload: { text: "mine" } }] };
    const store = { isShared: false, load: async () => place, save: async () => undefined };
    stage.connect({ store });
    await settle();
    stage.connect({ store });
    await settle();

    const [first, second] = stage.gateway.sockets;
    expect([first?.query.client, second?.query.cursor]).toEqual(["tab", "e.f.5"]);
    expect(second?.query.client).not.toBe("tab");
    second?.welcome();
    await settle();
    expect(second?.inputs).toEqual([]);
  });
});
