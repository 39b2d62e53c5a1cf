/** `useChat` of the AI SDK over a session: nothing else in the page has to know of RelayRouter. */

import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { parseCursor } from "../cursor.js";
import { ClosedError, RelayError } from "../errors.js";
import type { JsonObject, Message } from "../messages.js";
import type { ConnectOptions } from "../options.js";
import { connect, type Session } from "../session.js";
import { utf8Length } from "../texts.js";
import { RunRecord, RunRecords } from "./run_records.js";
import { runStream } from "./run_stream.js";

type SendOptions<Ui extends UIMessage> = Parameters<ChatTransport<Ui>["sendMessages"]>[0];
type ReconnectOptions<Ui extends UIMessage> = Parameters<ChatTransport<Ui>["reconnectToStream"]>[0];

/** A page reads its chats from their start each time it is loaded, so it has no place and no client id to keep. */
type Kept = "session" | "from" | "cursor" | "client" | "store";

export interface RelayChatOptions<Ui extends UIMessage> extends Omit<ConnectOptions, Kept> {
  /** The session of a chat. Default: the chat's id. */
  readonly sessionOf?: (chatId: string) => string;
  /** What the agent is sent. Default: `{text, run, format, message, request}`, as from the gateway's own `format=ai-sdk`. */
  readonly toInput?: (options: SendOptions<Ui>) => JsonObject;
  /**
   * Whether a run answers, given its `run_start`, when it has not the id `run` of the input. Default: unless that is one
   * that another input asked for. Asked of runs that begin behind the input.
   */
  readonly isAnswer?: (start: JsonObject, input: JsonObject) => boolean;
  /** Ms in which the agent must begin to answer. Default 60,000. */
  readonly answerTimeout?: number;
  /** Ms in which a session must be read to its end before "is there an open run?" is answered with no. Default 15,000. */
  readonly resumeTimeout?: number;
}

const RUN_PREFIX = "run-";
const MAX_ID_BYTES = 128;
const ANSWER_TIMEOUT_MS = 60_000;
const RESUME_TIMEOUT_MS = 15_000;

interface Chat {
  readonly session: Session;
  readonly runs: RunRecords;
}

/** One session per chat, kept open until `close`. */
export class RelayChatTransport<Ui extends UIMessage = UIMessage> implements ChatTransport<Ui> {
  /** A resumed stream has the answer from its beginning. */
  readonly resumeStreamIsReplay = true;
  readonly #options: RelayChatOptions<Ui>;
  readonly #chats = new Map<string, Chat>();

  constructor(options: RelayChatOptions<Ui>) {
    this.#options = options;
  }

  /** For all else: asks, connection state, other messages. Connects when it is the first use of the chat. */
  session(chatId: string): Session {
    return this.#chat(chatId).session;
  }

