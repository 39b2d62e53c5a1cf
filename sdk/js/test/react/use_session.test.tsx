import "./dom.js";
import { StrictMode, useEffect } from "react";
import { createRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { SocketConstructor } from "../../src/index.js";
import { openSessions, type UseSession, type UseSessionOptions, useSession } from "../../src/react/index.js";
import { FakeGateway, until } from "../fakes/gateway.js";

let gateway: FakeGateway;
let root: Root;
let container: HTMLElement;
let seen: UseSession;
/** The options of the last render whose effects have run. */
let committed: UseSessionOptions;

beforeEach(async () => {
  gateway = await FakeGateway.start();
  container = document.createElement("div");
  root = createRoot(container);
});

afterEach(async () => {
  root.unmount();
  await until("every session is closed", () => openSessions() === 0);
  await gateway.stop();
});

const optionsOf = (more: Partial<UseSessionOptions> = {}): UseSessionOptions => ({
  url: gateway.url,
  session: "s",
  from: "start",
  WebSocket: WebSocket as unknown as SocketConstructor,
  ...more,
});

function Chat({ options }: { options: UseSessionOptions }) {
  const session = useSession(options);
  seen = session;
  useEffect(() => {
    committed = options;
  });
  return (
    <p>
      {session.state}:{Object.values(session.texts).join("|")}
    </p>
  );
}

let renders = 0;

function Part({ id, options }: { id: number; options: UseSessionOptions }) {
  const { texts } = useSession(options);
  renders += 1;
  return <i data-id={id}>{texts.r ?? ""}</i>;
}

describe("useSession", () => {
  it("shows the texts of runs as they come", async () => {
    root.render(<Chat options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    gateway.push(
      { kind: "run_start", run: "r" },
      { kind: "delta", run: "r", text: "Hel", at: 0 },
      { kind: "delta", run: "r", text: "lo", at: 3 },
    );
    await until("text", () => container.textContent === "live:Hello");
    gateway.push({ kind: "data", data: 7 }, { kind: "run_end", run: "r", reason: "complete" });
    await until("end", () => seen.runs[0]?.state === "ended");
    expect(seen.messages.map(({ kind }) => kind)).toEqual(["run_start", "data", "run_end"]);
    expect(seen.texts).toEqual({ r: "Hello" });
  });

  it("keeps one socket in StrictMode, with a token that takes time", async () => {
    const token = () => new Promise<string>((resolve) => setTimeout(resolve, 50, "t"));
    root.render(
      <StrictMode>
        <Chat options={optionsOf({ token })} />
      </StrictMode>,
    );
    await until("live", () => container.textContent === "live:");
    expect(gateway.peers).toHaveLength(1);
    expect(gateway.peers[0]?.token).toBe("t");
  });

  it("keeps one socket when the component is remounted twenty times in a row", async () => {
    for (let count = 0; count < 20; count += 1) root.render(<Chat key={count} options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    for (let count = 20; count < 40; count += 1) {
      root.render(<Chat key={count} options={optionsOf()} />);
      await Promise.resolve();
    }
    await until("live again", () => container.textContent === "live:");
    expect(gateway.open).toHaveLength(1);
    expect(openSessions()).toBe(1);
  });

  it("shares one session between components", async () => {
    root.render(
      <>
        <Chat options={optionsOf()} />
        <Chat options={optionsOf()} />
      </>,
    );
    await until("live", () => container.textContent === "live:live:");
    expect(gateway.peers).toHaveLength(1);
  });

  it("closes its socket when it is unmounted", async () => {
    root.render(<Chat options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    root.render(null);
    await until("closed", () => gateway.open.length === 0);
    expect(gateway.peers).toHaveLength(1);
  });

  it("changes the session with its name", async () => {
    root.render(<Chat options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    gateway.push({ kind: "delta", run: "r", text: "old", at: 0 });
    await until("text", () => container.textContent === "live:old");
    root.render(<Chat options={optionsOf({ session: "t", from: "live" })} />);
    await until("the other one", () => container.textContent === "live:" && gateway.open.length === 1);
    expect(gateway.peers).toHaveLength(2);
  });

  it("takes the token of a later render for the next attempt", async () => {
    root.render(<Chat options={optionsOf({ token: "first", timing: { backoffBase: 1 } })} />);
    await until("live", () => container.textContent === "live:");
    root.render(<Chat options={optionsOf({ token: "second" })} />);
    await until("rendered", () => committed.token === "second");
    gateway.peers[0]?.socket.terminate();
    await until("again", () => gateway.open.length === 1 && container.textContent === "live:");
    expect(gateway.peers.map(({ token }) => token)).toEqual(["first", "second"]);
  });

  it("does not connect while it is not enabled, and refuses to send", async () => {
    root.render(<Chat options={optionsOf({ isEnabled: false })} />);
    await until("rendered", () => container.textContent === "connecting:");
    await expect(seen.send({})).rejects.toThrow("there is no session");
    expect(openSessions()).toBe(0);
  });

  it("shows why it was refused, and tries again when it is mounted anew", async () => {
    root.render(<Chat options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    gateway.peers[0]?.socket.close(4403, "not allowed");
    await until("closed", () => container.textContent === "closed:");
    expect(seen.error?.code).toBe("forbidden");
    root.render(<Chat key="anew" options={optionsOf()} />);
    await until("live again", () => container.textContent === "live:");
    expect(seen.error).toBe(null);
  });

  it("renders on a server without connecting", () => {
    expect(renderToString(<Chat options={optionsOf()} />)).toContain("connecting");
    expect(openSessions()).toBe(0);
  });

  it("speaks for its component", async () => {
    root.render(<Chat options={optionsOf()} />);
    await until("live", () => container.textContent === "live:");
    gateway.push(
      { kind: "run_start", run: "r" },
      { kind: "ask", ask: "a", message: "?", expiresAt: "2100-01-01T00:00:00Z" },
    );
    await until("ask", () => seen.asks.length === 1);
    await seen.send({ text: "hi" });
    await seen.interrupt("r");
    await seen.answer("a", "yes");
    expect(gateway.inputs).toEqual([{ text: "hi" }]);
    expect(gateway.controls.map(({ kind }) => kind)).toEqual(["interrupt", "answer"]);
  });

  it("shows one moment everywhere, and renders once a frame", async () => {
    const torn: string[] = [];
    renders = 0;
    const watch = () => {
      const [one, other] = [...container.querySelectorAll("i")].map((element) => element.textContent);
      if (one !== other) torn.push(`${one} ${other}`);
    };
    root.render(
      <>
        <Part id={1} options={optionsOf()} />
        <Part id={2} options={optionsOf()} />
      </>,
    );
    await until("live", () => gateway.open.length === 1);
    for (let count = 0; count < 300; count += 1) gateway.push({ kind: "delta", run: "r", text: "x", at: count });
    await until("all", () => {
      watch();
      return container.textContent === "x".repeat(600);
    });
    expect(torn).toEqual([]);
    expect(renders).toBeLessThan(300);
  });
});
