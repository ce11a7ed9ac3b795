package edge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

// Page is one static file of the buyer's pages. Text of type text/html may hold {{socket}} and {{demo}}, which are
// replaced once at the start.
type Page struct {
	Path        string // "/index.html", "/activity.html", "/app.js"
	ContentType string
	Body        []byte
	Immutable   bool // the path changes with the content
}

// page is a file ready to be sent: both forms and their tags.
type page struct {
	contentType    []byte
	plain, zipped  []byte // zipped is nil where it would not be smaller
	etag, zipETag  string
	cache          string
	securityPolicy string // of HTML
}

const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheShort   = "public, max-age=60" // a CDN takes the crowd, and a new page is out within a minute
	worthZipping = 512                  // bytes; below it the header costs more
)

// busyPage is what a browser shows while the shop is overloaded. It asks for nothing and comes back by itself.
var busyPage = []byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
	`<meta http-equiv="refresh" content="5"><title>Busy</title><p>Busy. Nothing was bought. This page tries again in a few seconds.` +
	`<p lang="zh">当前人数较多，尚未购买。页面将在几秒后自动重试。</html>`)

func newPages(files []Page, deps Deps) (map[string]*page, error) {
	demo := "false"
	if deps.Demo {
		demo = "true"
	}
	fill := strings.NewReplacer("{{socket}}", deps.SocketURL, "{{demo}}", demo)
	pages := map[string]*page{}
	for _, f := range files {
		p, err := newPage(f, fill, deps.SocketURL)
		if err != nil {
			return nil, fmt.Errorf("cannot prepare page %s: %w", f.Path, err)
		}
		pages["/"+strings.TrimPrefix(f.Path, "/")] = p
	}
	if p := pages["/index.html"]; p != nil {
		pages["/"] = p
	}
	return pages, nil
}

func newPage(f Page, fill *strings.Replacer, socket string) (*page, error) {
	p := &page{contentType: []byte(f.ContentType), plain: f.Body, cache: cacheShort}
	if f.Immutable {
		p.cache = cacheForever
	}
	if strings.HasPrefix(f.ContentType, "text/html") {
		p.plain = []byte(fill.Replace(string(f.Body)))
		p.securityPolicy = securityPolicy(socket)
	}
	sum := sha256.Sum256(p.plain)
	tag := hex.EncodeToString(sum[:12])
	p.etag, p.zipETag = `"`+tag+`"`, `"`+tag+`-gz"`
	if len(p.plain) < worthZipping {
		return p, nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(p.plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if b.Len() < len(p.plain) {
		p.zipped = b.Bytes()
	}
	return p, nil
}

// securityPolicy lets a page use its own files and the notifier, nothing else.
func securityPolicy(socket string) string {
	connect := "'self' ws: wss:" // where the page works out the notifier's address by itself
	if u, err := url.Parse(socket); err == nil && u.Host != "" {
		connect = "'self' " + u.Scheme + "://" + u.Host
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; connect-src " +
		connect + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// page serves the static files; /a/{activity} is the activity's page whatever the id, so that a CDN keeps one.
func (e *Edge) page(c *call, path []byte) sale.Code {
	p := e.pages[string(path)]
	if id, ok := bytes.CutPrefix(path, []byte("/a/")); ok && p == nil {
		if _, err := sale.ParseID(id); err == nil {
			p = e.pages["/activity.html"]
		}
	}
	if p == nil || (!c.http.IsGet() && !c.http.IsHead()) {
		return sale.NotFound
	}
	c.gate = gatePage
	e.answers.ok.counts[c.gate].Add(1)
	e.head(c, fasthttp.StatusOK, p.contentType)
	body, tag := p.plain, p.etag
	h := &c.http.Response.Header
	if p.zipped != nil && acceptsGzip(string(c.http.Request.Header.Peek("Accept-Encoding"))) {
		body, tag = p.zipped, p.zipETag
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", p.cache)
	h.Set("X-Content-Type-Options", "nosniff")
	if p.securityPolicy != "" {
		h.Set("Content-Security-Policy", p.securityPolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
	}
	if matches(string(c.http.Request.Header.Peek("If-None-Match")), p) {
		c.http.Response.SetStatusCode(fasthttp.StatusNotModified)
		return open
	}
	c.http.Response.SetBodyRaw(body)
	return open
}

// acceptsGzip reads an Accept-Encoding; "gzip;q=0" says no.
func acceptsGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q = strings.ReplaceAll(q, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000") && q != "q=0.0" && q != "q=0.00"
		}
	}
	return false
}

// matches says that the client holds this content in either form.
func matches(held string, p *page) bool {
	for tag := range strings.SplitSeq(held, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == p.etag || tag == p.zipETag {
			return true
		}
	}
	return false
}
