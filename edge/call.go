package edge

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

// idLen is the length of a request id: hex of 64 bits.
const idLen = 16

// call is one request on its way through the gates. It is pooled; its ids and token are copies, never request memory.
// While it waits in a gather its fields belong to whoever leads its batch; wake hands them back.
type call struct {
	http *fasthttp.RequestCtx
	id   [idLen]byte
	salt uint64 // of the id: jitter
	gate gate   // where it stands
	// From the path.
	activity, commodity sale.ID
	sold                *activity // of the snapshot at its start
	item                *item
	// From the identity and the body.
	user     sale.ID
	token    sale.Token
	quantity int

	wake       chan func() // a batch to lead, or nil: answered
	answer     sale.Code
	live       []sale.Token // the user's live tokens, with a duplicate
	order      sale.ID      // of the first of them, once there is one
	at         time.Time    // arrival
	asked      time.Time    // before the reserve call that it was answered by; monotonic
	batch      *reserved    // the reserve batch that it took its unit in
	message    sale.Message
	confirming bool // the queue has it; reserve is asked again because its reply grew old
	rounds     int
}

var calls = sync.Pool{New: func() any { return &call{wake: make(chan func(), 1)} }}

var (
	idSeed  = rand.Uint64()
	idCount atomic.Uint64
)

func newCall(ctx *fasthttp.RequestCtx) *call {
	c := calls.Get().(*call)
	*c = call{wake: c.wake, http: ctx}
	c.mint()
	return c
}

func (c *call) free() {
	*c = call{wake: c.wake}
	calls.Put(c)
}

// mint makes the request id: a counter, well mixed (splitmix64), so that ids of one process never repeat.
func (c *call) mint() {
	z := idSeed + idCount.Add(1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	c.salt = z ^ z>>31
	const hex = "0123456789abcdef"
	for i := range c.id {
		c.id[i] = hex[c.salt>>(60-4*i)&15]
	}
}

// done answers the call; its goroutine goes on.
func (c *call) done(code sale.Code) {
	c.answer = code
	c.wake <- nil
}

// await works for whoever wakes it until it is answered itself. Every wait is bounded: by the tries of a reserve call,
// by the send's timeout, and by the room of a gather.
func (c *call) await() sale.Code {
	for lead := range c.wake {
		if lead == nil {
			break
		}
		lead()
	}
	return c.answer
}
