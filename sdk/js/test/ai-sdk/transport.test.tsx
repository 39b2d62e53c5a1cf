import "../react/dom.js";
import { useChat } from "@ai-sdk/react";
import type { UIMessage, UIMessageChunk } from "ai";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type RelayChatOptions, RelayChatTransport } from "../../src/ai-sdk/index.js";
import { RefusedError, type SocketConstructor } from "../../src/index.js";
import { FakeGateway, until } from "../fakes/gateway.js";

let gateway: FakeGateway;
let transport: RelayChatTransport;
let root: Root;
let container: HTMLElement;
let chat: ReturnType<typeof useChat>;

const transportOf = (more: Partial<RelayChatOptions<UIMessage>> = {}): RelayChatTransport =>
  new RelayChatTransport({ url: gateway.url, WebSocket: WebSocket as unknown as SocketConstructor, ...more });

beforeEach(async () => {
  gateway = await FakeGateway.start();
  transport = transportOf();
  container = document.createElement("div");
  root = createRoot(container);
});

afterEach(async () => {
  root.unmount();
  await transport.close();
  await gateway.stop();
});

function Chat({ resume = false }: { resume?: boolean }) {
  chat = useChat({ id: "chat-1", transport, resume });
  return (
    <p>
      {chat.status}:{chat.messages.map((message) => `${message.role}=${textOf(message)}`).join(" ")}
    </p>
  );
}

const textOf = (message: UIMessage): string =>
  message.parts
    .map((part) => (part.type === "text" ? part.text : part.type === "reasoning" ? `(${part.text})` : ""))
    .join("");

function answer(run: string, ...texts: string[]): void {
  gateway.push({ kind: "run_start", run });
  let at = 0;
  for (const text of texts) {
    gateway.push({ kind: "delta", run, text, at });
    at += text.length;
  }
}