  #chat(chatId: string): Chat {
    const known = this.#chats.get(chatId);
    if (known && known.session.state !== "closed") return known;
    const { sessionOf, toInput: _, isAnswer: __, answerTimeout: ___, resumeTimeout: ____, ...options } = this.#options;
    // From the start: texts of runs that are open must be there, whole.
    const session = connect({ ...options, session: sessionOf?.(chatId) ?? chatId, from: "start" });
    const chat = { session, runs: new RunRecords(session) };
    this.#chats.set(chatId, chat);
    return chat;
  }

  /** Closes the session of a chat, or all. */
  async close(chatId?: string): Promise<void> {
    const ids = chatId === undefined ? [...this.#chats.keys()] : [chatId];
    const closing = ids.map((id) => this.#chats.get(id)?.session.close());
    for (const id of ids) this.#chats.delete(id);
    await Promise.all(closing);
  }

  /** Resolves when the input is durable and its answer has begun. */
  async sendMessages(options: SendOptions<Ui>): Promise<ReadableStream<UIMessageChunk>> {
    const { session, runs } = this.#chat(options.chatId);
    const input = (this.#options.toInput ?? inputOf)(options);
    const answer = new Answer(session, input, this.#options.isAnswer ?? isFreelyNamed);
    const signal = options.abortSignal;
    // Stopped before it began: it is interrupted when it does.
    const onAbort = () => answer.run.then((run) => session.interrupt(run)).catch(() => undefined);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const sent = session.send(input).then(({ seq }) => {
        answer.accepted(seq, this.#options.answerTimeout ?? ANSWER_TIMEOUT_MS);
      });
      sent.catch(() => answer.stop());
      await unlessAborted(sent, signal);
      const run = await unlessAborted(answer.run, signal);
      signal?.removeEventListener("abort", onAbort);
      return runStream(session, runs.get(run) ?? new RunRecord(run), signal, continuedBy(options));
    } catch (error) {
      if (!signal?.aborted) answer.stop();
      throw error;
    }
  }

  /** The answer that is being written, from its beginning; null when there is none. */
  async reconnectToStream(options: ReconnectOptions<Ui>): Promise<ReadableStream<UIMessageChunk> | null> {
    const { session, runs } = this.#chat(options.chatId);
    if (!(await isCaughtUp(session, this.#options.resumeTimeout ?? RESUME_TIMEOUT_MS))) return null;
    return runs.open ? runStream(session, runs.open, options.abortSignal) : null;
  }
}

/** An agent that names its runs as it is asked to says with each which input it answers. */
const isFreelyNamed = ({ run }: JsonObject): boolean => typeof run === "string" && !run.startsWith(RUN_PREFIX);

function inputOf<Ui extends UIMessage>({
  chatId,
  trigger,
  messages,
  messageId,
  body,
  metadata,
}: SendOptions<Ui>): JsonObject {
  const message = messages[messages.length - 1];
  const isUsers = message?.role === "user";
  const text = isUsers ? message.parts.map((part) => (part.type === "text" ? part.text : "")).join("") : "";
  // Another answer to the same message, or to an edited one, is another run.
  const isFirst = isUsers && trigger === "submit-message" && messageId === undefined;
  const named = isFirst ? RUN_PREFIX + message.id : "";
  const run = named && utf8Length(named) <= MAX_ID_BYTES ? named : RUN_PREFIX + randomName();
  const request = { id: chatId, trigger, messageId, metadata, ...body };
  return JSON.parse(JSON.stringify({ text, run, format: "ai-sdk", message, request })) as JsonObject;
}

function randomName(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A message whose tools have given their outputs goes on in the answer. */
function continuedBy<Ui extends UIMessage>({ messages }: SendOptions<Ui>): string | undefined {
  const last = messages[messages.length - 1];
  return last?.role === "assistant" ? last.id : undefined;
}

/** Finds the run that answers an input: with the id that it asks for, or the first that begins behind its echo in the log. */
class Answer {
  /** Rejects when it does not begin in time, or the session is closed. */
  readonly run: Promise<string>;
  readonly stop: () => void;
  /** Of our client: echoes and beginnings of runs, in order. */
  #seen: (number | JsonObject)[] = [];
  #seq: unknown;
  #isGapSeen = false;
  #resolve: (run: string) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;
  readonly #session: Session;
  readonly #input: JsonObject;
  readonly #isAnswer: (start: JsonObject, input: JsonObject) => boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(session: Session, input: JsonObject, isAnswer: (start: JsonObject, input: JsonObject) => boolean) {
    this.#session = session;
    this.#input = input;
    this.#isAnswer = isAnswer;
    this.run = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.run.catch(() => undefined); // also when nobody waits any more
    const stops = [
      session.on("message", (message) => this.#onMessage(message)),
      session.on("state", ({ state }) => {
        if (state === "closed") this.#fail(session.error ?? new ClosedError("the session was closed"));
      }),
    ];
    this.stop = () => {
      clearTimeout(this.#timer);
      for (const stop of stops) stop();
    };
  }

  accepted(seq: unknown, timeoutMs: number): void {
    this.#seq = seq;
    this.#timer = setTimeout(
      () => this.#fail(new RelayError("no_answer", "the agent did not begin to answer", true)),
      timeoutMs,
    );
    this.#look();
  }

  #onMessage({ kind, payload }: Message): void {
    if (kind === "echo" && payload.client === this.#session.client) this.#seen.push(Number(payload.input_seq));
    else if (kind === "run_start") this.#seen.push(payload);
    else if (kind === "gap")
      this.#isGapSeen = true; // the echo may be in it
    else return;
    this.#look();
  }

  #look(): void {
    if (this.#seq === undefined) return;
    const starts = this.#seen.map((each) => (typeof each === "object" ? each : null));
    const echo = this.#seen.indexOf(this.#seq as number);
    const isBehind = (at: number) => at > echo && (echo >= 0 || this.#isGapSeen);
    const start = starts.find(
      (each, at) => each && (each.run === this.#input.run || (isBehind(at) && this.#isAnswer(each, this.#input))),
    );
    if (typeof start?.run !== "string") return;
    this.stop();
    this.#resolve(start.run);
  }

  #fail(error: Error): void {
    this.stop();
    this.#reject(error);
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  promise.catch(() => undefined);
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new DOMException("stopped", "AbortError"));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Everything that was in the log when the gateway welcomed us has been taken. */
async function isCaughtUp(session: Session, timeoutMs: number): Promise<boolean> {
  const isThere = () => {
    const { head, cursor } = session;
    return head !== null && cursor !== null && parseCursor(cursor).seq >= head;
  };
  if (isThere()) return true;
  return new Promise((resolve) => {
    const settle = (value: boolean) => {
      clearTimeout(timer);
      for (const stop of stops) stop();
      resolve(value);
    };
    const look = () => {
      if (isThere()) settle(true);
      else if (session.state === "closed") settle(false);
    };
    const timer = setTimeout(settle, timeoutMs, false);
    const stops = [session.on("message", look), session.on("state", look)];
    look();
  });
}
