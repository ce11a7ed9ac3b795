package mq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"floodgate/mq/remoting"
	"floodgate/sale"
)

// RocketAdmin tells how far RocketMQ's queues go and keeps its dead letters. Every call asks the brokers. Safe for concurrent use.
type RocketAdmin struct {
	cfg     Config
	cluster *cluster
	dead    *deadStore
	metrics *metrics
}

var (
	_ Backlog     = (*RocketAdmin)(nil)
	_ DeadLetters = (*RocketAdmin)(nil)
)

// NewRocketAdmin connects to nothing before the first call. Close it.
func NewRocketAdmin(cfg Config, _ *slog.Logger, opts ...Option) (*RocketAdmin, error) {
	cfg.fill()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, c := newMetrics(apply(opts).registry, "rocketmq"), newCluster(cfg)
	return &RocketAdmin{cfg: cfg, cluster: c, metrics: m, dead: newDeadStore(cfg)}, nil
}

// Close ends all connections.
func (a *RocketAdmin) Close() error { a.dead.close(); a.cluster.close(); return nil }

// Ends reads the end of every readable queue from its broker, which counts a message some milliseconds after it has acknowledged it: the
// newest may be missing, as if they were sent a moment later. A broker that is away is an error, never an end.
func (a *RocketAdmin) Ends(ctx context.Context) ([]Position, error) {
	queues, err := a.cluster.look(ctx, a.cfg.Topic)
	if err != nil {
		return nil, fmt.Errorf("cannot read the ends of %s: %w", a.cfg.Topic, err)
	}
	var ends []Position
	for _, q := range queues {
		if !q.read {
			continue
		}
		next, err := a.cluster.offset(ctx, q, remoting.MaxOffset, "", 0)
		if err != nil {
			return nil, fmt.Errorf("cannot read the end of queue %s: %w", q.name(), err)
		}
		ends = append(ends, Position{Queue: q.name(), Next: next})
	}
	return ends, nil
}

// Parked counts what lies in the retry topic before the group's place there. Nothing of ours ever sends there.
func (a *RocketAdmin) Parked(ctx context.Context) (int64, error) {
	queues, err := a.cluster.ask(ctx, "%RETRY%"+a.cfg.Group)
	if errors.Is(err, errNoRoute) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the retry topic: %w", err)
	}
	var parked int64
	for _, q := range queues {
		end, err := a.cluster.offset(ctx, q, remoting.MaxOffset, "", 0)
		if err != nil {
			return 0, fmt.Errorf("cannot read the retry topic: %w", err)
		}
		begin, err := a.cluster.offset(ctx, q, remoting.QueryOffset, a.cfg.Group, 0)
		if err != nil {
			return 0, fmt.Errorf("cannot read the retry topic: %w", err)
		}
		parked += max(0, end-begin)
	}
	return parked, nil
}

// Add puts a message aside for good; it returns when the broker has it on disk.
func (a *RocketAdmin) Add(ctx context.Context, m sale.Message, reason string) error {
	if err := a.dead.letter(ctx, entry{body: m.Append(nil), key: string(m.Token), reason: reason}); err != nil {
		return fmt.Errorf("cannot put a message aside: %w", err)
	}
	a.metrics.dead.Inc()
	return nil
}

// List reads the tails of the dead-letter topic's queues.
func (a *RocketAdmin) List(ctx context.Context, limit int) ([]DeadLetter, error) {
	if limit < 1 || limit > maxLetters {
		return nil, fmt.Errorf("cannot list %d dead letters: want 1 to %d", limit, maxLetters)
	}
	queues, err := a.cluster.look(ctx, a.cfg.Topic+deadSuffix)
	if err != nil {
		return nil, fmt.Errorf("cannot list dead letters: %w", err)
	}
	var all []DeadLetter
	for _, q := range queues {
		tail, err := a.tail(ctx, q, limit)
		if err != nil {
			return nil, fmt.Errorf("cannot list the dead letters of queue %s: %w", q.name(), err)
		}
		all = append(all, tail...)
	}
	slices.SortStableFunc(all, func(x, y DeadLetter) int { return cmp.Compare(y.At, x.At) })
	return all[:min(limit, len(all))], nil
}

// tail reads the newest letters of one queue, newest first.
func (a *RocketAdmin) tail(ctx context.Context, q queue, limit int) ([]DeadLetter, error) {
	end, err := a.cluster.offset(ctx, q, remoting.MaxOffset, "", 0)
	if err != nil {
		return nil, err
	}
	begin, err := a.cluster.offset(ctx, q, remoting.MinOffset, "", 0)
	if err != nil {
		return nil, err
	}
	var found []DeadLetter
	for at := max(begin, end-int64(limit)); at < end; {
		got, err := a.cluster.pull(ctx, a.cfg.Group, q, at, limit, false)
		if err != nil {
			return nil, err
		}
		if got.next <= at {
			break // gone meanwhile
		}
		for _, m := range got.messages {
			found = append(found, DeadLetter{ID: q.name() + ":" + strconv.FormatInt(m.Offset, 10), Body: string(m.Body),
				Reason: m.Property(remoting.PropertyReason), At: sale.Millis(m.StoredAt)})
		}
		at = got.next
	}
	slices.Reverse(found)
	return found, nil
}

// Replay sends the letter's body to the order topic again; the letter stays listed.
func (a *RocketAdmin) Replay(ctx context.Context, id string) error {
	m, err := a.find(ctx, id)
	if err != nil {
		return err
	}
	if err := a.dead.order(ctx, entry{body: m.Body, key: m.Property(remoting.PropertyKeys)}); err != nil {
		return fmt.Errorf("cannot replay dead letter %s: %w", id, err)
	}
	return nil
}

func (a *RocketAdmin) find(ctx context.Context, id string) (remoting.Message, error) {
	cut := max(0, strings.LastIndexByte(id, ':'))
	offset, err := strconv.ParseInt(strings.TrimPrefix(id[cut:], ":"), 10, 64)
	if err != nil || offset < 0 {
		return remoting.Message{}, ErrNoLetter
	}
	queues, err := a.cluster.look(ctx, a.cfg.Topic+deadSuffix)
	if err != nil {
		return remoting.Message{}, fmt.Errorf("cannot read dead letter %s: %w", id, err)
	}
	at := slices.IndexFunc(queues, func(q queue) bool { return q.name() == id[:cut] })
	if at < 0 {
		return remoting.Message{}, ErrNoLetter
	}
	got, err := a.cluster.pull(ctx, a.cfg.Group, queues[at], offset, 1, false)
	switch {
	case err != nil:
		return remoting.Message{}, fmt.Errorf("cannot read dead letter %s: %w", id, err)
	case len(got.messages) == 0 || got.messages[0].Offset != offset:
		return remoting.Message{}, ErrNoLetter
	}
	return got.messages[0], nil
}
