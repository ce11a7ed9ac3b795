package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

var bearer = []byte("bearer ")

// sessionCookie holds the same token as the Authorization header, for pages.
const sessionCookie = "fg_session"

// who finds the buyer from the token alone: an Authorization header, else the cookie. A browser adds the cookie to
// requests of any page, so one that changes something must come from an allowed origin, exactly. False: refused, the
// code is in answer.
func (e *Edge) who(c *call) bool {
	h := &c.http.Request.Header
	token, ok := only(h, "Authorization")
	if !ok {
		return c.refused(sale.Unauthorized)
	}
	if len(token) > 0 {
		if len(token) <= len(bearer) || !bytes.EqualFold(token[:len(bearer)], bearer) {
			return c.refused(sale.Unauthorized)
		}
		token = token[len(bearer):]
	} else if token = h.Cookie(sessionCookie); len(token) > 0 && !c.http.IsGet() && !c.http.IsHead() {
		if origin, ok := only(h, "Origin"); !ok || !e.origins[string(origin)] {
			return c.refused(sale.Forbidden)
		}
	}
	if len(token) == 0 {
		return c.refused(sale.Unauthorized)
	}
	user, ok := e.known.user(token)
	if !ok {
		return c.refused(sale.Unauthorized)
	}
	c.user = user
	return true
}

// only is the value of a header, nil where it is missing. False: it stands there several times, and what is in front of
// us may have judged another one than we would.
func only(h *fasthttp.RequestHeader, name string) ([]byte, bool) {
	switch all := h.PeekAll(name); len(all) {
	case 0:
		return nil, true
	case 1:
		return all[0], true
	}
	return nil, false
}

// refused notes why a gate stops the call.
func (c *call) refused(code sale.Code) bool {
	c.answer = code
	return false
}
