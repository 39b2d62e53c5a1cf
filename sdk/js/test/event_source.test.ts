import { describe, expect, it } from "vitest";
import type { EventSourceLike } from "../src/platform.js";
import { json } from "./stage/gateway.js";
import { Reader, Stage, settle } from "./stage/stage.js";

class PlayedEventSource implements EventSourceLike {
  static all: PlayedEventSource[] = [];
  onerror: ((event: never) => void) | null = null;
  isClosed = false;
  private readonly listeners = new Map<string, (event: { data: string }) => void>();

  constructor(readonly url: string) {
    PlayedEventSource.all.push(this);
  }

  addEventListener(name: string, listener: (event: { data: string }) => void): void {
    this.listeners.set(name, listener);
  }

  close(): void {
    this.isClosed = true;
  }

  fire(name: string, data: unknown): void {
    this.listeners.get(name)?.({ data: JSON.stringify(data) });
  }

  welcome(): void {
    const payload = { kind: "welcome", connection: "s", cursor: "e.f.0", input_seq: 0 };
    this.fire("welcome", { type: "control", payload });
  }
}

describe("where fetch cannot stream", () => {
  const stageOf = () => {
    PlayedEventSource.all = [];
    const stage = new Stage();
    Object.assign(stage.platform, { EventSource: PlayedEventSource });
    stage.gateway.onRequest = ({ url }) => json(url.pathname === "/v1/tickets" ? { ticket: "t1" } : { ok: true });
    return stage;
  };

  it("an EventSource reads, with a ticket in place of the token", async () => {
    const stage = stageOf();
    const session = stage.connect({ channel: "sse", token: "secret" });
    const reader = new Reader(session);
    await settle();
    const [source] = PlayedEventSource.all;
    source?.welcome();
    source?.fire("message", { type: "text", seq: 1, payload: { kind: "delta", run: "r", text: "a", at: 0 } });
    await settle();

    expect(new URL(source?.url ?? "").searchParams.get("ticket")).toBe("t1");
    expect(source?.url).not.toContain("secret");
    expect([session.channel, reader.texts]).toEqual(["sse", ["a"]]);
  });

  it("its own reconnecting is not left to it", async () => {
    const stage = stageOf();
    stage.connect({ channel: "sse" });
    await settle();
    PlayedEventSource.all[0]?.welcome();
    PlayedEventSource.all[0]?.onerror?.(undefined as never);
    await stage.clock.advance(1_000);

    expect(PlayedEventSource.all.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  });

  it("its close event says why", async () => {
    const stage = stageOf();
    const session = stage.connect({ channel: "sse" });
    await settle();
    PlayedEventSource.all[0]?.welcome();
    PlayedEventSource.all[0]?.fire("close", { code: 4404, reason: "deleted" });
    await settle();

    expect(session.error?.code).toBe("not_found");
  });
});
