package mq

import "context"

// SendRaw puts bytes into the order topic as they are.
func (p *RocketProducer) SendRaw(ctx context.Context, body string) error {
	return p.sender.store(ctx, []entry{{body: []byte(body)}})
}
