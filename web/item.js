// One item: picture, name, price, stock, the one button that says the truth, and what it came to.
import { make, money, placeholder, put, short } from "./view.js";
import { say } from "./words.js";

const SPINNER_AFTER = 150; // ms; an answer quicker than that needs no spinner

/** Makes an item's card; press is called with the commodity when its button is pressed. */
export function makeItem(item, press) {
  const root = make("article", "card item");
  const name = make("h2");
  name.id = "item-" + item.commodityId;
  root.setAttribute("aria-labelledby", name.id);
  const price = make("p", "price"), bar = make("div", "stock"), fill = make("i"), words = make("p", "stock-words");
  const button = make("button", "buy"), label = make("span", "label"), told = make("div", "told");
  const sentence = make("p", "sentence"), detail = make("p", "detail");
  bar.setAttribute("aria-hidden", "true");
  bar.append(fill);
  const left = make("span"), right = make("span");
  words.append(left, right);
  const head = make("div", "item-head");
  const text = make("div");
  text.append(name, price);
  head.append(placeholder(item.commodityId), text);
  button.type = "button";
  button.setAttribute("aria-describedby", name.id);
  button.append(make("span", "spinner"), label);
  told.setAttribute("role", "status");
  detail.setAttribute("aria-live", "off"); // it counts down, and nobody wants to hear each second
  told.append(sentence, detail);
  root.append(head, bar, words, button, told);
  // aria-disabled, not disabled: a button that has the focus keeps it while it is busy.
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && press(item.commodityId));
  return { root, name, price, fill, left, right, button, label, told, sentence, detail, slow: 0 };
}

/** Draws an item as it stands; at is {shop, activity, now, phase, state}. */
export function drawItem(card, item, at) {
  put(card.name, item.title);
  put(card.price, money(item.price));
  drawStock(card, item, at.phase);
  const b = buttonOf(item, at);
  put(card.label, b.text);
  card.button.setAttribute("aria-disabled", String(!b.press));
  card.button.className = "buy" + (b.press ? "" : " off") + (b.busy ? " working" : "");
  drawSpinner(card, b.busy);
  const t = toldOf(item, at);
  card.told.className = "told " + t.tone;
  put(card.sentence, t.sentence);
  put(card.detail, t.detail || "");
}

function drawSpinner(card, busy) {
  if (!busy) {
    clearTimeout(card.slow);
    card.slow = 0;
    card.button.classList.remove("slow");
  } else if (card.slow === 0) {
    card.slow = setTimeout(() => (card.slow = -1, card.button.classList.add("slow")), SPINNER_AFTER);
  } else if (card.slow === -1) {
    card.button.classList.add("slow");
  }
}

function drawStock(card, item, phase) {
  const taken = item.total > 0 ? Math.floor(((item.total - item.remaining) / item.total) * 100) : 100;
  card.fill.style.width = (phase === "before" ? 0 : taken) + "%";
  if (phase === "before") {
    put(card.left, say("units", { n: item.total }));
    put(card.right, "");
    return;
  }
  put(card.left, item.soldOut ? say("gone") : say("left", { n: item.remaining }));
  put(card.right, say("taken", { n: taken }));
}

const LIVE = ["pending_payment", "paid"];

/** The buyer's live orders of an item, newest first: they hold the limit. */
function liveOrders(item, shop) {
  const mine = [...shop.orders.values()].filter((o) => o.commodityId === item.commodityId && LIVE.includes(o.state));
  return mine.sort((a, b) => b.createdAt - a.createdAt);
}

/** What the button says and does: {text, press, busy}. */
function buttonOf(item, { shop, activity, now, phase, state }) {
  const step = state && state.step;
  if (step === "sending" || step === "retrying") return { text: say("button_sending"), busy: true };
  if (step === "unknown") return { text: say("button_unknown"), busy: true };
  if (step === "accepted") return { text: say("button_accepted"), busy: true };
  const units = liveOrders(item, shop).reduce((n, o) => n + o.quantity, 0);
  if (units >= activity.perUserLimit) return { text: say("button_yours") };
  if (phase === "ended") return { text: say("button_ended") };
  if (phase === "before") return { text: opensIn(activity.startsAt - now) };
  if (phase === "paused") return { text: say("button_paused") };
  if (item.soldOut) return { text: say("button_sold_out") };
  if (!shop.mayLogIn) return { text: say("login_first"), press: true };
  const refused = step === "refused" && state.code !== "duplicate";
  return { text: say(refused ? "again" : "buy"), press: state?.code !== "blocked" && state?.code !== "forbidden" };
}

function opensIn(ms) {
  return ms < 24 * 3600e3 ? say("opens_in", { t: short(ms) }) : say("soon");
}

/** What is said beneath the button: {sentence, detail, tone}. */
function toldOf(item, { shop, now, phase, state }) {
  const step = state && state.step;
  if (step === "sending") return { tone: "calm", sentence: say("sending") };
  if (step === "retrying") return { tone: "calm", sentence: say("retrying", state) };
  if (step === "unknown") return { tone: "calm", sentence: say("unknown") };
  if (step === "accepted") return { tone: "calm", sentence: say(state.had ? "duplicate" : "accepted") };
  const order = liveOrders(item, shop)[0] || (step === "order" && shop.orders.get(state.orderNo));
  if (order) return orderTold(order, now, step === "order" && state.had);
  if (step === "refused" && !stale(state, item, phase)) return { tone: "no", sentence: refusal(state) };
  if (phase === "paused") return { tone: "", sentence: say("paused") };
  return { tone: "", sentence: "" };
}

/** A refusal that time or stock has overtaken is not left standing. */
function stale(state, item, phase) {
  return state.code === "not_started" && phase !== "before";
}

function refusal({ code, reason }) {
  return code === "failed" && (reason === "sold_out" || reason === "duplicate") ? say(reason) : say(code);
}

function orderTold(order, now, had) {
  const detail = say("order_no") + " " + order.orderNo;
  if (order.state !== "pending_payment") return { tone: order.state === "paid" ? "good" : "", sentence: say(order.state), detail };
  if (now >= order.payBy) return { tone: "", sentence: say("pay_over"), detail };
  const within = `${say("pay_within")} ${short(order.payBy - now)}`;
  return { tone: "good", sentence: say(had ? "duplicate" : "yours"), detail: `${within}\n${detail}` };
}
