import { describe, expect, it } from "vitest";
import { json, PlayedStream, refusal } from "./stage/gateway.js";
import { Reader, Stage, settle } from "./stage/stage.js";

describe("backoff", () => {
  it("grows while connections are accepted and closed at once (B04)", async () => {
    const stage = new Stage(4);
    stage.gateway.onSocket = (socket) => {
      socket.welcome();
      stage.clock.after(50, () => socket.end(1011));
    };
    stage.connect();

    await stage.clock.advance(120_000);

    expect(stage.gateway.sockets.length).toBeLessThanOrEqual(20);
    expect(stage.gateway.sockets.at(-1)?.query.retry).toBe(String(stage.gateway.sockets.length - 1));
  });

  it("begins anew only after a connection lived and was heard", async () => {
    const stage = new Stage();
    await stage.live();
    stage.gateway.socket.end();
    await stage.clock.advance(1_000);
    stage.gateway.socket.welcome().delta(1, "a", 0);
    await stage.clock.advance(9_999);
    stage.gateway.socket.end();
    await stage.clock.advance(2_000);
    stage.gateway.socket.welcome({ cursor: "e.f.1" }).delta(2, "b", 1);
    await stage.clock.advance(10_000);
    stage.gateway.socket.end();
    await stage.clock.advance(1_000);

    expect(stage.gateway.sockets.map(({ query }) => query.retry)).toEqual([undefined, "1", "2", "1"]);
  });

  it("spreads a thousand clients that lost their server together (B06, K09)", async () => {
    const firsts: number[] = [];
    for (let seed = 1; seed <= 1_000; seed++) {
      const stage = new Stage(seed * 104_729);
      const session = await stage.live();
      const at = stage.clock.nowMs;
      stage.gateway.socket.end();
      await stage.clock.advance(1_000);
      firsts.push((stage.gateway.socketTimes[1] ?? 0) - at);
      await session.close();
    }

    const slots = Array.from({ length: 10 }, (_, i) => firsts.filter((ms) => Math.floor(ms / 100) === i).length);
    expect(Math.max(...slots)).toBeLessThanOrEqual(150);
    expect(slots.reduce((sum, count) => sum + count)).toBe(1_000);
  });

  it("waits at least as long as a busy server says, and does not fall down the ladder for it", async () => {
    const stage = new Stage();
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => refusal(503, "busy", { "Retry-After": "5" });
    const session = stage.connect();

    await stage.clock.advance(1);
    const state = session.state;
    await stage.clock.advance(60_000);

    const waits = stage.gateway.socketTimes.slice(1).map((at, i) => at - (stage.gateway.socketTimes[i] ?? 0));
    expect(state).toBe("busy");
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(6_250);
    expect(stage.gateway.requests.every(({ url }) => url.pathname.endsWith("/ws"))).toBe(true);
  });

  it("that is busy is not asked sooner because the page is seen again", async () => {
    const stage = new Stage();
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => refusal(503, "busy", { "Retry-After": "5" });
    stage.connect();
    await stage.clock.advance(100);
    for (const event of ["visible", "online"] as const) stage.fire(event);
    await stage.clock.advance(4_800);

    expect(stage.gateway.sockets.length).toBe(1);
  });

  it("honours an error's after_ms when the close follows", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const at = stage.clock.nowMs;
    stage.gateway.socket.control({ kind: "error", code: "over_limit", retryable: true, after_ms: 8_000 });
    stage.gateway.socket.end(4429);
    await stage.clock.advance(1);
    const state = session.state;
    await stage.clock.advance(10_000);

    expect(state).toBe("busy");
    expect(stage.gateway.socketTimes[1]).toBeGreaterThanOrEqual(at + 8_000);
  });
});

