package worker

import (
	"context"
	"slices"

	"floodgate/lua"
	"floodgate/sale"
)

// job is a set of claims of one cell that somebody waits for: a queue's batch, or what the sweep found due.
type job struct {
	cell   lua.Cell
	source sale.Source
	expire bool // tombstones: past their hold, so they end as failed rows instead of orders
	claims []lua.ClaimRequest
	given  context.Context // of whoever waits; nothing is begun for one who has gone
	done   chan error      // buffered by one
}

// submit hands claims to the placers and waits until each token has its row, or for the reason why not. At most
// lua.MaxBatch claims a job; the channel holds as many jobs as there are submitters, so nothing grows without a bound.
func (w *Worker) submit(ctx context.Context, j *job) error {
	j.given, j.done = ctx, make(chan error, 1)
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-w.stopped: // the placers are gone
		return context.Canceled
	}
}

// submitAll has claims of one kind placed, a full call at a time.
func (w *Worker) submitAll(ctx context.Context, k kindOf, claims []lua.ClaimRequest) error {
	for part := range slices.Chunk(claims, lua.MaxBatch) {
		if err := w.submit(ctx, &job{cell: k.cell, source: k.source, expire: k.expire, claims: part}); err != nil {
			return err
		}
	}
	return nil
}

// runPlacer is one placer: it takes whoever waits along (group commit) up to lua.MaxBatch claims, and places them cell by cell. Two
// of them keep Redis and the database busy at once; more would gather less and queue up at the item's row.
func (w *Worker) runPlacer(ctx context.Context) error {
	var held *job
	for {
		j := held
		if held = nil; j == nil {
			select {
			case j = <-w.jobs:
			case <-ctx.Done():
				return nil
			}
		}
		var gathered []*job
		gathered, held = w.gather(j)
		// What is in hand is finished even when the process is stopping, within the time of the stop.
		w.placeAll(context.WithoutCancel(ctx), gathered)
	}
}

// gather takes waiting jobs along with the first until a call is full; a job that does not fit any more is held for the next turn.
func (w *Worker) gather(first *job) (jobs []*job, held *job) {
	jobs, n := []*job{first}, len(first.claims)
	for {
		select {
		case j := <-w.jobs:
			if n += len(j.claims); n > lua.MaxBatch {
				return jobs, j
			}
			jobs = append(jobs, j)
		default:
			return jobs, nil
		}
	}
}

// kindOf is what jobs must have in common to be placed in one call.
type kindOf struct {
	cell   lua.Cell
	source sale.Source
	expire bool
}

// placeAll merges jobs of one kind into one placing and answers each. One activity's failure is not another's.
func (w *Worker) placeAll(ctx context.Context, jobs []*job) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.PlaceTimeout)
	defer cancel()
	groups := map[kindOf][]*job{}
	for _, j := range jobs {
		// A stop would otherwise last for every batch that waits behind a database that does not answer.
		if err := j.given.Err(); err != nil {
			j.done <- err
			continue
		}
		k := kindOf{j.cell, j.source, j.expire}
		groups[k] = append(groups[k], j)
	}
	for k, group := range groups {
		merged := &job{cell: k.cell, source: k.source, expire: k.expire}
		for _, j := range group {
			merged.claims = append(merged.claims, j.claims...)
		}
		w.metrics.batch.Observe(float64(len(merged.claims)))
		err := w.place(ctx, merged)
		for _, j := range group {
			j.done <- err
		}
	}
}
