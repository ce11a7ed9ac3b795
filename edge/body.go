package edge

import (
	"bytes"

	"github.com/go-json-experiment/json"
)

// parseOrder reads {"requestToken":"…","quantity":n} and nothing else: an unknown field, a field twice, a missing field, an
// escape in a text, anything behind the object, or a quantity that is not a plain whole number from 1 to 999 is refused.
// It is written by hand because every attempt to buy that is not refused by its path passes here. The token is a part of
// body.
func parseOrder(body []byte) (token []byte, quantity int, ok bool) {
	s := scan{rest: body}
	if !s.take('{') {
		return nil, 0, false
	}
	for {
		name, good := s.text()
		if !good || !s.take(':') {
			return nil, 0, false
		}
		switch {
		case string(name) == "requestToken" && token == nil:
			token, good = s.text()
		case string(name) == "quantity" && quantity == 0:
			quantity, good = s.count()
		default:
			return nil, 0, false
		}
		if !good {
			return nil, 0, false
		}
		if !s.take(',') {
			break
		}
	}
	return token, quantity, s.take('}') && s.end() && len(token) > 0 && quantity > 0
}

// scan walks over JSON.
type scan struct{ rest []byte }

func (s *scan) space() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\t' || s.rest[0] == '\r') {
		s.rest = s.rest[1:]
	}
}

func (s *scan) end() bool {
	s.space()
	return len(s.rest) == 0
}

func (s *scan) take(b byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a string of plain ASCII without escapes: names and tokens have no others.
func (s *scan) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	n := bytes.IndexByte(s.rest, '"')
	if n < 0 {
		return nil, false
	}
	text := s.rest[:n:n]
	for _, b := range text {
		if b < ' ' || b > '~' || b == '\\' {
			return nil, false
		}
	}
	s.rest = s.rest[n+1:]
	return text, true
}

// count reads 1..999 written as plain digits: no sign, point, exponent or leading zero. No limit is above 100.
func (s *scan) count() (int, bool) {
	s.space()
	n, i := 0, 0
	for i < len(s.rest) && s.rest[i] >= '0' && s.rest[i] <= '9' && i < 4 {
		n = n*10 + int(s.rest[i]-'0')
		i++
	}
	if i == 0 || i == 4 || s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[i:]
	return n, true // what follows must be a comma or the end, so 1.5 and 1e3 fail there
}

// readBody reads a small JSON object strictly (an unknown field or a field twice is refused); no body means all defaults.
func readBody(body []byte, into any) bool {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return true
	}
	return body[0] == '{' && json.Unmarshal(body, into, json.RejectUnknownMembers(true)) == nil
}
