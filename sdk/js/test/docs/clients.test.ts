import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { until } from "../fakes/gateway.js";
import { hasGateway, RealGateway } from "../fakes/real_gateway.js";
import { type Program, runSnippet } from "./snippets.js";

const PATIENCE_MS = 25_000;
let gateway: RealGateway;
let program: Program | undefined;

beforeAll(async () => {
  if (!hasGateway) return;
  gateway = await RealGateway.start();
  await gateway.stream("chat-42", "r1", ["Hello, ", "wörld."]);
}, 60_000);

afterAll(async () => gateway?.stop(), 30_000);

afterEach(() => program?.stop());

async function shows(text: string): Promise<void> {
  try {
    await until(text, () => program?.output().includes(text) ?? false, PATIENCE_MS);
  } catch (error) {
    throw new Error(`${String(error)}; it wrote: ${program?.output()}`);
  }
}

/** Writes what is on the page, again and again. */
const WATCH = "setInterval(() => console.log(document.body.textContent), 50);";

describe.skipIf(!hasGateway)("the snippets of docs/clients.md", { timeout: 60_000 }, () => {
  it("browser", async () => {
    program = await runSnippet("browser", gateway.url, 'document.body.innerHTML = "<p id=answer></p>";', WATCH);
    await shows("Hello, wörld.");
  });

  it("loop", async () => {
    program = await runSnippet(
      "loop",
      gateway.url,
      'globalThis.fetch = ((real) => (url, ...rest) => url === "/my/relay-token" ? new Response("t") : real(url, ...rest))(fetch);',
    );
    await shows("delta Hello, wörld.");
    await shows("echo");
  });

  it("react", async () => {
    const mount = `import { createRoot } from "react-dom/client"; createRoot(document.body).render(<Chat />); ${WATCH}`;
    program = await runSnippet("react", gateway.url, "", mount);
    await shows("Hello, wörld.Say hellolive");
  });

  it("ai-sdk", async () => {
    const mount = `import { createRoot } from "react-dom/client"; createRoot(document.body).render(<Chat id="chat-43" />); ${WATCH}
setTimeout(() => document.querySelector("button").click(), 300);`;
    await gateway.post("/v1/sessions/chat-43/push", { payload: { kind: "data", data: 1 } });
    program = await runSnippet("ai-sdk", gateway.url, "", mount);
    await shows("submitted");
    const deadline = Date.now() + PATIENCE_MS;
    for (let run = 1; Date.now() < deadline && !program.output().includes("assistant: Yes."); run += 1) {
      await gateway.stream("chat-43", `a${run}`, ["Yes."]); // the first one may begin before the input is in the log
    }
    await shows("user: Helloassistant: Yes.ready");
  });

  it("python", async () => {
    program = await runSnippet("python", gateway.url);
    await shows("delta Hello, wörld.");
    await shows("run_end");
  });

  it.each(["websocket", "eventsource"])("%s", async (name) => {
    program = await runSnippet(name, gateway.url);
    await shows("delta Hello, wörld.");
    await shows("run_end");
    await gateway.stream("chat-42", `later-${name}`, ["More."]);
    await shows("More.");
  });

  it("segments", async () => {
    const session = `
const texts = new Map([["r", "One. Two"]]);
show({ on: () => () => {}, text: (run) => texts.get(run), thinking: () => "" }, "r", document.body); ${WATCH}`;
    program = await runSnippet("segments", gateway.url, "", session);
    await shows("One. Two");
  });

  it("width", async () => {
    const canvas = `
document.createElement = () => ({ getContext: () => ({ measureText: (text) => ({ width: 10 * text.length }) }) });`;
    const print =
      'for await (const line of linesOf(["The quick brown fox jumps over ", "the lazy dog."])) console.log("[" + line + "]");';
    program = await runSnippet("width", gateway.url, canvas, print);
    await shows("[The quick brown fox jumps over ]\n[the lazy dog.]");
  });
});
