package sale

// ReservationState is the state of a reservation in Redis; the letter is the one in the packed record.
type ReservationState byte

// The states of a reservation.
const (
	Occupied  ReservationState = 'O'
	Committed ReservationState = 'C'
	Released  ReservationState = 'R'
)

// Name is the word of the contract: occupied, committed, released.
func (s ReservationState) Name() string {
	switch s {
	case Occupied:
		return "occupied"
	case Committed:
		return "committed"
	case Released:
		return "released"
	}
	panic("sale: unknown reservation state " + string(rune(s)))
}

// Reservation is a unit (or several) taken in Redis under a request token.
type Reservation struct {
	Token      Token
	State      ReservationState
	User       ID
	Commodity  ID
	Quantity   int
	Price      Cents
	Slots      []int  // the user's slots it holds, 0-based, one a unit
	ReservedAt Millis // Redis's clock
	OrderNo    ID     // 0 until committed
	Outcome    Code   // Accepted until committed or released
	Reason     string
	PayBy      Millis
	SettledAt  Millis // when it was last committed or released
}

// Event is what the reservation's buyer is told now.
func (r *Reservation) Event() Outcome {
	at := r.SettledAt
	if at == 0 {
		at = r.ReservedAt
	}
	return Outcome{User: r.User, Token: r.Token, Outcome: r.Outcome, OrderNo: r.OrderNo, PayBy: r.PayBy, Reason: r.Reason, At: at}
}

// StockChange is published when an item's remaining units reach 0, leave 0, or change by an operator's hand.
// Edges compare (Epoch, Version), in this order: a lost Redis starts its versions again, under a higher epoch.
type StockChange struct {
	Activity  ID    `json:"activity"`
	Cell      int   `json:"cell"`
	Commodity ID    `json:"commodity"`
	Epoch     int64 `json:"epoch"`
	Version   int64 `json:"version"`
	Remaining int64 `json:"remaining"`
}
