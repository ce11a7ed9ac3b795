package lua

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"floodgate/sale"
)

// ErrArgument says that a call was refused before Redis saw it: a text outside its alphabet, a number out of range, a
// batch too large. Scripts validate nothing, so that what is `|`- and `,`-joined there must be clean here.
var ErrArgument = errors.New("not a valid call of the ledger")

const maxText = 64 // longest token, operation id and reason: a request token has 59 characters

// clean says that a text is of the alphabet of request tokens, which has neither `|` nor `,` nor `!`.
func clean[T ~string](text T) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(text) <= maxText
}

// checkUnit refuses a request that no script may see.
func checkUnit(t sale.Token, user, commodity sale.ID, quantity int) error {
	switch {
	case t == "" || !clean(t):
		return fmt.Errorf("%w: token %.80q", ErrArgument, string(t))
	case user <= 0 || commodity <= 0:
		return fmt.Errorf("%w: user %d, commodity %d", ErrArgument, user, commodity)
	case quantity < 1 || quantity > sale.MaxQuantity:
		return fmt.Errorf("%w: quantity %d, want 1 to %d", ErrArgument, quantity, sale.MaxQuantity)
	}
	return nil
}

func checkPrice(p sale.Cents) error {
	if p < 0 || p > sale.MaxPrice {
		return fmt.Errorf("%w: price %d cents", ErrArgument, int64(p))
	}
	return nil
}

func checkCell(c Cell) error {
	if c.Activity <= 0 || c.Cell < 0 {
		return fmt.Errorf("%w: cell %d.%d", ErrArgument, c.Activity, c.Cell)
	}
	return nil
}

func checkSize(n, most int) error {
	if n > most {
		return fmt.Errorf("%w: %d in one call, want at most %d", ErrArgument, n, most)
	}
	return nil
}

// pack writes a reservation as Redis keeps it; the token is the field's name and not in it.
func pack(r *sale.Reservation) string {
	b := make([]byte, 0, 160)
	b = append(b, byte(r.State), '|')
	for _, n := range []int64{int64(r.User), int64(r.Commodity), int64(r.Quantity), int64(r.Price)} {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, '|')
	}
	for i, slot := range r.Slots {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(slot), 10)
	}
	b = append(b, '|')
	b = strconv.AppendInt(b, int64(r.ReservedAt), 10)
	b = append(b, '|')
	return string(appendTail(b, r.OrderNo, r.Outcome, r.Reason, r.PayBy, r.SettledAt))
}

// appendTail writes the part of a record that commit and release replace.
func appendTail(b []byte, no sale.ID, outcome sale.Code, reason string, payBy, at sale.Millis) []byte {
	b = strconv.AppendInt(b, int64(no), 10)
	b = append(b, '|')
	b = append(b, outcome...)
	b = append(b, '|')
	b = append(b, reason...)
	b = append(b, '|')
	b = strconv.AppendInt(b, int64(payBy), 10)
	b = append(b, '|')
	return strconv.AppendInt(b, int64(at), 10)
}

// recordReader takes a record apart field by field and keeps the first fault.
type recordReader struct {
	rest string
	err  error
}

func (r *recordReader) next() string {
	field, rest, _ := strings.Cut(r.rest, "|")
	r.rest = rest
	return field
}

func (r *recordReader) number() int64 {
	n, err := strconv.ParseInt(r.next(), 10, 64)
	r.err = errors.Join(r.err, err)
	return n
}

func (r *recordReader) slots() []int {
	list := r.next()
	if list == "" {
		return nil
	}
	slots := make([]int, 0, 1+strings.Count(list, ","))
	for slot := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(slot)
		r.err = errors.Join(r.err, err)
		slots = append(slots, n)
	}
	return slots
}

// unpack reads a record. One that cannot be read was not written by this package, which is an error and not a panic:
// Redis's data comes from disk and from operators' hands too.
func unpack(token sale.Token, record string) (sale.Reservation, error) {
	if strings.Count(record, "|") != 11 {
		return sale.Reservation{}, fmt.Errorf("the record of token %s is broken: %.200q", token, record)
	}
	r := recordReader{rest: record}
	state := r.next()
	out := sale.Reservation{Token: token, User: sale.ID(r.number()), Commodity: sale.ID(r.number()), Quantity: int(r.number()),
		Price: sale.Cents(r.number()), Slots: r.slots(), ReservedAt: sale.Millis(r.number()), OrderNo: sale.ID(r.number()),
		Outcome: sale.Code(r.next()), Reason: r.next(), PayBy: sale.Millis(r.number()), SettledAt: sale.Millis(r.number())}
	if r.err != nil || (state != "O" && state != "C" && state != "R") {
		return sale.Reservation{}, fmt.Errorf("the record of token %s is broken: %.200q", token, record)
	}
	out.State = sale.ReservationState(state[0])
	return out, nil
}

// unpackPairs reads a reply of token, record, token, record.
func unpackPairs(reply any) ([]sale.Reservation, error) {
	list := reply.([]any)
	out := make([]sale.Reservation, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		r, err := unpack(sale.Token(list[i].(string)), list[i+1].(string))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// number reads an integer of a reply, sent as integer or as text. Scripts send nothing else, so that another form panics.
func number(reply any) int64 {
	if n, ok := reply.(int64); ok {
		return n
	}
	n, err := strconv.ParseInt(reply.(string), 10, 64)
	if err != nil {
		panic("lua: a script answered " + err.Error())
	}
	return n
}

// eachCode calls f with each of the codes that a script joined by ' '.
func (s *script) eachCode(list string, f func(i int, c Code)) {
	i := 0
	for text := range strings.SplitSeq(list, " ") {
		f(i, s.code(number(text)))
		i++
	}
}

// tokens reads a `,`-joined list; empty places stay.
func tokens(list string) []sale.Token {
	if list == "" {
		return nil
	}
	out := make([]sale.Token, 0, 1+strings.Count(list, ","))
	for t := range strings.SplitSeq(list, ",") {
		out = append(out, sale.Token(t))
	}
	return out
}
