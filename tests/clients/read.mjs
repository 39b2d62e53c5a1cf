// Reads runs with the libraries that a gateway's output dialects are made for. One JSON job a line in, one answer a line
// out: {"id", "library", "url", "token"?, "resume"?} -> {"id", "text", "thinking", "calls", "end", "requests", "error"?}.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
} from "ai";
import OpenAI from "openai";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { resumingFetch } from "./resuming-fetch.mjs";

const QUICK = { minDelay: 1, maxDelay: 50 };

function counting(answer) {
  return (url, init) => {
    answer.requests += 1;
    return fetch(url, init);
  };
}

function reading(job, answer) {
  return job.bare ? counting(answer) : resumingFetch({ ...QUICK, fetch: counting(answer) });
}

function openAi(job, answer, baseURL) {
  const fetch = reading(job, answer);
  return new OpenAI({ baseURL, apiKey: job.token ?? "none", fetch, maxRetries: 0 });
}

async function readOpenAi(job, answer) {
  const url = new URL(job.url);
  const client = openAi(job, answer, `${url.origin}${url.pathname.replace(/\/events$/, "")}`);
  const query = Object.fromEntries(url.searchParams);
  await takeChunks(await client.get("/events", { query, stream: true }), answer);
}

async function askOpenAi(job, answer) {
  const client = openAi(job, answer, job.url.replace(/\/events.*$/, "/openai"));
  const messages = [{ role: "user", content: job.say }];
  await takeChunks(await client.chat.completions.create({ model: "any", messages, stream: true }), answer);
}

async function takeChunks(chunks, answer) {
  const [own, helpers] = chunks.tee();
  const helped = ChatCompletionStream.fromReadableStream(helpers.toReadableStream()).finalChatCompletion();
  helped.catch(() => {});
  for await (const chunk of own) answer.thinking += chunk.choices[0].delta.reasoning_content ?? "";
  const completion = await helped;
  const { message, finish_reason } = completion.choices[0];
  answer.text = message.content;
  answer.calls = (message.tool_calls ?? []).map((call) => [call.id, call.function.name, call.function.arguments]);
  answer.end = finish_reason;
  answer.usage = completion.usage ?? null;
}

function takeUiMessage(message, answer) {
  const of = (type) => message.parts.filter((part) => part.type === type).map((part) => part.text);
  answer.text = of("text").join("");
  answer.thinking = of("reasoning").join("");
  answer.parts = message.parts.map((part) => part.type);
  answer.calls = message.parts
    .filter((part) => part.type.startsWith("tool-"))
    .map((part) => [part.toolCallId, part.type.slice("tool-".length), JSON.stringify(part.input), part.state]);
  answer.data = message.parts.filter((part) => part.type.startsWith("data-")).map((part) => [part.type, part.data]);
}

function transportOf(job, fetch) {
  const headers = job.token ? { authorization: `Bearer ${job.token}` } : {};
  return new DefaultChatTransport({
    api: job.url,
    headers,
    fetch,
    prepareReconnectToStreamRequest: ({ api }) => ({ api }),
  });
}

async function readAiSdk(job, answer) {
  const transport = transportOf(job, reading(job, answer));
  const stream = await transport.reconnectToStream({ chatId: "chat" });
  const [own, messages] = stream.tee();
  const ends = (async () => {
    for await (const chunk of own) if (chunk.type === "finish") answer.end = chunk.finishReason;
  })();
  let message;
  const problems = [];
  for await (message of readUIMessageStream({ stream: messages, onError: (error) => problems.push(String(error)) }));
  await ends;
  if (message) takeUiMessage(message, answer);
  if (problems.length) throw new Error(problems.join("; "));
}

class PlainChatState {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => this.messages.push(message);
  popMessage = () => this.messages.pop();
  replaceMessage = (index, message) => (this.messages[index] = message);
  snapshot = (value) => structuredClone(value);
}

class PlainChat extends AbstractChat {
  constructor(init) {
    super({ ...init, state: new PlainChatState() });
  }
}

// The chat as `useChat` drives it, without any help: each break is an error of the chat, which resumes from the beginning.
async function readChat(job, answer) {
  const chat = new PlainChat({
    id: "chat",
    transport: transportOf(job, counting(answer)),
    onFinish: ({ finishReason }) => (answer.end = finishReason ?? answer.end),
  });
  do {
    await chat.resumeStream();
  } while (chat.status === "error" && answer.requests < 500);
  if (chat.error) throw chat.error;
  takeUiMessage(chat.lastMessage, answer);
}

// The same chat sends a message by POST, as an unchanged front end does; the answer is read on through breaks.
async function sendChat(job, answer) {
  const chat = new PlainChat({
    id: "chat",
    transport: transportOf(job, reading(job, answer)),
    onFinish: ({ finishReason }) => (answer.end = finishReason ?? answer.end),
  });
  await chat.sendMessage({ text: job.say });
  if (chat.error) throw chat.error;
  takeUiMessage(chat.lastMessage, answer);
  answer.roles = chat.messages.map((message) => message.role);
}

// A tool of the page gives its output by itself, and the chat sends it back: the answer goes on in the same message.
async function useToolInChat(job, answer) {
  const chat = new PlainChat({
    id: "chat",
    transport: transportOf(job, reading(job, answer)),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall }) =>
      void chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: job.output }),
    onFinish: ({ finishReason }) => (answer.end = finishReason ?? answer.end),
  });
  await chat.sendMessage({ text: job.say });
  while (answer.end !== "stop" && !chat.error) await new Promise((resolve) => setTimeout(resolve, 5));
  if (chat.error) throw chat.error;
  takeUiMessage(chat.lastMessage, answer);
  answer.roles = chat.messages.map((message) => message.role);
}

class ReadingAgent extends HttpAgent {
  requestInit(input) {
    const { body, method, ...init } = super.requestInit(input);
    return init;
  }
}

function takeAgent(agent, result, answer) {
  const of = (role) => agent.messages.filter((message) => message.role === role);
  answer.text = of("assistant").map((message) => message.content ?? "").join("");
  answer.thinking = of("reasoning").map((message) => message.content).join("");
  answer.calls = of("assistant")
    .flatMap((message) => message.toolCalls ?? [])
    .map((call) => [call.id, call.function.name, call.function.arguments]);
  answer.roles = agent.messages.map((message) => message.role);
}

async function readAgUi(job, answer) {
  const Agent = job.say === undefined ? ReadingAgent : HttpAgent;
  const agent = new Agent({
    url: job.url,
    headers: job.token ? { authorization: `Bearer ${job.token}` } : {},
    fetch: reading(job, answer),
  });
  if (job.say !== undefined) agent.addMessage({ id: "m1", role: "user", content: job.say });
  const customs = [];
  let failure;
  const result = await agent.runAgent(
    {},
    {
      onCustomEvent: ({ event }) => void customs.push([event.name, event.value]),
      onRunFinishedEvent: ({ event }) => void (answer.end = event.outcome?.type ?? "success"),
      onRunErrorEvent: ({ event }) => void ((answer.end = event.code), (failure = event.message)),
    },
  );
  takeAgent(agent, result, answer);
  answer.customs = customs;
  if (failure) answer.failure = failure;
}

// A run that ends with open asks, and the next one that answers them: AG-UI's interrupts.
async function approveAgUi(job, answer) {
  const agent = new HttpAgent({ url: job.url, fetch: reading(job, answer) });
  agent.addMessage({ id: "m1", role: "user", content: job.say });
  await agent.runAgent({});
  answer.interrupts = structuredClone(agent.pendingInterrupts);
  const resume = answer.interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: job.value }));
  await agent.runAgent({ resume }, { onRunFinishedEvent: ({ event }) => void (answer.end = event.outcome?.type) });
  answer.left = agent.pendingInterrupts;
  takeAgent(agent, null, answer);
}

// Each break is a failed run of the agent; the application runs it again from the last event that it saw.
async function rerunAgUi(job, answer) {
  let lastId = "";
  const watching = async (url, init) => {
    answer.requests += 1;
    const again = new URL(url);
    if (lastId) again.searchParams.set("cursor", lastId);
    const response = await fetch(again, init);
    if (response.status === 204) answer.isOver = true;
    const reader = response.body?.getReader();
    let rest = "";
    const whole = new ReadableStream({
      async pull(controller) {
        for (;;) {
          const { value, done } = await reader.read().catch(() => ({ done: true }));
          if (done) return controller.close();
          const blocks = (rest + Buffer.from(value).toString("latin1")).split("\n\n");
          rest = blocks.pop();
          for (const block of blocks) lastId = /^id: (.*)$/m.exec(block)?.[1] ?? lastId;
          if (blocks.length) return controller.enqueue(Buffer.from(`${blocks.join("\n\n")}\n\n`, "latin1"));
        }
      },
    });
    return new Response(reader ? whole : null, response);
  };
  const agent = new ReadingAgent({ url: job.url, fetch: watching });
  while (!answer.end && !answer.isOver && answer.requests < 500) {
    const seen = { onRunFinishedEvent: ({ event }) => void (answer.end = event.outcome?.type ?? "success") };
    await agent.runAgent({}, seen).catch(() => {});
  }
  takeAgent(agent, null, answer);
}

const LIBRARIES = {
  openai: readOpenAi,
  "ask-openai": askOpenAi,
  "ai-sdk": readAiSdk,
  chat: readChat,
  "send-chat": sendChat,
  "tool-chat": useToolInChat,
  "ag-ui": readAgUi,
  "ag-ui-rerun": rerunAgUi,
  "approve-ag-ui": approveAgUi,
};

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const answer = { id: job.id, text: "", thinking: "", calls: [], end: null, requests: 0 };
  LIBRARIES[job.library](job, answer)
    .catch((error) => (answer.error = `${error.name}: ${error.message}`))
    .then(() => process.stdout.write(`${JSON.stringify(answer)}\n`));
}
