/** A gateway of this repository with its own Redis, as a child process; and an agent that writes through it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const command = join(root, ".venv/bin/relayrouter");

/** False where the package is tested without its repository's environment. */
export const hasGateway = existsSync(command);

export class RealGateway {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {}

  static async start(...more: string[]): Promise<RealGateway> {
    const folder = mkdtempSync(join(tmpdir(), "relayrouter-js-"));
    const ports = ["--port", "0", "--admin-port", "0"];
    const args = ["serve", "--embedded", "--data-dir", folder, "--auth", "none", ...ports, "--json", ...more];
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
    for await (const line of createInterface({ input: child.stdout })) {
      return new RealGateway((JSON.parse(line) as { url: string }).url, child, folder);
    }
    throw new Error("the gateway did not start");
  }

  async post(path: string, body: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  /** One run: each text goes out when the next is asked for; the run ends with them. */
  async stream(session: string, run: string, texts: AsyncIterable<string> | Iterable<string>): Promise<string> {
    const bytes = new TextEncoder();
    async function* body() {
      for await (const text of texts) yield bytes.encode(text);
    }
    const init = { method: "POST", body: body() as unknown as BodyInit, duplex: "half" };
    const response = await fetch(`${this.url}/v1/sessions/${session}/runs/${run}/stream`, init);
    return ((await response.json()) as { reason: string }).reason;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What a test writes bit by bit. */
export class Script implements AsyncIterable<string> {
  #texts: (string | null)[] = [];
  #wake: () => void = () => undefined;

  write(text: string): void {
    this.#texts.push(text);
    this.#wake();
  }

  end(): void {
    this.#texts.push(null);
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const text = this.#texts.shift();
      if (text === null) return;
      if (text !== undefined) yield text;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
