// Package sale holds the words that every part of Floodgate shares: activity, item, request token, reservation,
// order, outcome and message. It knows no network, no database and no library: one purchase is the same thing in the
// edge, in Redis, in the queue, in MySQL and on the buyer's screen because all of them spell it with this package.
//
// One purchase in one direction: the edge admits a buyer and reserves a unit ([Reservation], under a [Token]), enqueues
// a [Message], a worker places an [Order], commits the reservation and announces its [Outcome].
package sale

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ID is the number of a user, activity, commodity or order: 1..2^63-1, a decimal string wherever it leaves the process,
// because JavaScript's and Lua's numbers end at 2^53.
type ID int64

// ErrID says that a text is not an id: decimal digits, no sign, no leading zero, 1..9223372036854775807.
var ErrID = errors.New("not an id: want a decimal number from 1 to 9223372036854775807 without sign or leading zeros")

// ParseID reads an id; "007", "1e3", "-1", "0" and 9223372036854775808 are refused with [ErrID]. It allocates nothing.
func ParseID[T string | []byte](text T) (ID, error) {
	if len(text) == 0 || len(text) > 19 || text[0] == '0' {
		return 0, ErrID
	}
	var n uint64
	for i := 0; i < len(text); i++ {
		d := text[i] - '0'
		if d > 9 {
			return 0, ErrID
		}
		n = n*10 + uint64(d)
	}
	if n > 1<<63-1 {
		return 0, ErrID
	}
	return ID(n), nil
}

// String is the id in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalJSON writes the id as a decimal string.
func (id ID) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, id.String()), nil }

// UnmarshalJSON reads a decimal string; a bare number is refused, since it may have been rounded on its way.
func (id *ID) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return ErrID
	}
	v, err := ParseID(b[1 : len(b)-1])
	*id = v
	return err
}

// Cents is money in hundredths of the currency's unit; text and JSON have exactly two decimals ("99.00").
type Cents int64

// MaxPrice is the highest price of one unit, 10^8.00: with [MaxQuantity] units an amount still fits in int64.
const MaxPrice Cents = 100_000_000_00

// ErrCents says that a text is not money in the contract's form.
var ErrCents = errors.New(`not an amount: want digits, a point and two decimals, like "99.00"`)

// ParseCents reads money in the one form of the contract: "59.97"; "59.970", "59.9", "5997", "+1.00" and "01.00" are refused.
func ParseCents(text string) (Cents, error) {
	n := len(text)
	if n < 4 || n > 18 || text[n-3] != '.' || (text[0] == '0' && n > 4) {
		return 0, ErrCents
	}
	var v int64
	for i := range n {
		if i == n-3 {
			continue
		}
		d := text[i] - '0'
		if d > 9 {
			return 0, ErrCents
		}
		v = v*10 + int64(d)
	}
	return Cents(v), nil
}

// String is the amount with two decimals.
func (c Cents) String() string {
	sign, v := "", int64(c)
	if v < 0 {
		sign, v = "-", -v
	}
	return fmt.Sprintf("%s%d.%02d", sign, v/100, v%100)
}

// MarshalJSON writes the amount as a string with two decimals.
func (c Cents) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, c.String()), nil }

// UnmarshalJSON reads a string in the contract's form; a bare number is refused.
func (c *Cents) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return ErrCents
	}
	v, err := ParseCents(string(b[1 : len(b)-1]))
	*c = v
	return err
}

// Millis is an instant in epoch milliseconds, as every time is outside this process. Zero means "none".
type Millis int64

// At turns a time into epoch milliseconds.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time is the instant in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }
