// My orders of this activity, newest first, live.
import { make, money, put, short, timeText } from "./view.js";
import { say } from "./words.js";

/** Draws the list anew only where it changed, so that a selection and a screen reader's place survive. */
export function drawOrders(list, shop) {
  const orders = [...shop.orders.values()].sort((a, b) => b.createdAt - a.createdAt);
  const drawn = JSON.stringify([orders, document.documentElement.lang]);
  if (list.drawn === drawn) return;
  list.drawn = drawn;
  list.replaceChildren(...orders.map(orderCard));
}

function orderCard(order) {
  const li = make("li", "card order");
  const head = make("div", "order-head");
  const title = order.quantity > 1 ? `${order.title} × ${order.quantity}` : order.title;
  head.append(make("h3", "", title), make("span", "state " + order.state, say("state_" + order.state)));
  const facts = make("dl");
  const fact = (key, text) => {
    const dd = make("dd", "", text), pair = make("div");
    pair.append(make("dt", "", say(key)), dd);
    facts.append(pair);
    return dd;
  };
  fact("order_no", order.orderNo);
  fact("amount", money(order.amount)).className = "amount";
  fact("made_at", timeText(order.createdAt));
  if (order.state === "pending_payment") fact("pay_within", "").dataset.payBy = order.payBy;
  li.append(head, facts);
  return li;
}

/** Moves the countdowns of unpaid orders on; now is the server's clock. */
export function tickOrders(list, now) {
  for (const el of list.querySelectorAll("[data-pay-by]")) {
    const left = Number(el.dataset.payBy) - now;
    put(el, left > 0 ? short(left) : say("pay_over"));
  }
}
