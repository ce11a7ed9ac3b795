// Package web holds the buyer's pages: a list of sales and the page of one sale, in plain HTML, CSS and JavaScript
// modules that browsers read as they stand. Nothing is built, nothing comes from elsewhere.
//
// A page knows its shop from two meta tags, fg-socket and fg-demo, which the edge fills in once at its start. The way of
// a purchase on the buyer's side is in floodgate.js (one request token from the click to the outcome), over shop.js
// (requests, clock, orders) and line.js (the socket). The other scripts only draw.
package web

import (
	"embed"
	"fmt"
	"path"
)

//go:embed *.html *.css *.js
var files embed.FS

// File is one file as it is served.
type File struct {
	Path        string // "/index.html" (the list, also "/"), "/activity.html" (any /a/{activity}), "/static/app.css", …
	ContentType string
	Body        []byte // of HTML with {{socket}} and {{demo}} still to be filled in
	Immutable   bool   // the path changes with the content; none does: every edge of a rolling upgrade must know every path
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// Files lists every file. The bodies belong to the caller.
func Files() []File {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("web: cannot list the embedded files: %v", err))
	}
	out := make([]File, 0, len(entries))
	for _, entry := range entries {
		body, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(fmt.Sprintf("web: cannot read the embedded file %s: %v", entry.Name(), err))
		}
		f := File{Path: "/static/" + entry.Name(), ContentType: contentTypes[path.Ext(entry.Name())], Body: body}
		if path.Ext(entry.Name()) == ".html" {
			f.Path = "/" + entry.Name()
		}
		out = append(out, f)
	}
	return out
}
