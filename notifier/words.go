package notifier

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/sale"
)

// Bounds of a client's message in bytes: the first one may carry the longest token that identity reads.
const (
	maxMessage      = 1024
	maxFirstMessage = identity.MaxToken + 64
)

// request is what a client may say: auth with a token, watch with a request token, subscribe with an activity.
type request struct {
	Type         string     `json:"type"`
	Token        string     `json:"token"`
	RequestToken sale.Token `json:"requestToken"`
	ActivityID   sale.ID    `json:"activityId"`
}

var errBadMessage = errors.New("bad message")

// readRequest is strict: one JSON object, no unknown field, no field of another type of message, nothing behind it.
func readRequest(b []byte) (request, error) {
	var r request
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return request{}, errBadMessage
	}
	if _, err := d.Token(); err != io.EOF {
		return request{}, errBadMessage
	}
	want := request{Type: r.Type}
	switch r.Type {
	case "auth":
		want.Token = r.Token
	case "watch":
		want.RequestToken = r.RequestToken
	case "subscribe":
		want.ActivityID = r.ActivityID
	}
	if r != want || want == (request{Type: r.Type}) {
		return request{}, errBadMessage
	}
	return r, nil
}

// message is one frame, encoded once and shared by all connections that are sent it.
type message struct {
	data []byte
	kind string      // metric label
	at   sale.Millis // when what was pushed happened; 0: not to be measured
}

func encode(kind string, v any) *message {
	data, err := json.Marshal(v)
	if err != nil {
		panic("notifier: cannot encode " + kind + ": " + err.Error()) // all fields are plain
	}
	return &message{data: data, kind: kind}
}

func readyMessage(user sale.ID, now sale.Millis) *message {
	return encode("ready", struct {
		Type string      `json:"type"`
		Now  sale.Millis `json:"now"`
		User sale.ID     `json:"userId"`
	}{"ready", now, user})
}

func outcomeMessage(o *sale.Outcome) *message {
	return encode("outcome", struct {
		Type    string      `json:"type"`
		Token   sale.Token  `json:"requestToken"`
		Outcome sale.Code   `json:"outcome"`
		OrderNo sale.ID     `json:"orderNo,omitzero"`
		PayBy   sale.Millis `json:"payBy,omitzero"`
		Reason  string      `json:"reason,omitempty"`
		At      sale.Millis `json:"at"`
	}{"outcome", o.Token, o.Outcome, o.OrderNo, o.PayBy, o.Reason, o.At})
}

type stockItem struct {
	Commodity sale.ID `json:"commodityId"`
	Remaining int64   `json:"remaining"`
	SoldOut   bool    `json:"soldOut"`
	Version   int64   `json:"version"`
}

func stockMessage(activity sale.ID, s *lua.State, at sale.Millis) *message {
	items := make([]stockItem, 0, len(s.Remaining))
	for _, c := range slices.Sorted(maps.Keys(s.Remaining)) {
		left := max(s.Remaining[c], 0)
		items = append(items, stockItem{c, left, left == 0, s.Version})
	}
	return encode("stock", struct {
		Type     string      `json:"type"`
		Activity sale.ID     `json:"activityId"`
		Items    []stockItem `json:"items"`
		At       sale.Millis `json:"at"`
	}{"stock", activity, items, at})
}

// refusal is an error that leaves the connection open; it names what it is about.
type refusal struct {
	Type     string     `json:"type"`
	Code     sale.Code  `json:"code"`
	Message  string     `json:"message,omitempty"`
	Token    sale.Token `json:"requestToken,omitempty"`
	Activity sale.ID    `json:"activityId,omitzero"`
}

func errorMessage(r refusal) *message {
	r.Type = "error"
	return encode("error", r)
}
