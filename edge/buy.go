package edge

import "floodgate/sale"

// open is the verdict of a gate that lets a call through.
const open sale.Code = ""

// buy answers one attempt to buy. Gates stand in order of cost: what refuses most comes first, and nothing before the
// reservation leaves the process. Up to the window the path alone decides: no body is read, nothing is allocated.
func (e *Edge) buy(c *call) sale.Code {
	if c.gate = gateDraining; e.draining.Load() {
		return sale.Busy
	}
	if c.gate = gateRoute; !e.catalog.find(c) {
		return e.catalog.unknown()
	}
	if c.gate = gateSoldOut; e.soldOut.has(c.item.till) {
		return sale.SoldOut
	}
	c.gate = gateWindow
	if v := c.sold.window(e.catalog.now(), boundary); v != open {
		return v
	}
	// Gate 5, room: adaptive concurrency and the local rate stand here.
	if c.gate = gateWho; !e.who(c) {
		return c.answer
	}
	// Gates 7 and 8, blocked and user too fast, stand here.
	if c.gate = gateToken; !e.checkToken(c) {
		return c.answer
	}
	// Captcha and gate 10, the leased global rate, stand here.
	if c.gate = gateReserve; !c.item.till.line.add(c) { // one Redis round trip, shared with whoever waits too
		return sale.Busy
	}
	return c.await() // reserved, then enqueued with its batch: till.go and enqueue.go
}
