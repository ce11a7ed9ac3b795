// Package mq is the order queue: it carries the promise of an accepted purchase from an edge to a worker. Two drivers,
// rocketmq and table (embedded: the same SQLite file as the orders), pass one conformance suite.
package mq

import (
	"context"
	"errors"

	"floodgate/sale"
)

// ErrUnanswered says that the queue did not acknowledge in time, or that its breaker is open: the messages may or may not be
// stored. The reservation is the outbox, so the edge says accepted all the same. Driver table never returns it.
var ErrUnanswered = errors.New("the queue did not answer in time")

// MaxSend is the most messages of one Send: 256 x 400 bytes stay far below a broker's 4 MiB.
const MaxSend = 256

// Producer sends order messages. Safe for concurrent use.
type Producer interface {
	// Send stores the batch in one call; nil means every message is durably stored. See ErrUnanswered.
	Send(ctx context.Context, batch []sale.Message) error
	Close() error
}

// Position is a place in one queue of the topic: the queue's name (unique within the topic, at most 64 characters) and the next offset to be placed.
type Position struct {
	Queue string
	Next  int64
}

// Batch is what a consumer hands over: messages of one queue in order, and the position behind the last one.
// Next covers unreadable messages too, which the driver has put among the dead letters before.
type Batch struct {
	Messages []sale.Message
	Position Position
}

// Handler places a batch and records its position; it is called for one batch of a queue at a time, for several queues at
// once. nil acknowledges; an error (or a panic, which the driver recovers) makes the driver offer the same batch again in place after a
// short pause, never send it to a retry topic.
type Handler func(ctx context.Context, b Batch) error

// Consumer takes messages in batches. Run returns when ctx ends, after running handlers have returned; it survives any outage
// of the queue by itself and consumes again within 5 s of its return.
type Consumer interface {
	Run(ctx context.Context, h Handler) error
}

// Backlog tells how far the queue goes, for the drain of a recovery and for the audit.
type Backlog interface {
	// Ends reads from the broker, for every queue, the offset behind its newest message.
	Ends(ctx context.Context) ([]Position, error)
	// Parked counts what lies in the consumer group's retry topic: 0 unless something went wrong.
	Parked(ctx context.Context) (int64, error)
}

// DeadLetter is a message that cannot be read, kept with the reason.
type DeadLetter struct {
	ID     string      `json:"id"`   // queue and offset, or the table's number
	Body   string      `json:"body"` // as it came
	Reason string      `json:"reason"`
	At     sale.Millis `json:"at"`
}

// DeadLetters lists and replays what could not be read.
type DeadLetters interface {
	// List gives the newest at most limit (1..1000), newest first.
	List(ctx context.Context, limit int) ([]DeadLetter, error)
	// Replay sends the letter's body to the order topic again; placing is idempotent by the request token. ErrNoLetter where the id is unknown.
	Replay(ctx context.Context, id string) error
	// Add puts a well-formed message aside for good: one of an activity that exists nowhere.
	Add(ctx context.Context, m sale.Message, reason string) error
}

// ErrNoLetter says that no dead letter has this id.
var ErrNoLetter = errors.New("no such dead letter")
