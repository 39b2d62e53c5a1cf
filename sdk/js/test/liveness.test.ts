import { describe, expect, it } from "vitest";
import { PlayedStream } from "./stage/gateway.js";
import { Reader, Stage, settle } from "./stage/stage.js";

describe("liveness", () => {
  it("a hidden tab whose timers fire once a minute keeps its connection (B01)", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.clock.isThrottled = true;
    stage.fire("hidden");

    await stage.clock.advance(10 * 60_000);

    expect([stage.gateway.sockets.length, session.state]).toEqual([1, "live"]);
    expect(stage.gateway.socket.controls("ping").length).toBeGreaterThan(5);
  });

  it("a connection that is silent is asked after a heartbeat, and replaced when no answer comes", async () => {
    const stage = new Stage();
    await stage.live({ heartbeat: 5_000 });
    const old = stage.gateway.socket;
    await stage.clock.advance(5_000);
    const pings = old.controls("ping").length;
    old.isDead = true;
    await stage.clock.advance(5_000 + 5_000 + 1_000);

    expect(pings).toBe(1);
    expect(old.wasClosedByClient).toBe(true);
    expect(stage.gateway.sockets.length).toBe(2);
    expect(stage.gateway.socket.query.replaces).toMatch(/^c/);
  });

  it("is proved by any frame, though no pong comes", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const { socket } = stage.gateway;
    socket.isDead = true;
    session.probe();
    socket.isDead = false;
    await stage.clock.advance(4_999);
    socket.control({ kind: "ask_open", ask: { ask: "a1", message: "?" } });
    await stage.clock.advance(4_000);

    expect(stage.gateway.sockets.length).toBe(1);
  });

  it.each(["visible", "restored", "online"] as const)(
    "%s asks at once, and a dead socket is left alone for good",
    async (event) => {
      const stage = new Stage();
      const session = await stage.live();
      const reader = new Reader(session);
      const old = stage.gateway.socket.delta(1, "one ", 0);
      old.isDead = true;
      stage.fire(event);
      await stage.clock.advance(6_100);
      stage.gateway.socket.welcome({ cursor: "e.f.1" });
      old.isDead = false;
      old.delta(2, "ghost", 4).end(4409, "superseded");
      stage.gateway.socket.delta(2, "two", 4);
      await stage.clock.advance(100);

      expect(stage.gateway.sockets.length).toBe(2);
      expect(reader.texts).toEqual(["one ", "two"]);
      expect(session.state).toBe("live");
    },
  );

  it("a machine that slept asks before it judges", async () => {
    const stage = new Stage();
    const session = await stage.live();
    await stage.clock.sleep(3_600_000);
    await stage.clock.advance(1_000);

    expect(stage.gateway.socket.controls("ping").length).toBeGreaterThan(0);
    expect([stage.gateway.sockets.length, session.state]).toEqual([1, "live"]);
  });

  it("a frozen page does not take its own silence for the server's", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const { socket } = stage.gateway;
    socket.isDead = true;
    session.probe();
    await stage.clock.sleep(60_000);
    socket.isDead = false;
    await stage.clock.advance(100);

    expect([stage.gateway.sockets.length, session.state]).toEqual([1, "live"]);
    expect(socket.controls("ping").length).toBeGreaterThan(0);
  });

  it("a socket that is let go has no handlers left", async () => {
    const stage = new Stage();
    const session = await stage.live();
    const { socket } = stage.gateway;
    await session.close();

    expect([socket.onopen, socket.onmessage, socket.onclose]).toEqual([null, null, null]);
  });

  it("a clock that only jumped asks as well", async () => {
    const stage = new Stage();
    await stage.live();
    stage.clock.wallAheadMs += 600_000;
    await stage.clock.advance(5_000);

    expect(stage.gateway.socket.controls("ping").length).toBe(1);
    expect(stage.gateway.sockets.length).toBe(1);
  });

  it("a silence in the middle of a run is suspicious sooner", async () => {
    const stage = new Stage();
    await stage.live();
    stage.gateway.socket.text(1, { kind: "run_start", run: "r" });
    await stage.clock.advance(3_000);
    const within = stage.gateway.socket.controls("ping").length;
    stage.gateway.socket.text(2, { kind: "run_end", run: "r" });
    await stage.clock.advance(9_000);

    expect([within, stage.gateway.socket.controls("ping").length]).toEqual([1, 1]);
  });

  it("sends something as often as asked", async () => {
    const stage = new Stage();
    await stage.live({ keepAlive: 2_000 });

    await stage.clock.advance(20_000);

    expect(stage.gateway.socket.controls("ping").length).toBe(10);
  });

  it("an event stream that cannot be asked is replaced while it is still read", async () => {
    const stage = new Stage();
    const streams: PlayedStream[] = [];
    stage.gateway.onRequest = ({ signal }) => {
      const stream = new PlayedStream(signal);
      streams.push(stream);
      const payload = { kind: "welcome", connection: `s${streams.length}`, cursor: "e.f.0", input_seq: 0 };
      stream.event({ type: "control", payload });
      return stream.response;
    };
    const session = stage.connect({ channel: "sse" });
    await stage.clock.advance(5_000);
    stage.fire("visible");
    await stage.clock.advance(10);

    expect(stage.gateway.requests.map(({ url }) => url.searchParams.get("replaces"))).toEqual([null, "s1"]);
    expect(session.state).toBe("live");
  });

  it("an event stream that an idle application does not read on is not taken for dead", async () => {
    const stage = new Stage();
    stage.gateway.onRequest = ({ signal }) => {
      const stream = new PlayedStream(signal);
      stream.event({ type: "control", payload: { kind: "welcome", connection: "s", cursor: "e.f.0", heartbeat: 15 } });
      const text = "x".repeat(300 * 1024);
      stream.event({ type: "text", seq: 1, payload: { kind: "delta", run: "r", text, at: 0 } });
      stream.event({ type: "text", seq: 2, payload: { kind: "delta", run: "r", text: "end", at: text.length } });
      return stream.response;
    };
    const session = stage.connect({ channel: "sse" });
    await stage.clock.advance(300_000);
    const requests = stage.gateway.requests.length;
    const reader = new Reader(session);
    await stage.clock.advance(100);

    expect([requests, session.state]).toEqual([1, "live"]);
    expect(reader.texts.at(-1)).toBe("end");
  });

  it("an event stream without its comments is dead", async () => {
    const stage = new Stage();
    stage.gateway.onRequest = ({ signal }) => {
      const stream = new PlayedStream(signal);
      stream.event({ type: "control", payload: { kind: "welcome", connection: "s", cursor: "e.f.0", heartbeat: 15 } });
      return stream.response;
    };
    stage.connect({ channel: "sse" });
    await stage.clock.advance(24_900);
    const before = stage.gateway.requests.length;
    await stage.clock.advance(1_200);

    expect([before, stage.gateway.requests.length]).toEqual([1, 2]);
  });
});

describe("offline", () => {
  it("nothing is tried, and online at once something is", async () => {
    const stage = new Stage();
    const session = await stage.live();
    stage.isOnline = false;
    stage.fire("offline");
    const told = session.state;
    stage.gateway.socket.end();
    await stage.clock.advance(20_000);
    const whileOffline = stage.gateway.sockets.length;
    stage.isOnline = true;
    stage.fire("online");
    await stage.clock.advance(500);

    expect([told, whileOffline, stage.gateway.sockets.length]).toEqual(["offline", 1, 2]);
  });

  it("a browser that says so wrongly is not believed for ever", async () => {
    const stage = new Stage();
    stage.isOnline = false;
    stage.connect();
    await stage.clock.advance(31_000);
    stage.gateway.socket.welcome();
    await settle();

    expect(stage.gateway.sockets.length).toBe(1);
  });
});
