package sale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MessageVersion is the only version of the order message so far.
const MessageVersion = 1

// MaxMessage is the most bytes an order message has at the widest ids.
const MaxMessage = 400

// Message is the promise of one accepted purchase on its way to a worker: everything that placing needs, nothing else.
// The stockPayToken of the wire is the request token under its second name.
type Message struct {
	Token     Token
	User      ID
	Activity  ID
	Commodity ID
	Price     Cents // of one unit, the reservation's
	Quantity  int
	At        Millis // when it was reserved
	LedgerID  string // the newest ledger id its edge had seen: a Redis that lacks it has lost something
}

type wire struct {
	Version       int    `json:"version"`
	RequestToken  Token  `json:"requestToken"`
	UserID        ID     `json:"userId"`
	ActivityID    ID     `json:"activityId"`
	CommodityID   ID     `json:"commodityId"`
	SeckillPrice  Cents  `json:"seckillPrice"`
	Quantity      int    `json:"quantity"`
	StockPayToken Token  `json:"stockPayToken"`
	Timestamp     Millis `json:"timestamp"`
	LedgerID      string `json:"ledgerId"`
}

// ErrMessage says that a message cannot be read or has an unknown version: it belongs among the dead letters.
var ErrMessage = errors.New("unreadable order message")

// Append writes the message as JSON behind dst. It cannot fail: every field's text is plain.
func (m *Message) Append(dst []byte) []byte {
	dst = append(dst, `{"version":1,"requestToken":"`...)
	dst = append(dst, m.Token...)
	dst = append(dst, `","userId":"`...)
	dst = strconv.AppendInt(dst, int64(m.User), 10)
	dst = append(dst, `","activityId":"`...)
	dst = strconv.AppendInt(dst, int64(m.Activity), 10)
	dst = append(dst, `","commodityId":"`...)
	dst = strconv.AppendInt(dst, int64(m.Commodity), 10)
	dst = append(dst, `","seckillPrice":"`...)
	dst = append(dst, m.Price.String()...)
	dst = append(dst, `","quantity":`...)
	dst = strconv.AppendInt(dst, int64(m.Quantity), 10)
	dst = append(dst, `,"stockPayToken":"`...)
	dst = append(dst, m.Token...)
	dst = append(dst, `","timestamp":`...)
	dst = strconv.AppendInt(dst, int64(m.At), 10)
	dst = append(dst, `,"ledgerId":"`...)
	dst = append(dst, m.LedgerID...)
	return append(dst, `"}`...)
}

// ReadMessage reads and checks a message; every error wraps [ErrMessage] and says what is wrong.
func ReadMessage(b []byte) (Message, error) {
	var w wire
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	claims, err := w.RequestToken.Peek()
	switch {
	case w.Version != MessageVersion:
		return Message{}, fmt.Errorf("%w: version %d, want %d", ErrMessage, w.Version, MessageVersion)
	case err != nil:
		return Message{}, fmt.Errorf("%w: requestToken: %w", ErrMessage, err)
	case w.StockPayToken != w.RequestToken:
		return Message{}, fmt.Errorf("%w: stockPayToken differs from requestToken", ErrMessage)
	case claims.User != w.UserID || claims.Activity != w.ActivityID:
		return Message{}, fmt.Errorf("%w: the request token is bound to another user or activity", ErrMessage)
	case w.CommodityID <= 0 || w.SeckillPrice < 0 || w.SeckillPrice > MaxPrice:
		return Message{}, fmt.Errorf("%w: commodityId or seckillPrice out of range", ErrMessage)
	case w.Quantity < 1 || w.Quantity > MaxQuantity || w.Timestamp <= 0:
		return Message{}, fmt.Errorf("%w: quantity or timestamp out of range", ErrMessage)
	}
	return Message{Token: w.RequestToken, User: w.UserID, Activity: w.ActivityID, Commodity: w.CommodityID,
		Price: w.SeckillPrice, Quantity: w.Quantity, At: w.Timestamp, LedgerID: w.LedgerID}, nil
}
