package notifier

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"floodgate/sale"
)

// messagesPerSecond is how fast a client's messages are read once it has said as many as a page needs to watch and
// subscribe all it may; who sends more only fills its own line.
const messagesPerSecond = 10

// receive reads one message of the client of at most limit bytes. An error other than errBadMessage is the peer's end.
func (c *conn) receive(limit int64) (request, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return request{}, err
	}
	if kind != websocket.TextMessage {
		return request{}, errBadMessage
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return request{}, err
	case int64(len(b)) > limit:
		return request{}, errBadMessage
	}
	return readRequest(b)
}

// read takes the client's messages until either side ends the connection.
func (c *conn) read(ctx context.Context, user sale.ID) {
	if c.ending() {
		return
	}
	c.ws.SetReadLimit(2 * maxFirstMessage) // receive refuses earlier, with our own code
	if user == 0 {
		var ok bool
		if user, ok = c.authenticate(); !ok {
			return
		}
	}
	if !c.hub.join(c, user) {
		c.close(tooMany)
		return
	}
	alive := func(string) error {
		c.heard()
		if c.ending() {
			return nil // the close frame has a deadline of its own
		}
		return c.ws.SetReadDeadline(time.Now().Add(c.n.times.pong))
	}
	c.ws.SetPongHandler(alive)
	pace := rate.NewLimiter(messagesPerSecond, c.hub.cfg.MaxWatches+c.hub.cfg.MaxSubscriptions)
	for err := alive(""); err == nil; err = pace.Wait(ctx) {
		in, err := c.receive(maxMessage)
		if errors.Is(err, errBadMessage) {
			c.close(badMessage)
		}
		if err != nil || !c.obey(in) {
			return
		}
	}
	c.close(restarting(c.hub.cfg.RestartSpread)) // ctx has ended
}

// authenticate waits for the first message, which must be a valid auth.
func (c *conn) authenticate() (sale.ID, bool) {
	if c.ws.SetReadDeadline(time.Now().Add(c.n.times.auth)) != nil {
		return 0, false
	}
	in, err := c.receive(maxFirstMessage)
	var late net.Error
	switch {
	case errors.Is(err, errBadMessage):
		c.close(badMessage)
		return 0, false
	case errors.As(err, &late) && late.Timeout():
		c.close(unauthorized)
		return 0, false
	case err != nil:
		return 0, false // the peer went away
	}
	u, err := c.n.deps.Verifier.Verify(in.Token)
	if in.Type != "auth" || err != nil {
		c.close(unauthorized)
		return 0, false
	}
	return u.ID, true
}

// obey does what a message asks for; false where the connection ends.
func (c *conn) obey(in request) bool {
	switch in.Type {
	case "auth":
		return c.authAgain(in.Token)
	case "watch":
		return c.watch(in.RequestToken)
	case "subscribe":
		if !c.n.board.join(c, in.ActivityID) {
			c.send(errorMessage(refusal{Code: sale.BadRequest, Activity: in.ActivityID, Message: "too many subscriptions on this connection"}))
		}
		return true
	}
	c.close(badMessage)
	return false
}

// authAgain answers a client that sends auth though its cookie was enough, or that does not know whether it did.
func (c *conn) authAgain(token string) bool {
	u, err := c.n.deps.Verifier.Verify(token)
	switch {
	case err != nil:
		c.close(unauthorized)
	case u.ID != c.user:
		c.close(forbiddenToken)
	default:
		c.send(readyMessage(u.ID, now()))
		return true
	}
	return false
}

func (c *conn) watch(t sale.Token) bool {
	claims, err := c.n.deps.TokenKey.Parse(t)
	switch {
	case err != nil:
		c.send(errorMessage(refusal{Code: sale.BadRequestToken}))
	case claims.User != c.user:
		c.close(forbiddenToken)
		return false
	case !c.hub.watch(c, t):
		c.send(errorMessage(refusal{Code: sale.BadRequest, Token: t, Message: "too many unfinished tokens watched on this connection"}))
	}
	return true
}
