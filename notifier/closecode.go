package notifier

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// closing is why a connection ends, as its client is told. The codes are the contract's, and there are no others.
type closing struct {
	code   int
	reason string
}

var (
	unauthorized    = closing{4001, "unauthorized"}
	forbiddenOrigin = closing{4003, "forbidden origin"}
	forbiddenToken  = closing{4003, "token of another user"}
	tooSlow         = closing{4008, "too slow"}
	tooMany         = closing{4009, "too many connections"}
	badMessage      = closing{4400, "bad message"}
)

// restarting asks a client to come back after a random delay, in milliseconds, so that those of a stopped process do
// not all arrive at the next one at once.
func restarting(spread time.Duration) closing {
	delay := rand.N(spread.Milliseconds() + 1)
	return closing{websocket.CloseServiceRestart, strconv.FormatInt(delay, 10)}
}
