// One WebSocket: requests with their responses, and messages that the server sends without a request.

type Listener = (message: Record<string, unknown> & { on: string }) => void;

class Socket {
  private socket: WebSocket | null = null;
  private next = 1;
  private waiting = new Map<number, { resolve: (x: unknown) => void; reject: (why: Error) => void; sent: boolean }>();
  private unsent: string[] = [];
  // Milliseconds to the next attempt; doubled up to 4 seconds while the server does not answer.
  private retry = 250;
  listen: Listener = () => {};
  opened: () => void = () => {};
  closed: (code: number, attempts: number) => void = () => {};
  queued: (unsent: number) => void = () => {};
  private attempts = 0;

  connect(): void {
    const socket = new WebSocket(`ws://${location.host}/ws`);
    this.socket = socket;
    socket.onopen = () => {
      this.retry = 250;
      this.attempts = 0;
      for (const request of this.waiting.values()) request.sent = true;
      for (const text of this.unsent.splice(0)) socket.send(text);
      this.queued(0);
      this.opened();
    };
    socket.onmessage = (event) => this.receive(JSON.parse(String(event.data)));
    socket.onclose = ({ code }) => {
      // What was sent may or may not have arrived; what was not sent yet is sent after the next connection.
      for (const [number, { reject, sent }] of this.waiting)
        if (sent) {
          this.waiting.delete(number);
          reject(new Error("the connection to the studio was lost; check whether your last change was saved"));
        }
      this.closed(code, ++this.attempts);
      setTimeout(() => this.connect(), this.retry);
      this.retry = Math.min(4000, this.retry * 2);
    };
  }

  private receive(message: Record<string, unknown>): void {
    if (typeof message.on === "string") {
      this.listen(message as Record<string, unknown> & { on: string });
      return;
    }
    const request = this.waiting.get(message.re as number);
    if (!request) return;
    this.waiting.delete(message.re as number);
    if (typeof message.error === "string") request.reject(new Error(message.error));
    else request.resolve(message.result);
  }

  ask<T>(verb: string, args: Record<string, unknown> = {}): Promise<T> {
    const number = this.next++;
    const text = JSON.stringify({ ...args, ask: number, do: verb });
    return new Promise<T>((resolve, reject) => {
      const sent = this.socket?.readyState === WebSocket.OPEN;
      if (!sent && verb === "watch") return resolve(null as T);
      this.waiting.set(number, { resolve: resolve as (x: unknown) => void, reject, sent });
      if (sent) this.socket?.send(text);
      else this.queued(this.unsent.push(text));
    });
  }
}

export const socket = new Socket();
