package e2e

import (
	"database/sql"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// shopOrigin is the one origin that the installation's pages have.
const shopOrigin = "https://shop.test"

// fieldCase is one way in which shops have failed in public, with the number that it has in the project's list.
type fieldCase struct {
	name string
	run  func(r *rig)
}

// atOnce is how many cases share the installation: more would measure the machine.
const atOnce = 5

// Cases that share the installation with others at the same time.
var together = []fieldCase{
	{"01 the last unit goes to one", case01},
	{"02 the whole stock and some", case02},
	{"05 one user against all", case05},
	{"07 limit against parallel requests", case07},
	{"14a the stock is gone in mid-sale", case14a},
	{"32 one token twenty times", case32},
	{"36 ids beyond 2^53", case36},
	{"37 the list stays within its bounds", case37},
	{"38 the window is an instant, not a local time", case38},
	{"42 one slot a cell", case42},
	{"46 only the token says who", case46},
	{"49 quantities", case49},
	{"50 what belongs to another", case50},
	{"51 pages of other origins", case51},
}

// Cases that hurt the installation, or measure it: one after the other.
var alone = []fieldCase{
	{"53 one of two hundred stops reading", case53},
	{"06 two tokens while the workers stand still", case06},
	{"08 Redis holds more than there is", case08},
	{"12 one order fails among others", case12},
	{"41 scripts are flushed in mid-sale", case41},
	{"09 Redis answers too late", case09},
	{"11 dead between the reservation and the queue", case11},
	{"14b everything is restarted", case14b},
}

// TestCases runs the cases from the field against the running system. All its processes live in New York.
func TestCases(t *testing.T) {
	root := newRig(t, "TZ=America/New_York", "FLOODGATE_EDGE_ALLOWED_ORIGINS="+shopOrigin)
	root.rdb = redis.NewClient(&redis.Options{Addr: root.stack.Var("FLOODGATE_REDIS_ADDRS")})
	defer root.rdb.Close()
	var err error
	if root.db, err = sql.Open("mysql", root.stack.Var("FLOODGATE_DB_DSN")); err != nil {
		t.Fatal(err)
	}
	defer root.db.Close()
	var all sync.WaitGroup
	turns := make(chan bool, atOnce)
	for _, c := range together { // not t.Parallel, which takes as many as there are cores: these mostly wait
		all.Go(func() {
			turns <- true
			t.Run(c.name, func(t *testing.T) { c.run(root.in(t)) })
			<-turns
		})
	}
	all.Wait()
	for _, c := range alone {
		t.Run(c.name, func(t *testing.T) { c.run(root.in(t)) })
	}
	root.noRaces()
}

// in is the same installation, used by another test.
func (r *rig) in(t *testing.T) *rig {
	c := *r
	c.t = t
	return &c
}
