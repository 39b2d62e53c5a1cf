import "./dom.js";
import { useChat } from "@ai-sdk/react";
import { StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { RelayChatTransport } from "../../src/ai-sdk/index.js";
import type { SocketConstructor } from "../../src/index.js";
import { type UseSession, useSession } from "../../src/react/index.js";
import { until } from "../fakes/gateway.js";
import { hasGateway, RealGateway, Script } from "../fakes/real_gateway.js";

const socket = { WebSocket: WebSocket as unknown as SocketConstructor };
let gateway: RealGateway;
let root: Root;
let container: HTMLElement;

beforeAll(async () => {
  if (hasGateway) gateway = await RealGateway.start();
}, 60_000);

afterAll(async () => gateway?.stop(), 30_000);

beforeEach(() => {
  container = document.createElement("div");
  root = createRoot(container);
});

afterEach(() => root.unmount());

let seen: UseSession;

function Reader() {
  seen = useSession({ url: gateway.url, session: "react-1", from: "start", ...socket });
  return <p>{seen.texts.r1}</p>;
}

let chat: ReturnType<typeof useChat>;
let transport: RelayChatTransport;

function Chat({ resume }: { resume: boolean }) {
  chat = useChat({ id: "chat-1", transport, resume });
  const texts = chat.messages.map(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  return (
    <p>
      {chat.status}:{texts.join("|")}
    </p>
  );
}

describe.skipIf(!hasGateway)("with a gateway", { timeout: 30_000 }, () => {
  it("useSession shows a run, speaks, and interrupts", async () => {
    const script = new Script();
    const done = gateway.stream("react-1", "r1", script);
    root.render(
      <StrictMode>
        <Reader />
      </StrictMode>,
    );
    script.write("Hello, ");
    await until("first", () => container.textContent === "Hello, ", 20_000);
    script.write("wörld 👋");
    await until("second", () => container.textContent === "Hello, wörld 👋", 20_000);
    await seen.send({ text: "stop, please" });
    await until("echo", () => seen.messages.some(({ kind }) => kind === "echo"), 20_000);
    await seen.interrupt("r1");
    await until("ended", () => seen.runs[0]?.reason === "interrupted", 20_000);
    script.end();
    await done;
  });

  it("useChat asks, streams, and goes on after a reload", async () => {
    await gateway.post("/v1/sessions/chat-1/push", { payload: { kind: "data", data: "the session is there" } });
    transport = new RelayChatTransport({ url: gateway.url, ...socket });
    root.render(<Chat resume={false} />);
    await until("mounted", () => container.textContent === "ready:");
    void chat.sendMessage({ text: "hi" });
    await until("echo", () => transport.session("chat-1").cursor?.endsWith(".2") ?? false, 20_000);
    const script = new Script();
    const reason = gateway.stream("chat-1", "r2", script);
    script.write("Half an ");
    await until("streaming", () => container.textContent === "streaming:hi|Half an ", 20_000);
    root.unmount();
    await transport.close();

    root = createRoot(container);
    transport = new RelayChatTransport({ url: gateway.url, ...socket });
    root.render(<Chat resume />);
    await until("resumed", () => container.textContent === "streaming:Half an ", 20_000);
    script.write("answer.");
    script.end();
    await until("ready", () => container.textContent === "ready:Half an answer.", 20_000);
    expect(await reason).toBe("complete");
    await transport.close();
  });
});
