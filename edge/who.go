package edge

import (
	"bytes"

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
	token := h.Peek("Authorization")
	if len(token) > 0 {
		if len(token) <= len(bearer) || !bytes.EqualFold(token[:len(bearer)], bearer) {
			return c.refused(sale.Unauthorized)
		}
		token = token[len(bearer):]
	} else if token = h.Cookie(sessionCookie); len(token) > 0 {
		if !c.http.IsGet() && !c.http.IsHead() && !e.origins[string(h.Peek("Origin"))] {
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

// refused notes why a gate stops the call.
func (c *call) refused(code sale.Code) bool {
	c.answer = code
	return false
}
