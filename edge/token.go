package edge

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	"github.com/valyala/fasthttp"

	"floodgate/lua"
	"floodgate/sale"
)

// issue signs a request token for a buyer: POST /api/activities/{a}/token.
func (e *Edge) issue(c *call) sale.Code {
	if c.gate = gateIssue; !e.catalog.findActivity(c) {
		return e.catalog.unknown()
	}
	now := e.catalog.now()
	if v := c.sold.window(now, 0); v != open {
		return v
	}
	if !e.who(c) {
		return c.answer
	}
	// The captcha's answer is checked here.
	var body struct {
		CaptchaID string `json:"captchaId"`
		Answer    string `json:"answer"`
	}
	if !readBody(c.http.PostBody(), &body) {
		return sale.BadRequest
	}
	expires := (now + sale.Millis(e.cfg.TokenTTL.Milliseconds())) / 1000 * 1000
	// The nonce needs to differ, not to be secret: the signature is what nobody can guess.
	token := e.deps.TokenKey.Sign(sale.TokenClaims{User: c.user, Activity: c.activity, Nonce: rand.Uint64(), Expires: expires})
	e.okJSON(c, struct {
		RequestToken sale.Token  `json:"requestToken"`
		ExpiresAt    sale.Millis `json:"expiresAt"`
	}{token, expires})
	return open
}

// checkToken reads the body and the request token in it: made here, for this user and this activity, and not expired
// before its first use. False: refused, or answered from what is known of an expired token; the code is in answer.
func (e *Edge) checkToken(c *call) bool {
	token, quantity, ok := parseOrder(c.http.PostBody())
	if !ok || quantity > c.sold.PerUserLimit {
		return c.refused(sale.BadRequest)
	}
	c.token, c.quantity = sale.Token(token), quantity // the copy that outlives the request's memory
	claims, err := e.deps.TokenKey.Parse(c.token)
	if err != nil || claims.User != c.user || claims.Activity != c.activity {
		return c.refused(sale.BadRequestToken)
	}
	if claims.Expires > e.catalog.now() {
		return true
	}
	return e.checkExpired(c)
}

// checkExpired lets an expired token through where it was used before: expiry binds the first use only. What Redis does
// not know, or no longer, the workers may.
func (e *Edge) checkExpired(c *call) bool {
	found, err := e.reservations(c.activity, c.token)
	if err != nil {
		return c.refused(sale.Busy)
	}
	if _, ok := found[c.token]; ok {
		return true // reserve answers as it did before
	}
	order, status := e.orderFor(c.token, c.user)
	switch {
	case status == fasthttp.StatusNotFound:
		return c.refused(sale.BadRequestToken)
	case status != fasthttp.StatusOK:
		return c.refused(sale.Busy)
	case order.CommodityID != c.commodity || order.Quantity != c.quantity:
		return c.refused(sale.TokenReused)
	}
	return c.refused(sale.Accepted)
}

func (e *Edge) reservations(activity sale.ID, tokens ...sale.Token) (map[sale.Token]sale.Reservation, error) {
	ctx, cancel := context.WithTimeout(e.work, e.cfg.ReserveTimeout)
	defer cancel()
	return e.deps.Ledger.Reservations(ctx, lua.Cell{Activity: activity}, tokens...)
}

// requestView is where a request token stands.
type requestView struct {
	RequestToken sale.Token  `json:"requestToken"`
	State        string      `json:"state"`
	Outcome      sale.Code   `json:"outcome"`
	OrderNo      sale.ID     `json:"orderNo,omitzero"`
	PayBy        sale.Millis `json:"payBy,omitzero"`
	Reason       string      `json:"reason,omitempty"`
}

// poll tells where a request token stands: GET /api/requests/{token}. Somebody else's is as unknown as none.
func (e *Edge) poll(c *call, token sale.Token) sale.Code {
	c.gate = gatePoll
	if !e.who(c) {
		return c.answer
	}
	claims, err := e.deps.TokenKey.Parse(token)
	if err != nil || claims.User != c.user {
		return sale.NotFound
	}
	found, redisErr := e.reservations(claims.Activity, token)
	if r, ok := found[token]; ok {
		e.okJSON(c, requestView{token, r.State.Name(), r.Outcome, r.OrderNo, r.PayBy, r.Reason})
		return open
	}
	order, status := e.orderFor(token, c.user)
	switch {
	case status == fasthttp.StatusOK:
		e.okJSON(c, order.view())
		return open
	case status == fasthttp.StatusNotFound && redisErr == nil:
		return sale.NotFound
	}
	return sale.Busy // one of the two that may know does not answer
}

// orderBody is what the edge reads of an order; the rest is passed on untouched.
type orderBody struct {
	OrderNo      sale.ID     `json:"orderNo"`
	RequestToken sale.Token  `json:"requestToken"`
	CommodityID  sale.ID     `json:"commodityId"`
	Quantity     int         `json:"quantity"`
	State        sale.Code   `json:"state"`
	PayBy        sale.Millis `json:"payBy"`
	Reason       string      `json:"reason"`
}

// view is the order as its request token's state.
func (o *orderBody) view() requestView {
	v := requestView{RequestToken: o.RequestToken, State: sale.Released.Name(), Outcome: o.State, Reason: o.Reason}
	switch o.State {
	case sale.PendingPayment:
		v.State, v.PayBy = sale.Committed.Name(), o.PayBy
	case sale.Paid:
		v.State = sale.Committed.Name()
	}
	if o.State != sale.Failed {
		v.OrderNo = o.OrderNo
	}
	return v
}

// orderFor asks the workers for the order of a token. Status 200 comes with the order; anything but 200 and 404 means
// that nobody could say.
func (e *Edge) orderFor(token sale.Token, user sale.ID) (*orderBody, int) {
	status, body := e.workers.get(e.work, "/internal/requests/"+string(token)+"?user="+user.String())
	if status != fasthttp.StatusOK {
		return nil, status
	}
	var o orderBody
	if err := json.Unmarshal(body, &o); err != nil || o.RequestToken != token {
		return nil, 0
	}
	return &o, status
}
