// Every word of the pages, [English, Chinese]. The keys of the first part are the outcome codes of the contract; a test
// compares them with the shop's own table. The object is JSON, so that the test can read it.
const table = {
  "accepted": ["Accepted. Your order is being made.", "已受理，正在生成订单。"],
  "pending_payment": ["Your order is made. Pay before the time is up.", "订单已生成，请在时限内付款。"],
  "paid": ["Paid.", "已付款。"],
  "cancelled": ["You cancelled this order.", "您已取消该订单。"],
  "closed": ["Closed, since it was not paid in time.", "超时未付款，订单已关闭。"],
  "failed": ["This request did not become an order. Nothing was bought.", "本次未能生成订单，未购买。"],
  "waitlisted": ["You are on the waitlist.", "您已加入候补。"],
  "bad_request": ["The request could not be read. Nothing was bought. Reload the page and try again.", "请求有误，未购买。请刷新页面后重试。"],
  "unauthorized": ["Please log in. Nothing was bought.", "请先登录，未购买。"],
  "forbidden": ["This account cannot take part. Nothing was bought.", "该账号不能参加本活动，未购买。"],
  "blocked": ["This account is blocked. Nothing was bought. Please contact us.", "该账号已被限制，未购买。请联系客服。"],
  "captcha_required": ["Please answer the picture first. Nothing was bought.", "请先完成验证，未购买。"],
  "captcha_wrong": ["The answer is wrong. Nothing was bought. Please try a new picture.", "验证有误，未购买。请换一张再试。"],
  "bad_request_token": ["This attempt has expired. Nothing was bought. Please try again.", "本次请求已失效，未购买。请重试。"],
  "not_found": ["This is not to be found. Nothing was bought.", "未找到相应内容，未购买。"],
  "token_reused": ["This attempt was used for something else. Nothing new was bought.", "该请求已用于其他购买，未重复购买。"],
  "not_pending": ["The order is not waiting for payment.", "该订单不在待付款状态。"],
  "waitlist_full": ["The waitlist is full. Nothing was bought.", "候补已满，未购买。"],
  "duplicate": ["You already have an order. Nothing new was bought.", "您已有订单，未重复购买。"],
  "sold_out": ["Sold out. Nothing was bought.", "已售罄，未购买。"],
  "not_started": ["The sale has not started. Nothing was bought.", "尚未开始，未购买。"],
  "ended": ["The sale has ended. Nothing was bought.", "活动已结束，未购买。"],
  "too_fast": ["Too many tries. Nothing was bought. Please wait a moment.", "操作过于频繁，未购买。请稍候再试。"],
  "busy": ["Very busy right now. Please try again in a moment.", "当前人数较多，请稍后再试。"],

  "unknown": ["The line was cut. Asking whether your order was taken.", "连接中断，正在确认是否已购买。"],
  "sending": ["Sending your request.", "正在提交，请稍候。"],
  "retrying": ["Very busy. Trying again by itself ({n} of {of}).", "人数较多，正在自动重试（{n}/{of}）。"],
  "yours": ["Your order is made.", "订单已生成。"],
  "state_pending_payment": ["To be paid", "待付款"],
  "state_paid": ["Paid", "已付款"],
  "state_cancelled": ["Cancelled", "已取消"],
  "state_closed": ["Closed", "已关闭"],
  "state_failed": ["Not bought", "未购买"],
  "buy": ["Buy now", "立即抢购"],
  "again": ["Try again", "再试一次"],
  "login_first": ["Log in to buy", "登录后抢购"],
  "soon": ["Not started", "即将开始"],
  "opens_in": ["Opens in {t}", "{t} 后开抢"],
  "button_sending": ["Sending", "提交中"],
  "button_unknown": ["Checking", "确认中"],
  "button_accepted": ["Accepted", "已受理"],
  "button_sold_out": ["Sold out", "已售罄"],
  "button_ended": ["Ended", "已结束"],
  "button_paused": ["Paused", "已暂停"],
  "button_yours": ["You have yours", "您已下单"],
  "paused": ["Paused for a moment. This page goes on by itself.", "活动暂停中，恢复后本页自动继续。"],
  "price": ["¥{n}", "¥{n}"],
  "units": ["{n} units", "共 {n} 件"],
  "taken": ["{n}% taken", "已抢 {n}%"],
  "left": ["{n} left", "剩 {n} 件"],
  "gone": ["Sold out", "售罄"],
  "limit": ["Up to {n} of each item per person", "每人每款限购 {n} 件"],
  "starts_in": ["Starts in", "距开始"],
  "ends_in": ["Ends in", "距结束"],
  "is_over": ["The sale has ended", "活动已结束"],
  "is_open": ["The sale is open.", "活动已开始。"],
  "days": ["days", "天"],
  "hours": ["hrs", "时"],
  "minutes": ["min", "分"],
  "seconds": ["sec", "秒"],
  "orders": ["My orders", "我的订单"],
  "no_orders": ["Orders of this sale appear here.", "本活动的订单会显示在这里。"],
  "order_no": ["Order", "订单号"],
  "amount": ["Amount", "金额"],
  "pay_within": ["Pay within", "剩余付款时间"],
  "pay_over": ["The time to pay is over", "付款时间已过"],
  "made_at": ["Made", "下单时间"],
  "login": ["Log in", "登录"],
  "logout": ["Log out", "退出"],
  "user_id": ["User number (optional)", "用户编号（可不填）"],
  "login_why": ["Log in before the start, and one click is enough.", "请提前登录，开抢时一键下单。"],
  "login_failed": ["Could not log in. Please try again.", "登录失败，请重试。"],
  "login_number": ["A user number has 1 to 19 digits and does not start with 0.", "用户编号为 1 至 19 位数字，且不以 0 开头。"],
  "expired": ["Your session is over. Please log in again.", "登录已失效，请重新登录。"],
  "as_user": ["User {n}", "用户 {n}"],
  "reconnecting": ["Reconnecting…", "重新连接中…"],
  "sales": ["Sales", "抢购活动"],
  "no_sales": ["No sale is planned right now.", "暂无活动。"],
  "all_sales": ["All sales", "全部活动"],
  "phase_before": ["Upcoming", "未开始"],
  "phase_open": ["Open now", "进行中"],
  "phase_ended": ["Ended", "已结束"],
  "phase_paused": ["Paused", "已暂停"],
  "items_n": ["{n} items", "{n} 款商品"],
  "cannot_load": ["Could not load. Trying again by itself.", "加载失败，正在自动重试。"],
  "no_activity": ["There is no such sale.", "没有该活动。"],
  "other_language": ["中文", "English"]
};

const stored = localStorage.getItem("fg.lang");
let column = (stored || navigator.language).startsWith("zh") ? 1 : 0;

export const language = () => (column ? "zh-CN" : "en");

export function switchLanguage() {
  column = 1 - column;
  localStorage.setItem("fg.lang", language());
}

/** The words of a key, {name} replaced by values.name. An unknown code of a newer shop is told as failed. */
export function say(key, values = {}) {
  const words = (table[key] || table.failed)[column];
  return words.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
