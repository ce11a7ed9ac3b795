// Package stacktest hands tests the real parts that deploy/stack started: addresses of the shared stack, with a
// database and topics of each test's own, and private stacks for tests that kill a part.
//
// Where the stack is missing a test fails and says how to start it; it is never skipped. All functions may be called
// by parallel tests. Variables come from the process's environment or, where they are not set there, from the file
// env in $FLOODGATE_STACK_DIR (default: .stack beside go.mod).
package stacktest

import (
	"crypto/rand"
	"database/sql"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const missing = "no test stack: run `deploy/stack up` first (make test does)"

// Redis returns the address, host:port, of a Redis that answers. Its keys are everybody's: use ids of your own.
func Redis(t testing.TB) string {
	t.Helper()
	return answering(t, variable(t, "FLOODGATE_REDIS_ADDRS"))
}

// NameServer returns the address, ip:port, of RocketMQ's name server.
func NameServer(t testing.TB) string {
	t.Helper()
	return answering(t, variable(t, "FLOODGATE_MQ_NAMESERVERS"))
}

// Dir returns the absolute folder of the shared stack.
func Dir(t testing.TB) string {
	t.Helper()
	return variable(t, "FLOODGATE_STACK_DIR")
}

// MySQL makes an empty database with a name nobody else has and returns the DSN to it. The database is dropped when
// the test ends: close your connections before that.
func MySQL(t testing.TB) string {
	t.Helper()
	root := config(t, "FLOODGATE_TEST_ROOT_DSN")
	// Below the DSN's 10 s read timeout, so that a transaction which a test left open is named in the error.
	root.Params["lock_wait_timeout"] = "8"
	answering(t, root.Addr)
	user := config(t, "FLOODGATE_DB_DSN")
	user.DBName = "floodgate_test_" + unique()
	execute(t, root, "CREATE DATABASE "+user.DBName+" CHARACTER SET utf8mb4")
	t.Cleanup(func() { execute(t, root, "DROP DATABASE "+user.DBName) })
	return user.FormatDSN()
}

func config(t testing.TB, name string) *mysql.Config {
	t.Helper()
	c, err := mysql.ParseDSN(variable(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	return c
}

// execute runs one statement on a connection of its own: a pool kept between tests would be found by leak checks.
func execute(t testing.TB, c *mysql.Config, statement string) {
	t.Helper()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatalf("cannot reach MariaDB: %v", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// answering fails the test at once where nothing listens, instead of in some client's retries.
func answering(t testing.TB, addr string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		t.Fatalf("%s (%v)", missing, err)
	}
	c.Close()
	return addr
}

// unique returns 16 lower-case letters and digits that no other test has.
func unique() string { return strings.ToLower(rand.Text()[:16]) }
