package remoting

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Message is one stored message of a queue.
type Message struct {
	Offset     int64
	StoredAt   int64 // epoch milliseconds, the broker's clock
	Body       []byte
	Properties string // as on the wire, see [Message.Property]
}

// Names of properties.
const (
	PropertyKeys   = "KEYS"   // by which tools find a message
	PropertyReason = "REASON" // of a dead letter
)

const (
	nameEnd, pairEnd = "\x01", "\x02"

	bornHostV6   = 1 << 4 // bits of a message's system flag; a compressed body (1 << 0) is nothing of ours and stays as it is
	storeHostV6  = 1 << 5
	fixedToBorn  = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 // size, magic, crc, queue, flag, offset, physical offset, system flag, born time
	offsetAt     = 20                                // of the queue offset inside a message
	sysFlagAt    = 36
	reconsumeLen = 4
	preparedLen  = 8
)

// Property reads one property, "" where it is missing.
func (m *Message) Property(name string) string {
	for pair := range strings.SplitSeq(m.Properties, pairEnd) {
		if n, v, ok := strings.Cut(pair, nameEnd); ok && n == name {
			return v
		}
	}
	return ""
}

var errFormat = errors.New("a message of the broker cannot be read")

// Messages reads what a pull brought. The bodies lie in b.
func Messages(b []byte) ([]Message, error) {
	var out []Message
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errFormat
		}
		size := binary.BigEndian.Uint32(b)
		if size < fixedToBorn || uint64(size) > uint64(len(b)) {
			return nil, errFormat
		}
		m, err := readMessage(b[:size])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
		b = b[size:]
	}
	return out, nil
}

func readMessage(b []byte) (Message, error) {
	m := Message{Offset: int64(binary.BigEndian.Uint64(b[offsetAt:]))}
	flags := binary.BigEndian.Uint32(b[sysFlagAt:])
	r := reader{b: b[fixedToBorn:]}
	r.take(host(flags&bornHostV6 != 0))
	m.StoredAt = int64(binary.BigEndian.Uint64(r.take(8)))
	r.take(host(flags&storeHostV6 != 0) + reconsumeLen + preparedLen)
	m.Body = r.take(int(binary.BigEndian.Uint32(r.take(4))))
	r.take(int(r.take(1)[0])) // topic
	m.Properties = string(r.take(int(binary.BigEndian.Uint16(r.take(2)))))
	if r.failed {
		return Message{}, errFormat
	}
	return m, nil
}

func host(v6 bool) int {
	if v6 {
		return 16 + 4
	}
	return 4 + 4
}

// reader takes from the front; once it was asked for more than there is it gives zeros and has failed.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.b) {
		r.failed = true
		return make([]byte, 8) // enough for every number; lengths read from it are 0
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}
