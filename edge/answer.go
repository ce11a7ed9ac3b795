package edge

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

// gate is where a request was answered: a label of the verdict counter.
type gate uint8

const (
	gateProtocol gate = iota // the HTTP itself
	gateDraining
	gateRoute
	gateSoldOut
	gateWindow
	gateWho
	gateToken
	gateReserve
	gateEnqueue
	gateAccepted
	gatePage   // pages
	gateRead   // time and activities
	gateIssue  // request tokens
	gatePoll   // where a request token stands
	gateOrders // the user's own orders
	gateDemo
	gates // how many
)

var gateNames = [gates]string{"protocol", "draining", "route", "sold_out", "window", "who", "token", "reserve", "enqueue",
	"accepted", "page", "read", "issue", "poll", "orders", "demo"}

const (
	fixedID    = "0000000000000000" // patched with the request id
	fixedNow   = "1000000000000"    // 13 digits, patched with epoch milliseconds: enough until the year 2286
	fixedRetry = "1000"             // patched: 1000..2999 ms, so that a refused crowd does not come back at once
	endOfError = `},"requestId":"` + fixedID + `"}`
)

// answer is one code, ready to be sent: the body is prebuilt, and what differs between requests has a fixed width and is
// patched into the copy that goes out. So a refusal allocates nothing.
type answer struct {
	verdict sale.Verdict
	body    []byte
	counts  [gates]atomic.Uint64
}

// answers has one for each code of the table, and one for what is served without a verdict ("ok").
type answers struct {
	byCode map[sale.Code]*answer
	ok     answer
}

func newAnswers() *answers {
	a := &answers{byCode: map[sale.Code]*answer{}}
	a.ok.verdict = sale.Verdict{HTTP: fasthttp.StatusOK, Label: "ok"}
	for _, code := range sale.Codes() {
		extra := ""
		if code == sale.SoldOut {
			extra = `,"waitlist":false`
		}
		v := code.Verdict()
		a.byCode[code] = &answer{verdict: v, body: errorBody(v, extra)}
	}
	return a
}

// errorBody is the contract's error; extra are more fields of its "error", each with a comma before it.
func errorBody(v sale.Verdict, extra string) []byte {
	retry := "0"
	if v.Retry {
		retry = fixedRetry
	}
	message, err := json.Marshal(v.Message)
	if err != nil {
		panic("edge: text of " + string(v.Code) + ": " + err.Error())
	}
	return fmt.Appendf(nil, `{"error":{"code":"%s","retryAfterMs":%s,"message":%s%s%s`, v.Code, retry, message, extra, endOfError)
}

// notStartedBody carries startsAt and now; now stands last, so that its place is known.
func notStartedBody(startsAt sale.Millis) []byte {
	return errorBody(sale.NotStarted.Verdict(), fmt.Sprintf(`,"startsAt":%d,"now":%s`, startsAt, fixedNow))
}

var (
	headerRequestID = []byte("X-Request-Id")
	headerRetry     = []byte("Retry-After")
	headerCache     = []byte("Cache-Control")
	noStore         = []byte("no-store")
	typeJSON        = []byte("application/json; charset=utf-8")
	typeHTML        = []byte("text/html; charset=utf-8")
	retrySeconds    = [...][]byte{[]byte("1"), []byte("2"), []byte("3")} // whole seconds, never below retryAfterMs
)

// refuse answers with a code's prebuilt body.
func (e *Edge) refuse(c *call, code sale.Code) {
	a := e.answers.byCode[code]
	if a == nil {
		panic("edge: no answer for code " + string(code))
	}
	a.counts[c.gate].Add(1)
	body := a.body
	if code == sale.NotStarted {
		body = c.sold.notStarted
	}
	res := &c.http.Response
	e.head(c, a.verdict.HTTP, typeJSON)
	if a.verdict.Retry && e.refuseBrowser(c, a.verdict.HTTP) {
		return
	}
	res.SetBody(body) // copies into the connection's own buffer
	sent := res.Body()
	copy(sent[len(sent)-len(fixedID)-2:], c.id[:])
	if code == sale.NotStarted {
		putDigits(sent[len(sent)-len(endOfError)-len(fixedNow):][:len(fixedNow)], uint64(e.catalog.now()))
	}
	if a.verdict.Retry {
		ms := 1000 + c.salt%2000
		const before = len(`{"error":{"code":"","retryAfterMs":`)
		at := before + len(code)
		putDigits(sent[at:at+len(fixedRetry)], ms)
		res.Header.SetCanonical(headerRetry, retrySeconds[(ms+999)/1000-1])
	}
}

// refuseBrowser answers somebody who looks at a page, not a program, with the static busy page.
func (e *Edge) refuseBrowser(c *call, status int) bool {
	if status != fasthttp.StatusServiceUnavailable || !wantsHTML(c.http.Request.Header.Peek("Accept")) {
		return false
	}
	c.http.Response.Header.SetCanonical(headerRetry, retrySeconds[c.salt%3])
	c.http.Response.Header.SetContentTypeBytes(typeHTML)
	c.http.Response.SetBody(busyPage)
	return true
}

// head writes what every answer of the API has.
func (e *Edge) head(c *call, status int, contentType []byte) {
	res := &c.http.Response
	res.SetStatusCode(status)
	res.Header.SetContentTypeBytes(contentType)
	res.Header.SetCanonical(headerRequestID, c.id[:])
	res.Header.SetCanonical(headerCache, noStore)
	if e.draining.Load() {
		res.SetConnectionClose()
	}
}

// ok answers 200 with a body that is copied.
func (e *Edge) ok(c *call, body []byte) {
	e.answers.ok.counts[c.gate].Add(1)
	e.head(c, fasthttp.StatusOK, typeJSON)
	c.http.Response.SetBody(body)
}

// okJSON answers 200 with a value of our own.
func (e *Edge) okJSON(c *call, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("edge: " + err.Error())
	}
	e.ok(c, body)
}

// accepted is the answer that everything is about.
func (e *Edge) accepted(c *call) {
	a := e.answers.byCode[sale.Accepted]
	a.counts[c.gate].Add(1)
	e.head(c, a.verdict.HTTP, typeJSON)
	b := c.http.Response.Body()[:0]
	b = append(b, `{"outcome":"accepted","requestToken":"`...)
	b = append(b, c.token...)
	b = append(b, `","statusUrl":"/api/requests/`...)
	b = append(b, c.token...)
	c.http.Response.SetBody(append(b, `"}`...))
}

// duplicate carries the live request token, and the order's number once there is one, so that the buyer can still pay.
func (e *Edge) duplicate(c *call) {
	a := e.answers.byCode[sale.Duplicate]
	a.counts[c.gate].Add(1)
	extra := ""
	if len(c.live) > 0 {
		extra = `,"requestToken":"` + string(c.live[0]) + `"`
		if c.order != 0 {
			extra += `,"orderNo":"` + c.order.String() + `"`
		}
	}
	body := errorBody(a.verdict, extra)
	copy(body[len(body)-len(fixedID)-2:], c.id[:])
	e.head(c, a.verdict.HTTP, typeJSON)
	c.http.Response.SetBodyRaw(body)
}

// putDigits writes n right-aligned over dst, which is wide enough.
func putDigits(dst []byte, n uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}