describe("one socket", () => {
  it("is opened whatever asks for it at once (B02)", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.gateway.socket.end();
    await settle();
    for (const event of ["online", "visible", "restored"] as const) stage.fire(event);
    session.probe();
    await stage.clock.advance(10_000);
    for (const event of ["online", "visible", "restored"] as const) stage.fire(event);
    session.probe();
    await stage.clock.advance(5);

    expect(stage.gateway.open.length).toBe(1);
    stage.gateway.socket.welcome();
    await stage.clock.advance(1_000);
    expect(stage.gateway.open.length).toBe(1);
  });

  it("is all that a fast remount leaves, twenty times (B03)", async () => {
    const stage = new Stage();
    const token = () => new Promise<string>((resolve) => stage.clock.after(50, () => resolve("t")));
    for (let i = 0; i < 20; i++) {
      const first = stage.connect({ token });
      void first.close();
      const second = stage.connect({ token });
      await stage.clock.advance(60);
      expect(stage.gateway.open.length).toBe(1);
      stage.gateway.socket.welcome();
      await second.close();
      expect(stage.gateway.open.length).toBe(0);
      await stage.clock.advance(60);
    }

    expect(stage.gateway.sockets.length).toBe(20);
    expect([stage.clock.pending, stage.listening]).toEqual([0, 0]);
  });

  it("closed, leaves no socket, no timer and no listener (B02)", async () => {
    const stage = new Stage();
    const session = await stage.live({ keepAlive: 1_000 });
    stage.gateway.socket.delta(1, "a", 0);
    void session.send({ text: "hi" }).catch(() => undefined);
    void session.interrupt("r").catch(() => undefined);
    await stage.clock.advance(10);

    await session.close();

    expect(stage.gateway.open.length).toBe(0);
    expect([stage.clock.pending, stage.listening]).toEqual([0, 0]);
  });
});

describe("make before break", () => {
  it("keeps its slot while the old connection still delivers, and shows one sequence", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const reader = new Reader(session);
    const old = stage.gateway.socket.delta(1, "one ", 0);
    const at = stage.clock.nowMs;
    old.control({ kind: "reconnect_later", after_ms: 4_000, reason: "drain" });
    await stage.clock.advance(3_999);
    const early = stage.gateway.sockets.length;
    await stage.clock.advance(1_001);
    const { query } = stage.gateway.socket;
    old.delta(2, "two ", 4);
    stage.gateway.socket.welcome({ cursor: "e.f.1" });
    old.delta(3, "three ", 8);
    stage.gateway.socket.delta(3, "two three ", 4, { first_seq: 2 }).delta(5, "ee four five", 11, { first_seq: 3 });
    old.delta(4, "four ", 14).end(1000, "moved");
    await stage.clock.advance(20_000);

    expect(early).toBe(1);
    expect(stage.gateway.socketTimes[1]).toBeGreaterThanOrEqual(at + 4_000);
    expect(stage.gateway.socketTimes[1]).toBeLessThanOrEqual(at + 5_000);
    expect(query.replaces).toMatch(/^c\d+$/);
    expect(reader.seqs).toEqual([1, 2, 3, 5]);
    expect(reader.texts.join("")).toBe("one two three four five");
    expect([stage.gateway.sockets.length, session.state]).toEqual([2, "live"]);
  });

  it("stays on the old connection when the new one is refused", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const old = stage.gateway.socket;
    old.control({ kind: "reconnect_later", after_ms: 1_000 });
    stage.gateway.onRequest = () => refusal(503, "draining", { "Retry-After": "2" });
    await stage.clock.advance(1_300);
    stage.gateway.socket.end();
    await stage.clock.advance(1);
    old.delta(1, "a", 0);
    const reader = new Reader(session);
    await stage.clock.advance(3_000);

    expect(reader.seqs).toEqual([1]);
    expect(session.state).toBe("live");
    expect(stage.gateway.sockets.length).toBe(3);
  });

  it("lets the old connection go after a while, if its server does not", async () => {
    const stage = new Stage();
    await stage.live();
    const old = stage.gateway.socket;
    old.control({ kind: "reconnect_later", after_ms: 10 });
    await stage.clock.advance(20);
    stage.gateway.socket.welcome();
    await stage.clock.advance(9_900);
    const early = old.wasClosedByClient;
    await stage.clock.advance(100);

    expect([early, old.wasClosedByClient]).toEqual([false, true]);
    expect(stage.gateway.open.length).toBe(1);
  });
});

