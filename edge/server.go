package edge

import (
	"bytes"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

const (
	maxBody    = 16 << 10 // the largest body of the API has some 200 bytes
	maxHeaders = 8 << 10  // a token, a cookie and what browsers send
	writeRoom  = 2 << 10  // an answer of the API fits; a page is written past it
)

// newServer makes the HTTP server with every limit said: fasthttp's defaults wait for ever and log what they were sent.
func (e *Edge) newServer() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      e.serve,
		ErrorHandler:                 e.serveError,
		ReadTimeout:                  e.cfg.ReadTimeout,
		WriteTimeout:                 e.cfg.WriteTimeout,
		IdleTimeout:                  e.cfg.IdleTimeout,
		MaxRequestBodySize:           maxBody,
		ReadBufferSize:               maxHeaders,
		WriteBufferSize:              writeRoom,
		Concurrency:                  e.cfg.Connections,
		ReduceMemoryUsage:            e.cfg.SaveMemory,
		SecureErrorLogMessage:        true,
		Logger:                       serverLog{e.deps.Logger},
		CloseOnShutdown:              true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		TCPKeepalive:                 true,
	}
}

// serverLog takes what fasthttp has to say: broken connections, which are many and harmless.
type serverLog struct{ log *slog.Logger }

// Printf logs the constant part only; the arguments may hold what a stranger sent.
func (l serverLog) Printf(format string, _ ...any) { l.log.Debug("http", "event", format) }

// serve answers one request. It blocks the connection's goroutine until the answer is known.
func (e *Edge) serve(ctx *fasthttp.RequestCtx) {
	e.metrics.arrived.Add(1)
	e.metrics.inFlight.Add(1)
	c := newCall(ctx)
	e.finish(c, e.route(c))
	c.free()
	e.metrics.inFlight.Add(-1)
}

// finish writes what the call's story came to; open means that it wrote its answer itself.
func (e *Edge) finish(c *call, code sale.Code) {
	switch code {
	case open:
	case sale.Accepted:
		e.accepted(c)
		e.metrics.latency.Observe(time.Since(c.at).Seconds())
	case sale.Duplicate:
		e.duplicate(c)
	default:
		e.refuse(c, code)
	}
}

// serveError answers what is no HTTP that we take.
func (e *Edge) serveError(ctx *fasthttp.RequestCtx, err error) {
	e.metrics.arrived.Add(1)
	c := newCall(ctx)
	defer c.free()
	code := sale.BadRequest
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		code = sale.BodyTooLarge
	case errors.As(err, &small):
		code = sale.HeaderTooLarge
	}
	e.refuse(c, code)
}

var (
	pathActivities  = []byte("/api/activities")
	pathItems       = []byte("/items/")
	pathOrdersOf    = []byte("/orders")
	pathTokenOf     = []byte("/token")
	pathRequests    = []byte("/api/requests/")
	pathOrders      = []byte("/api/orders")
	pathTime        = []byte("/api/time")
	pathDemo        = []byte("/api/demo/login")
	pathAPI         = []byte("/api/")
	contentTypeHTML = []byte("text/html")
)

// route finds the story of a request by its path, the way to buy first.
func (e *Edge) route(c *call) sale.Code {
	// A length beside chunks is how requests are smuggled past a proxy. fasthttp answers it and closes, so only what
	// closes is looked at.
	if h := &c.http.Request.Header; h.ConnectionClose() && lengthBesideChunks(h.RawHeaders()) {
		c.http.SetConnectionClose()
		return sale.BadRequest
	}
	path := c.http.Path()
	if rest, ok := bytes.CutPrefix(path, pathActivities); ok && len(rest) > 0 && rest[0] == '/' {
		return e.routeActivity(c, rest[1:])
	}
	if c.gate = gateDraining; e.draining.Load() {
		return sale.Busy
	}
	c.gate = gateRoute
	if !bytes.HasPrefix(path, pathAPI) {
		return e.page(c, path)
	}
	if bytes.Equal(path, pathDemo) && c.http.IsPost() && e.deps.Demo {
		return e.demoLogin(c)
	}
	if !c.http.IsGet() && !c.http.IsHead() {
		return sale.NotFound
	}
	switch rest, ok := bytes.CutPrefix(path, pathOrders); {
	case bytes.Equal(path, pathTime):
		c.gate = gateRead
		return e.answerDocument(c, timeDocument)
	case bytes.Equal(path, pathActivities):
		c.gate = gateRead
		if e.catalog.unknown() == sale.Busy {
			return sale.Busy
		}
		return e.answerDocument(c, e.catalog.current.Load().list)
	case bytes.HasPrefix(path, pathRequests):
		return e.poll(c, sale.Token(path[len(pathRequests):]))
	case ok && len(rest) == 0:
		return e.listOrders(c)
	case ok && rest[0] == '/':
		return e.showOrder(c, rest[1:])
	}
	return sale.NotFound
}

// routeActivity takes what stands behind /api/activities/.
func (e *Edge) routeActivity(c *call, path []byte) sale.Code {
	c.gate = gateRoute
	id, rest := path, []byte(nil)
	if i := bytes.IndexByte(path, '/'); i >= 0 {
		id, rest = path[:i], path[i:]
	}
	var err error
	if c.activity, err = sale.ParseID(id); err != nil {
		return sale.NotFound
	}
	if text, ok := bytes.CutPrefix(rest, pathItems); ok && c.http.IsPost() {
		if text, ok = bytes.CutSuffix(text, pathOrdersOf); !ok {
			return sale.NotFound
		}
		if c.commodity, err = sale.ParseID(text); err != nil {
			return sale.NotFound
		}
		c.at = time.Now()
		return e.buy(c)
	}
	if c.gate = gateDraining; e.draining.Load() {
		return sale.Busy
	}
	c.gate = gateRoute
	switch {
	case bytes.Equal(rest, pathTokenOf) && c.http.IsPost():
		return e.issue(c)
	case len(rest) == 0 && (c.http.IsGet() || c.http.IsHead()):
		if c.gate = gateRead; !e.catalog.findActivity(c) {
			return e.catalog.unknown()
		}
		return e.answerDocument(c, c.sold.view)
	}
	return sale.NotFound
}

// lengthBesideChunks says that the headers have both a Content-Length and a Transfer-Encoding.
func lengthBesideChunks(headers []byte) bool {
	length, chunks := false, false
	for len(headers) > 0 {
		line, rest, _ := bytes.Cut(headers, []byte("\n"))
		name, _, _ := bytes.Cut(line, []byte(":"))
		name = bytes.TrimSpace(name)
		length = length || bytes.EqualFold(name, []byte("Content-Length"))
		chunks = chunks || bytes.EqualFold(name, []byte("Transfer-Encoding"))
		headers = rest
	}
	return length && chunks
}

var timeDocument = document{body: []byte(nowField + fixedNow + "}"), nows: []int{len(nowField)}}

// answerDocument sends a prebuilt body with the time of now.
func (e *Edge) answerDocument(c *call, d document) sale.Code {
	e.ok(c, d.body)
	sent, now := c.http.Response.Body(), uint64(e.catalog.now())
	for _, at := range d.nows {
		putDigits(sent[at:at+len(fixedNow)], now)
	}
	return open
}

func wantsHTML(accept []byte) bool { return bytes.Contains(accept, contentTypeHTML) }
