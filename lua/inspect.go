package lua

import (
	"context"
	"encoding/json"
	"fmt"

	"floodgate/sale"
)

var inspectScript = verb("inspect")

// Inspect reads one moment's state of a cell. A cell that is not there is no error: its State has Opened false. The
// epoch, the catalog and the rest are filled as far as they are there, also where the stock is lost.
func (l *Ledger) Inspect(ctx context.Context, c Cell) (State, error) {
	if err := checkCell(c); err != nil {
		return State{}, err
	}
	reply, err := l.call(ctx, inspectScript, c)
	if err != nil {
		return State{}, err
	}
	v := reply.([]any)
	s := State{
		Opened: number(v[0]) == 1, Proven: number(v[1]) == 1, Recovering: number(v[2]) == 1, Status: sale.Status(v[3].(string)),
		Epoch: number(v[4]), Version: number(v[5]), LedgerID: v[7].(string), Now: sale.Millis(number(v[8])),
		Pending: number(v[9]), Reserved: number(v[10]), Remaining: map[sale.ID]int64{}, Rebuilding: number(v[12]) == 1,
	}
	if catalog := v[6].(string); catalog != "" {
		if err := json.Unmarshal([]byte(catalog), &s.Catalog); err != nil {
			return State{}, fmt.Errorf("cannot read the catalog of activity %s: %w", c.Activity, err)
		}
	}
	items := v[11].([]any)
	for i := 0; i+1 < len(items); i += 2 {
		id, err := sale.ParseID(items[i].(string))
		if err != nil {
			return State{}, fmt.Errorf("stock of activity %s has item %q: %w", c.Activity, items[i], err)
		}
		s.Remaining[id] = number(items[i+1])
	}
	return s, nil
}
