package sql

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

// What the cutter does with the next COMMIT.
const (
	cutAfter  = "the COMMIT arrives, its answer is lost"
	cutBefore = "the COMMIT is lost"
	cutLate   = "the COMMIT arrives after the rows were given again"
)

// cutter stands between the store and MariaDB and breaks the connection of one COMMIT.
type cutter struct {
	net.Listener
	server string
	wg     sync.WaitGroup
	mu     sync.Mutex
	mode   string   // of the next COMMIT; empty: let it pass
	late   net.Conn // the server's side of a cut connection whose COMMIT is still under way
	cuts   int
}

func newCutter(t testing.TB, server string) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	c := &cutter{Listener: l, server: server}
	c.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.carry(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		if c.late != nil { // the COMMIT was never asked for: let its connection go
			c.late.Close()
		}
		c.mu.Unlock()
		c.wg.Wait()
	})
	return c
}

// carry copies both ways until one side closes.
func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() { _, _ = io.Copy(client, server); client.Close() })
	defer answers.Wait()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil || c.cut(buf[:n], client, server) {
			break
		}
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != server {
		server.Close()
	}
}

// cut says whether the connection ends with this packet. The client is closed first: whatever the server still answers is lost.
func (c *cutter) cut(packet []byte, client, server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil && bytes.Contains(packet, []byte("FOR UPDATE")) {
		_, _ = c.late.Write([]byte("\x07\x00\x00\x00\x03COMMIT"))
		c.late.(*net.TCPConn).CloseWrite() // the server reads the COMMIT, then the end
		c.late = nil
		return false
	}
	if c.mode == "" || !bytes.Contains(packet, []byte("COMMIT")) || bytes.Contains(packet, []byte("COMMITTED")) {
		return false
	}
	client.Close()
	switch c.mode {
	case cutAfter:
		_, _ = server.Write(packet)
		server.(*net.TCPConn).CloseWrite()
	case cutLate:
		c.late = server
	}
	c.mode = ""
	c.cuts++
	return true
}

func TestUnknownCommitIsReadBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{cutAfter, cutBefore, cutLate} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn, err := mysql.ParseDSN(stacktest.MySQL(t))
			ok(t, err)
			direct := open(t, Config{Driver: MySQL, DSN: dsn.FormatDSN()})
			must(direct.Migrate(t.Context(), "up"))(t)
			b := newBook(t, direct, 10, 0)

			c := newCutter(t, dsn.Addr)
			dsn.Addr = c.Addr().String()
			s := open(t, Config{Driver: MySQL, DSN: dsn.FormatDSN()})
			one, two := b.order(1, 0), failed(b.order(2, 0), sale.ReasonExpired)
			c.mu.Lock()
			c.mode = mode
			c.mu.Unlock()
			want(t, b.place(t, s, 1, one, two), []sale.Order{one, two}, nil, nil, nil, nil)
			if sum := b.sums(t, direct); sum.Sold != 1 || c.cuts != 1 {
				t.Errorf("sold %d after %d cuts, want 1 and 1", sum.Sold, c.cuts)
			}
		})
	}
}

func TestKilledConnectionWritesNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t, MySQL)
	b := newBook(t, s, 10, 0)
	tx := s.db.WithContext(t.Context()).Begin()
	var id int64
	ok(t, tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
	ok(t, insertOrders(tx, []sale.Order{b.order(1, 0)}))
	must(exec(s.db.WithContext(t.Context()), "KILL ?", id))(t)
	if err := tx.Commit().Error; err == nil || isTransient(err) {
		t.Errorf("got %v, want a broken connection", err)
	}
	if sum := b.sums(t, s); sum.Sold != 0 {
		t.Errorf("sold %d", sum.Sold)
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		o := b.order(1, 0)
		b.place(t, s, 1, o)
		sameToken, sameSlot := o, b.order(1, 0)
		sameToken.No = nextNo()
		for name, rows := range map[string][]sale.Order{"number": {o}, "token": {sameToken}, "slot": {sameSlot}} {
			err := insertOrders(s.db.WithContext(t.Context()), rows)
			if !isDuplicate(err) || isTransient(err) {
				t.Errorf("%s: %v is not seen as a duplicate", name, err)
			}
			must(exec(s.db.WithContext(t.Context()), "DELETE FROM orders WHERE order_no = ?", sameSlot.No))(t)
		}
		if isDuplicate(errors.New("1062")) || isTransient(nil) {
			t.Error("something else is taken for a database's error")
		}
	})
}
