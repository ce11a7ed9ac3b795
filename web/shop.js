// What the shop is asked: one request at a time, who is logged in, the server's clock, and the buyer's orders.
import { Line } from "./line.js";

const ANSWER_WITHIN = 8000; // ms; longer, and asking again by the same token is quicker than waiting

/** Tells by events, beside those of [Line]: session (who is logged in, or "expired"), offset, order. */
export class Shop extends Line {
  /** socket is the notifier's address; activity may be "" (the list); demo: without a token nobody is logged in. */
  constructor({ socket, activity, demo }) {
    super(socket, activity);
    this.demo = demo;
    this.offset = 0; // ms to add to this device's clock
    this.orders = new Map(); // orderNo -> order, of this activity
    // Paid, closed or cancelled, here or elsewhere.
    this.addEventListener("outcome", (e) => this.orders.has(e.detail.orderNo) && this.loadOrder(e.detail.orderNo));
  }

  /** One request. Resolves to {status, body, code, retryAfter}; status 0 means that nobody knows what became of it. */
  async ask(method, path, body) {
    const headers = {};
    if (this.token) headers.Authorization = "Bearer " + this.token;
    if (body) headers["Content-Type"] = "application/json";
    try {
      const res = await fetch(path, {
        method, headers, body: body && JSON.stringify(body), cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN),
      });
      const answer = await res.json(); // what is not JSON was not said by the shop, so nothing is known
      const code = answer.error ? answer.error.code : "";
      const seconds = Number(res.headers.get("Retry-After")) || 0;
      const retryAfter = (answer.error && answer.error.retryAfterMs) || seconds * 1000 || 1000;
      return { status: res.status, body: answer, code, retryAfter };
    } catch {
      return { status: 0, body: {}, code: "unknown", retryAfter: 1000 };
    }
  }

  get token() { return localStorage.getItem("fg.token") || ""; }
  get mayLogIn() { return this.token !== "" || !this.demo; } // a cookie that scripts cannot see may do instead
  get user() { return localStorage.getItem("fg.user") || ""; }

  async loadOrders() {
    const user = this.user;
    const r = await this.ask("GET", "/api/orders?limit=100");
    if (user !== this.user) return;
    if (r.status === 401) return this.token ? this.logout() : this.tell("session", "expired");
    for (const o of r.body.orders || []) if (o.activityId === this.activity) this.orders.set(o.orderNo, o);
    this.tell("order");
  }

  async loadOrder(orderNo) {
    const r = await this.ask("GET", "/api/orders/" + orderNo);
    if (r.status !== 200) return false;
    if (r.body.activityId === this.activity) this.orders.set(orderNo, r.body);
    this.tell("order");
    return true;
  }

  now() { return Date.now() + this.offset; }

  /** The best of three: the answer that came quickest says most about the server's clock. */
  async syncClock() {
    let best = Infinity;
    for (let i = 0; i < 3; i++) {
      const sent = Date.now();
      const r = await this.ask("GET", "/api/time");
      const took = Date.now() - sent;
      if (r.status !== 200 || took >= best) continue;
      best = took;
      this.offset = r.body.now + took / 2 - Date.now();
    }
    this.tell("offset");
  }
}
