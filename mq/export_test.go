package mq

import "context"

// SendRaw puts bytes into the order topic as they are.
func (p *RocketProducer) SendRaw(ctx context.Context, body string) error {
	return p.send(ctx, []entry{{body: []byte(body)}})
}
