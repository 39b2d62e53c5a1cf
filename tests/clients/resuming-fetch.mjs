// A `fetch` for any library that reads a run as an event stream: it reads on when the connection breaks.
// The library sees one response. Hand it the same options as `fetch`; further requests are made with GET.
export function resumingFetch({ fetch = globalThis.fetch, minDelay = 500, maxDelay = 10_000 } = {}) {
  return async (url, init = {}) => {
    const first = await fetch(url, init);
    if (!first.ok || !first.headers.get("content-type")?.startsWith("text/event-stream")) return first;
    let lastId = "";
    let tries = 0;

    const wait = (response) => {
      const asked = Number(response?.headers.get("retry-after") ?? 0) * 1000;
      const delay = asked + Math.random() * Math.min(maxDelay, minDelay * 2 ** tries++);
      return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, delay);
        init.signal?.addEventListener("abort", () => (clearTimeout(timer), reject(init.signal.reason)), { once: true });
      });
    };
    const reopen = async () => {
      const headers = new Headers(init.headers);
      if (lastId) headers.set("last-event-id", lastId);
      for (;;) {
        const response = await fetch(url, { ...init, method: "GET", body: undefined, headers }).catch((error) => {
          if (init.signal?.aborted) throw error;
        });
        if (response?.status === 204) return null; // all of it has been read
        if (response?.ok) return response.body;
        if (response && response.status < 500 && response.status !== 429) throw new Error(`HTTP ${response.status}`);
        await wait(response);
      }
    };
    async function* blocks() {
      for (let body = first.body; body !== null; body = await reopen()) {
        const decoder = new TextDecoder();
        let rest = "";
        const reader = body.getReader();
        try {
          for (let part = await reader.read(); !part.done; part = await reader.read()) {
            const events = (rest + decoder.decode(part.value, { stream: true })).split("\n\n");
            rest = events.pop(); // what a break cuts off comes again, whole
            for (const event of events) {
              if (event === ": over") return;
              lastId = /^id: (.*)$/m.exec(event)?.[1] ?? lastId;
              if (/^data: /m.test(event)) tries = 0;
              yield `${event}\n\n`;
            }
          }
        } catch (error) {
          if (init.signal?.aborted) throw error;
        } finally {
          reader.cancel().catch(() => {});
        }
        await wait();
      }
    }
    const events = blocks();
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      async pull(controller) {
        const { value, done } = await events.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => events.return(),
    });
    return new Response(body, { status: first.status, headers: first.headers });
  };
}