describe("useChat over a session", () => {
  it("sends the user's message, and shows the answer as it comes", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    gateway.onInput = () => answer("r1", "Hello", " you");
    void chat.sendMessage({ text: "hi" });
    await until("streaming", () => container.textContent === "streaming:user=hi assistant=Hello you");
    const { id } = chat.messages[0] ?? {};
    const request = { id: "chat-1", trigger: "submit-message" };
    expect(gateway.inputs).toMatchObject([
      { text: "hi", run: `run-${id}`, format: "ai-sdk", message: { id }, request },
    ]);
    gateway.push({ kind: "delta", run: "r1", text: "!", at: 9 }, { kind: "run_end", run: "r1", reason: "complete" });
    await until("ready", () => container.textContent === "ready:user=hi assistant=Hello you!");
    expect(chat.messages[1]?.id).toBe("r1");
  });

  it("shows reasoning, tool calls and data as parts", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    gateway.onInput = () => {
      gateway.push(
        { kind: "run_start", run: "r1" },
        { kind: "thinking", run: "r1", text: "hm", at: 0 },
        { kind: "tool", run: "r1", data: { id: "c1", index: 0, name: "search", arguments: '{"q":' } },
        { kind: "tool", run: "r1", data: { index: 0, arguments: '"cats"}' } },
        { kind: "data", run: "r1", data: { progress: 1 } },
        { kind: "delta", run: "r1", text: "Cats.", at: 0 },
        { kind: "run_end", run: "r1", reason: "complete" },
      );
    };
    await chat.sendMessage({ text: "find cats" });
    await until("ready", () => container.textContent === "ready:user=find cats assistant=(hm)Cats.");
    const parts = chat.messages[1]?.parts ?? [];
    expect(parts.map(({ type }) => type)).toEqual(["reasoning", "tool-search", "data-data", "text"]);
    expect(parts[1]).toMatchObject({ state: "input-available", input: { q: "cats" } });
    expect(parts[2]).toMatchObject({ data: { progress: 1 } });
  });

  it("interrupts the run when the user stops it", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    gateway.onInput = () => answer("r1", "Once upon");
    void chat.sendMessage({ text: "a story" });
    await until("streaming", () => container.textContent === "streaming:user=a story assistant=Once upon");
    await chat.stop();
    await until("ready", () => container.textContent === "ready:user=a story assistant=Once upon");
    await until("interrupted", () => gateway.controls.length === 1);
    expect(gateway.controls[0]).toMatchObject({ kind: "interrupt", run: "r1" });
  });

  it("interrupts a run that begins after the stop", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    void chat.sendMessage({ text: "a story" });
    await until("sent", () => gateway.inputs.length === 1);
    await chat.stop();
    await until("ready", () => chat.status === "ready");
    answer("r1", "Once");
    await until("interrupted", () => gateway.controls.length === 1);
    expect(gateway.controls[0]).toMatchObject({ kind: "interrupt", run: "r1" });
  });

  it("goes on after a reload, from the answer's beginning", async () => {
    gateway.push({ kind: "run_start", run: "r0" }, { kind: "delta", run: "r0", text: "old", at: 0 });
    gateway.push({ kind: "run_end", run: "r0", reason: "complete" });
    answer("r1", "Half an ");
    root.render(<Chat resume />);
    await until("resumed", () => container.textContent === "streaming:assistant=Half an ");
    gateway.push(
      { kind: "delta", run: "r1", text: "answer", at: 8 },
      { kind: "run_end", run: "r1", reason: "complete" },
    );
    await until("ready", () => container.textContent === "ready:assistant=Half an answer");
  });

  it("has nothing to resume when no run is open", async () => {
    answer("r1", "done");
    gateway.push({ kind: "run_end", run: "r1", reason: "complete" });
    expect(await transport.reconnectToStream({ chatId: "chat-1" })).toBe(null);
  });

  it("does not take a run of before for the answer", async () => {
    answer("r0", "old");
    gateway.onAccepted = async () => {
      answer("r2", "another's");
      await until("it is there", () => transport.session("chat-1").text("r2") !== "");
    };
    gateway.onInput = () => answer("r1", "new");
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    void chat.sendMessage({ text: "hi" });
    await until("answer", () => container.textContent === "streaming:user=hi assistant=new");
  });

  it("knows its answer by the id that it asked for, among those of others", async () => {
    gateway.onInput = ({ run }) => {
      answer("run-of-another", "for another");
      answer(String(run), "for me");
    };
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    void chat.sendMessage({ text: "hi" });
    await until("answer", () => container.textContent === "streaming:user=hi assistant=for me");
  });

  it("goes on with the message whose tool has given its output", async () => {
    const last = { id: "m2", role: "assistant" as const, parts: [{ type: "text" as const, text: "x" }] };
    gateway.onInput = ({ run }) => {
      answer(String(run), "and on");
      gateway.push({ kind: "run_end", run, reason: "complete" });
    };
    const request = { trigger: "submit-message" as const, chatId: "c", messageId: undefined, abortSignal: undefined };
    const [start] = await chunksOf(await transport.sendMessages({ ...request, messages: [last] }));
    expect(start).toEqual({ type: "start", messageId: "m2" });
    expect(gateway.inputs[0]).toMatchObject({ text: "", message: last });
  });

  it("goes on through a lost connection", async () => {
    transport = transportOf({ timing: { backoffBase: 1 } });
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    gateway.onInput = () => answer("r1", "one");
    void chat.sendMessage({ text: "count" });
    await until("streaming", () => container.textContent === "streaming:user=count assistant=one");
    for (const { socket } of gateway.peers) socket.terminate();
    gateway.push({ kind: "delta", run: "r1", text: " two", at: 3 }, { kind: "run_end", run: "r1", reason: "complete" });
    await until("ready", () => container.textContent === "ready:user=count assistant=one two");
    expect(gateway.peers.length).toBeGreaterThan(1);
  });

  it("tells the user's interface why there is no answer", async () => {
    transport = transportOf({ answerTimeout: 5 });
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    void chat.sendMessage({ text: "hi" });
    await until("error", () => chat.status === "error");
    expect(chat.error).toMatchObject({ code: "no_answer" });
  });

  it("tells why a run failed", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    gateway.onInput = () => {
      answer("r1", "Ha");
      gateway.push({ kind: "run_end", run: "r1", reason: "failed", problem: "the model is tired" });
    };
    void chat.sendMessage({ text: "hi" });
    await until("error", () => chat.status === "error");
    expect(chat.error?.message).toBe("the model is tired");
  });

  it("asks again for a regenerated answer", async () => {
    root.render(<Chat />);
    await until("mounted", () => container.textContent === "ready:");
    let count = 0;
    gateway.onInput = () => {
      count += 1;
      answer(`r${count}`, `answer ${count}`);
      gateway.push({ kind: "run_end", run: `r${count}`, reason: "complete" });
    };
    await chat.sendMessage({ text: "hi" });
    await until("first", () => container.textContent === "ready:user=hi assistant=answer 1");
    await chat.regenerate();
    await until("second", () => container.textContent === "ready:user=hi assistant=answer 2");
    expect(gateway.inputs[1]).toMatchObject({ text: "hi", request: { trigger: "regenerate-message" } });
    expect(gateway.inputs[1]?.run).not.toBe(gateway.inputs[0]?.run);
  });
});

async function chunksOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const out: UIMessageChunk[] = [];
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return out;
    out.push(value);
  }
}

describe("the transport alone", () => {
  const request = {
    trigger: "submit-message" as const,
    chatId: "c",
    messageId: undefined,
    messages: [{ id: "m", role: "user" as const, parts: [{ type: "text" as const, text: "hi" }] }],
    abortSignal: undefined,
  };

  it("sends what the application makes of the request, and takes the run that it calls the answer", async () => {
    transport = transportOf({
      toInput: ({ messages }) => ({ n: messages.length }),
      isAnswer: (start) => start.for === "me",
    });
    gateway.onInput = () => {
      gateway.push({ kind: "run_start", run: "other" }, { kind: "run_start", run: "mine", for: "me" });
      gateway.push({ kind: "run_end", run: "mine", reason: "complete", finish_reason: "length" });
    };
    const chunks = await chunksOf(await transport.sendMessages(request));
    expect(gateway.inputs).toEqual([{ n: 1 }]);
    expect(chunks).toEqual([
      { type: "start", messageId: "mine" },
      { type: "finish", finishReason: "length" },
    ]);
  });

  it("rejects with the refusal of the gateway", async () => {
    const session = transport.session("c");
    session.send = () => Promise.reject(new RefusedError("limit", "too much"));
    await expect(transport.sendMessages(request)).rejects.toThrow("too much");
  });

  it("ends its streams with its sessions", async () => {
    gateway.onInput = () => answer("r1", "x");
    const stream = await transport.sendMessages(request);
    const rest = chunksOf(stream);
    await transport.close("c");
    await expect(rest).rejects.toThrow("the session was closed");
    expect(transport.session("c").state).not.toBe("closed");
  });
});
