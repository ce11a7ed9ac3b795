// The page of one activity. All state is in the client (floodgate.js) and in `activity`; drawing is safe to repeat.
import { Floodgate } from "./floodgate.js";
import { backoff, jitter, wait } from "./line.js";
import { drawItem, makeItem } from "./item.js";
import { drawOrders, tickOrders } from "./orders.js";
import { $, parts, phaseOf, put, settings, speak, windowText } from "./view.js";
import { say } from "./words.js";

const id = location.pathname.split("/")[2] || "";
const shop = new Floodgate({ ...settings(), activity: id });
const cards = new Map(); // commodity -> its card's elements
let activity = null;
let fault = ""; // said while there is no activity
let spokenPhase = "";
let lostAt = 0;

// ---- drawing

function draw() {
  drawSession();
  put($("note"), activity || !fault ? "" : say(fault));
  if (!activity) return;
  put($("title"), activity.title);
  document.title = activity.title;
  put($("window"), windowText(activity.startsAt, activity.endsAt));
  put($("limit"), say("limit", { n: activity.perUserLimit }));
  for (const item of activity.items) drawCard(item);
  $("no-orders").hidden = shop.orders.size > 0;
  drawOrders($("orders"), shop);
  tick();
}

function drawSession() {
  $("login").hidden = !shop.demo || shop.token !== "";
  $("who").hidden = shop.token === "";
  put($("user"), say("as_user", { n: shop.user }));
}

function drawCard(item) {
  let card = cards.get(item.commodityId);
  if (!card) {
    card = makeItem(item, press);
    cards.set(item.commodityId, card);
    $("items").append(card.root);
  }
  drawItem(card, item, {
    shop, activity, now: shop.now(), phase: phaseOf(activity, shop.now()), state: shop.items.get(item.commodityId),
  });
}

/** The countdown runs on the server's clock and asks nobody. It wakes at each whole second, so the start is not missed. */
function tick() {
  clearTimeout(tick.timer);
  const now = shop.now();
  const phase = phaseOf(activity, now);
  const over = phase === "ended";
  const until = phase === "before" ? activity.startsAt : activity.endsAt;
  put($("clock-label"), say(over ? "is_over" : phase === "before" ? "starts_in" : "ends_in"));
  for (const [name, text] of Object.entries(parts(until - now))) put($(name), over ? "–" : text);
  if (phase !== spokenPhase && phase === "open" && spokenPhase) put($("spoken"), say("is_open"));
  spokenPhase = phase;
  for (const item of activity.items) drawCard(item);
  tickOrders($("orders"), now);
  drawLine();
  tick.timer = setTimeout(tick, ((until - now) % 1000 + 1000) % 1000 + 5);
}

/** The state of the line is told only when it is bad, and only once it has been bad for a moment. */
function drawLine() {
  const matters = shop.mayLogIn && !shop.hopeless && shop.watched.size + (spokenPhase === "open") > 0;
  const bad = matters && !shop.connected && lostAt && Date.now() - lostAt > 2000;
  put($("line"), bad ? say("reconnecting") : "");
}

// ---- what the buyer does

function press(commodity) {
  if (!shop.mayLogIn || (shop.demo && !shop.token)) {
    $("login").scrollIntoView({ block: "center" });
    $("user-id").focus({ preventScroll: true });
    return;
  }
  shop.buy(commodity);
}

async function submitLogin(e) {
  e.preventDefault();
  const userId = $("user-id").value.trim();
  const valid = userId === "" || /^[1-9]\d{0,18}$/.test(userId);
  put($("login-fault"), valid ? "" : say("login_number"));
  if (!valid) return;
  const button = $("login").querySelector("button");
  button.disabled = true;
  const code = await shop.login(userId);
  button.disabled = false;
  put($("login-fault"), code ? say(code === "bad_request" ? "login_number" : "login_failed") : "");
}

// ---- what the shop tells

function takeStock(items) {
  for (const news of items) {
    const item = activity && activity.items.find((i) => i.commodityId === news.commodityId);
    if (item) Object.assign(item, { remaining: news.remaining, soldOut: news.soldOut });
  }
  if (activity) draw();
}

/** While the socket is down the stock is asked for every few seconds, from the start on only, and by visible pages only. */
async function keepStock() {
  for (;;) {
    await wait(4000 + jitter(3000));
    const phase = phaseOf(activity, shop.now());
    const silent = shop.connected || document.hidden || phase === "before" || phase === "ended";
    if (silent) continue;
    const r = await shop.ask("GET", "/api/activities/" + id);
    if (r.status !== 200) continue;
    activity = r.body;
    draw();
  }
}

async function load() {
  if (!/^[1-9]\d{0,18}$/.test(id)) fault = "no_activity";
  for (let n = 0; !activity && fault !== "no_activity"; n++) {
    const r = await shop.ask("GET", "/api/activities/" + id);
    if (r.status === 200) {
      shop.offset = r.body.now - Date.now();
      activity = r.body;
    } else if (r.status === 404 || r.status === 400) {
      fault = "no_activity";
    } else {
      fault = "cannot_load";
      draw();
      await wait(backoff(n, 1000, 10000));
    }
  }
  if (!activity) return draw();
  shop.quietUntil = activity.startsAt;
  draw();
  await Promise.all([shop.syncClock(), shop.begin()]);
  keepStock();
}

shop.addEventListener("session", (e) => {
  draw();
  if (e.detail === "expired") put($("login-fault"), say("expired"));
});
shop.addEventListener("stock", (e) => takeStock(e.detail));
shop.addEventListener("line", () => {
  lostAt = shop.connected ? 0 : lostAt || Date.now();
  if (activity) draw();
});
shop.addEventListener("item", (e) => {
  const state = shop.items.get(e.detail), item = activity?.items.find((i) => i.commodityId === e.detail);
  if (item && state?.code === "sold_out") Object.assign(item, { remaining: 0, soldOut: true }); // until newer news
});
for (const type of ["item", "order", "offset"]) shop.addEventListener(type, () => activity && draw());
document.addEventListener("visibilitychange", () => activity && !document.hidden && tick());
$("login").addEventListener("submit", submitLogin);
$("logout").addEventListener("click", () => shop.logout());

speak(draw);
load();
