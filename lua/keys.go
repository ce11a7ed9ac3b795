package lua

import (
	"strconv"

	"floodgate/sale"
)

// Names that are not of one cell. The channels carry JSON: one [sale.StockChange], and an array of [sale.Outcome].
const (
	StockChannel   = "seckill:stock"
	OutcomeChannel = "seckill:outcomes"
	ActivitiesKey  = "seckill:activities" // set of the activities that were opened and not dropped
)

// keys are the six keys of one cell in the order of every script's KEYS: meta stock buyers res pending ledger.
type keys [6]string

// Places in keys, for the few reads that need no script.
const (
	keyStock   = 1
	keyBuyers  = 2
	keyRes     = 3
	keyPending = 4
	keyLedger  = 5
)

// keysOf builds a cell's keys. They share the hash tag {activity.cell}, so that a script finds them all in one slot of
// a Redis Cluster and different activities spread over the slots.
func keysOf(c Cell) *keys {
	prefix := "seckill:{" + c.Activity.String() + "." + strconv.Itoa(c.Cell) + "}:"
	return &keys{prefix + "meta", prefix + "stock", prefix + "buyers", prefix + "res", prefix + "pending", prefix + "ledger"}
}

// cellOf is the only cell of an activity that has not been split.
func cellOf(a *sale.Activity) Cell { return Cell{Activity: a.ID} }
