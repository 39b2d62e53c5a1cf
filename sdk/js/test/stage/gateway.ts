/** A gateway played by the test: it sees every attempt, and says what the test wants. */

import type { JsonObject } from "../../src/messages.js";
import type { SocketConstructor, SocketLike } from "../../src/platform.js";

export class PlayedSocket implements SocketLike {
  readyState = 0;
  binaryType = "";
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly heard: JsonObject[] = [];
  wasClosedByClient = false;
  /** Pings are answered, as long as the link is not dead. */
  isDead = false;

  constructor(
    readonly url: URL,
    readonly protocols: readonly string[],
  ) {}

  get query(): Record<string, string> {
    return Object.fromEntries(this.url.searchParams);
  }

  /** Payloads of the control messages of one kind. */
  controls(kind: string): JsonObject[] {
    return this.heard.map(({ payload }) => payload as JsonObject).filter((payload) => payload.kind === kind);
  }

  get inputs(): JsonObject[] {
    return this.heard.filter(({ type }) => type === "text");
  }

  send(text: string): void {
    if (this.isDead) return;
    const message = JSON.parse(text) as JsonObject;
    this.heard.push(message);
    if ((message.payload as JsonObject).kind === "ping") queueMicrotask(() => this.control({ kind: "pong" }));
  }

  close(): void {
    this.wasClosedByClient = true;
    this.readyState = 3;
  }

  // ---- what the gateway does ---------------------------------------------------------------------------------------

  open(): this {
    this.readyState = 1;
    this.onopen?.(undefined as never);
    return this;
  }

  welcome(fields: JsonObject = {}): this {
    const { cursor = "e.f.0" } = this.query;
    this.open();
    return this.control({ kind: "welcome", connection: `c${++welcomes}`, cursor, head: 0, input_seq: 0, ...fields });
  }

  control(payload: JsonObject): this {
    return this.say({ type: "control", timestamp: 1, payload });
  }

  text(seq: number, payload: JsonObject, fields: JsonObject = {}): this {
    return this.say({ type: "text", seq, timestamp: 1, payload, ...fields });
  }

  delta(seq: number, text: string, at: number, fields: JsonObject = {}): this {
    return this.text(seq, { kind: "delta", run: "r", text, at }, fields);
  }

  say(envelope: unknown): this {
    if (!this.isDead) this.onmessage?.({ data: JSON.stringify(envelope) });
    return this;
  }

  end(code = 1006, reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }
}

let welcomes = 0;

export interface PlayedRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: JsonObject | null;
  readonly signal: AbortSignal | null;
  readonly atMs: number;
}

type Answer = (request: PlayedRequest) => Response | Promise<Response> | null;

/** Sockets stay as they are opened until the test says more; requests are answered by `onRequest`. */
export class PlayedGateway {
  readonly sockets: PlayedSocket[] = [];
  readonly socketTimes: number[] = [];
  readonly requests: PlayedRequest[] = [];
  /** Called for each new socket, after its constructor. */
  onSocket: (socket: PlayedSocket) => void = () => undefined;
  /** Null: no answer ever comes, but for an abort. */
  onRequest: Answer = () => json({ ok: true });

  constructor(private readonly now: () => number) {}

  get socket(): PlayedSocket {
    const last = this.sockets.at(-1);
    if (last === undefined) throw new Error("no socket was opened");
    return last;
  }

  get open(): PlayedSocket[] {
    return this.sockets.filter(({ readyState }) => readyState < 2);
  }

  readonly WebSocket: SocketConstructor = ((gateway: PlayedGateway) =>
    class extends PlayedSocket {
      constructor(url: string, protocols: string[]) {
        super(new URL(url), protocols);
        gateway.sockets.push(this);
        gateway.socketTimes.push(gateway.now());
        queueMicrotask(() => gateway.onSocket(this));
      }
    })(this);

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const request: PlayedRequest = {
      url: new URL(url),
      method: init.method ?? "GET",
      headers: init.headers as Record<string, string>,
      body: typeof init.body === "string" ? (JSON.parse(init.body) as JsonObject) : null,
      signal: init.signal ?? null,
      atMs: this.now(),
    };
    this.requests.push(request);
    if (request.signal?.aborted) throw new Error("aborted");
    const answer = this.onRequest(request);
    if (answer !== null) return answer;
    return new Promise((_, reject) => {
      request.signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  };
}

export function json(body: JsonObject, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });
}

export function refusal(status: number, code: string, headers: Record<string, string> = {}): Response {
  return json({ error: { code, message: `refused: ${code}`, retryable: status >= 429, details: {} } }, status, headers);
}

/** A response whose events the test writes. */
export class PlayedStream {
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  readonly response: Response;

  constructor(private readonly signal: AbortSignal | null) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.controller = controller;
        signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
      },
    });
    this.response = new Response(body, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
  }

  /** The client has let go of it. */
  get isAborted(): boolean {
    return this.signal?.aborted ?? false;
  }

  write(text: string): void {
    this.controller?.enqueue(new TextEncoder().encode(text));
  }

  event(envelope: unknown): void {
    this.write(`data: ${JSON.stringify(envelope)}\n\n`);
  }

  end(): void {
    this.controller?.close();
  }
}