describe("the ladder", () => {
  it("where there is no WebSocket, the next way is tried", async () => {
    const stage = new Stage();
    stage.gateway.onRequest = () => json({ ok: true });
    stage.connect({ platform: { ...stage.platform, WebSocket: null } });
    await stage.clock.advance(120_000);

    expect(stage.gateway.requests.some(({ url }) => url.pathname.endsWith("/events"))).toBe(true);
  });

  const blocked = (stage: Stage) => {
    stage.gateway.onSocket = (socket) => socket.end();
    const streams: PlayedStream[] = [];
    stage.gateway.onRequest = ({ url, signal }) => {
      if (!url.pathname.endsWith("/events")) return new Response("<html>", { status: 502 });
      const stream = new PlayedStream(signal);
      streams.push(stream);
      const payload = { kind: "welcome", connection: "s1", cursor: "e.f.0", input_seq: 0 };
      stream.event({ type: "control", payload });
      return stream.response;
    };
    return streams;
  };

  it("goes to SSE after three transport failures in a row, and climbs back by make before break", async () => {
    const stage = new Stage();
    const streams = blocked(stage);
    const session = stage.connect();
    const reader = new Reader(session);
    await stage.clock.advance(10_000);
    const [attempts, channel] = [stage.gateway.sockets.length, session.channel];
    streams[0]?.event({ type: "text", seq: 1, payload: { kind: "delta", run: "r", text: "one ", at: 0 } });
    await settle();
    stage.gateway.onSocket = (socket) => {
      socket.welcome({ cursor: "e.f.0" }).delta(2, "one two", 0, { first_seq: 1 });
    };
    await stage.clock.advance(80_000);

    expect([attempts, channel]).toEqual([3, "sse"]);
    expect(session.channel).toBe("websocket");
    expect(stage.gateway.socket.query.replaces).toBe("s1");
    expect(reader.texts).toEqual(["one ", "two"]);
  });

  it("is not gone down while nobody answers at all: an outage says nothing about WebSockets", async () => {
    const stage = new Stage();
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => {
      throw new TypeError("fetch failed");
    };
    const session = stage.connect();
    await stage.clock.advance(60_000);
    stage.gateway.onSocket = (socket) => socket.welcome();
    await stage.clock.advance(30_000);

    expect(session.channel).toBe("websocket");
    expect(new Set(stage.gateway.requests.map(({ url }) => url.pathname))).toEqual(new Set(["/v1/sessions/chat/ws"]));
  });

  it("holds one event stream whatever is asked of it, and lets it go at the climb and at the end (S04)", async () => {
    const stage = new Stage();
    const streams = blocked(stage);
    const session = stage.connect();
    const readers = [1, 2, 3, 4, 5].map(() => new Reader(session));
    await stage.clock.advance(10_000);
    const open = (of: PlayedStream[]): number => of.filter((stream) => !stream.isAborted).length;
    const read = open(streams);
    stage.gateway.onSocket = (socket) => {
      socket.welcome({ cursor: "e.f.0" });
    };
    await stage.clock.advance(90_000);
    const climbed = [session.channel, open(streams)];

    const other = new Stage();
    const others = blocked(other);
    const closed = other.connect();
    await other.clock.advance(10_000);
    const before = open(others);
    closed.close();
    await settle();

    expect(readers.length).toBe(5);
    expect(read).toBe(1);
    expect(climbed).toEqual(["websocket", 0]);
    expect([before, open(others)]).toEqual([1, 0]);
  });

  it("stays on SSE when a climb fails, and is not disturbed by it", async () => {
    const stage = new Stage();
    blocked(stage);
    const session = stage.connect();
    await stage.clock.advance(10_000);
    const keep = stage.clock.after(1e9, () => undefined);
    const states: string[] = [];
    session.on("state", ({ state }) => states.push(state));
    for (let i = 0; i < 20; i++) {
      await stage.clock.advance(10_000);
      stage.fire("visible"); // nothing to hear on a played stream: it is replaced
    }
    keep();

    expect(session.channel).toBe("sse");
    expect(new Set(states)).toEqual(new Set(states.length ? ["live"] : []));
    expect(stage.gateway.sockets.length).toBeGreaterThan(4);
  });

  it("does not move for a redirect's or a portal's page as if a gateway had refused", async () => {
    const stage = new Stage();
    stage.gateway.onSocket = (socket) => socket.end();
    stage.gateway.onRequest = () => new Response("<html>please log in</html>", { status: 200 });
    const session = stage.connect({ channel: "websocket" });

    await stage.clock.advance(60_000);

    expect(session.error).toBe(null);
    expect(["waiting", "connecting"]).toContain(session.state);
  });
});

describe("a stream", () => {
  it("that says welcome and goodbye in one breath is over once", async () => {
    const stage = new Stage();
    stage.gateway.onRequest = ({ signal }) => {
      const stream = new PlayedStream(signal);
      const payload = { kind: "welcome", connection: "s", cursor: "e.f.0", input_seq: 0 };
      const welcome = `data: ${JSON.stringify({ type: "control", payload })}\n\n`;
      stream.write(`${welcome}event: close\ndata: {"code":1011,"reason":"fault"}\n\n`);
      return stream.response;
    };
    stage.connect({ channel: "sse" });
    await stage.clock.advance(120_000);

    expect(stage.gateway.requests.length).toBeLessThanOrEqual(20);
  });
});
