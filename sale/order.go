package sale

// OrderState is the state of an order's row. Numbers are those in the database.
type OrderState int8

// The states.
const (
	StatePending   OrderState = 0 // pending_payment
	StatePaid      OrderState = 1
	StateCancelled OrderState = 2 // by the buyer
	StateClosed    OrderState = 3 // not paid in time
	StateFailed    OrderState = 4 // never became a sale
)

// Outcome is what the buyer is told in this state.
func (s OrderState) Outcome() Code {
	return [...]Code{PendingPayment, Paid, Cancelled, Closed, Failed}[s]
}

// Live says that the order holds its units.
func (s OrderState) Live() bool { return s == StatePending || s == StatePaid }

// Reasons why a row is failed: short words, the same in Redis, in rows and in answers.
const (
	ReasonSoldOut   = "sold_out"  // no unit was left for a request that Redis did not know any more
	ReasonDuplicate = "duplicate" // the user's limit was used up
	ReasonExpired   = "expired"   // the reservation passed its hold before it could be placed
	ReasonUnknown   = "unknown_activity"
)

// Source is how an order came to be.
type Source int8

// The sources: the queue's message, the sweep (straight from the reservation), or the database's fallback quota.
const (
	FromQueue    Source = 0
	FromSweep    Source = 1
	FromFallback Source = 2
)

// Order is one row: for every request token that was reserved exactly one exists in the end.
type Order struct {
	No        ID    // snowflake, the user's shard in the low 10 bits
	Token     Token // unique within the user
	User      ID
	Activity  ID
	Commodity ID
	Title     string // the item's, when placed
	Quantity  int
	Price     Cents // of one unit, the reservation's
	State     OrderState
	Source    Source
	Reason    string
	Slots     []int // which of the user's slots it holds, one a unit; empty when not live
	CreatedAt Millis
	PayBy     Millis
	UpdatedAt Millis
	Announced bool // the outcome of this state has been written into Redis and published
}

// Amount is price times quantity.
func (o *Order) Amount() Cents { return o.Price * Cents(o.Quantity) }

// Outcome is the event that tells a buyer where a request token stands.
type Outcome struct {
	User    ID     `json:"userId"`
	Token   Token  `json:"requestToken"`
	Outcome Code   `json:"outcome"`
	OrderNo ID     `json:"orderNo,omitzero"`
	PayBy   Millis `json:"payBy,omitzero"`
	Reason  string `json:"reason,omitempty"`
	At      Millis `json:"at"`
}

// Outcome is what the order's buyer is told now.
func (o *Order) Outcome() Outcome {
	out := Outcome{User: o.User, Token: o.Token, Outcome: o.State.Outcome(), Reason: o.Reason, At: o.UpdatedAt}
	if o.State != StateFailed {
		out.OrderNo = o.No
	}
	if o.State == StatePending {
		out.PayBy = o.PayBy
	}
	return out
}
