package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"floodgate/sale"
	"floodgate/sql"
)

// orderJSON is an order as the contract shows it to its buyer.
type orderJSON struct {
	OrderNo      sale.ID     `json:"orderNo"`
	RequestToken sale.Token  `json:"requestToken"`
	ActivityID   sale.ID     `json:"activityId"`
	CommodityID  sale.ID     `json:"commodityId"`
	Title        string      `json:"title"`
	Quantity     int         `json:"quantity"`
	Price        sale.Cents  `json:"price"`
	Amount       sale.Cents  `json:"amount"`
	State        sale.Code   `json:"state"`
	CreatedAt    sale.Millis `json:"createdAt"`
	PayBy        sale.Millis `json:"payBy"`
	ClosedAt     sale.Millis `json:"closedAt,omitzero"`
	Reason       string      `json:"reason,omitempty"`
}

func show(o *sale.Order) orderJSON {
	j := orderJSON{OrderNo: o.No, RequestToken: o.Token, ActivityID: o.Activity, CommodityID: o.Commodity, Title: o.Title,
		Quantity: o.Quantity, Price: o.Price, Amount: o.Amount(), State: o.State.Outcome(), CreatedAt: o.CreatedAt, PayBy: o.PayBy, Reason: o.Reason}
	if o.State == sale.StateCancelled || o.State == sale.StateClosed {
		j.ClosedAt = o.UpdatedAt
	}
	return j
}

// api is what edges may ask about orders.
func (w *Worker) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /internal/requests/{token}", w.asked(w.orderByToken))
	mux.HandleFunc("GET /internal/orders", w.asked(w.ordersOfUser))
	mux.HandleFunc("GET /internal/orders/{no}", w.asked(w.orderByNo))
	return mux
}

// serveAPI answers the edges' questions until ctx ends, then finishes what it has begun.
func (w *Worker) serveAPI(ctx context.Context) error {
	s := &http.Server{Handler: w.api(), ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	served := make(chan error, 1)
	go func() { served <- s.Serve(w.Listener) }() // ends with Shutdown below
	select {
	case err := <-served:
		return fmt.Errorf("order API: %w", err)
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.Shutdown(sctx)
	<-served
	return err
}

// errAsked is a question that cannot be answered as it is put.
var errAsked = errors.New("bad question")

// errDoubt says that nobody can say yet: a message may still wait to be placed.
var errDoubt = errors.New("the stock of this activity is being proven")

// asked checks the edge's signature and the user, and writes the answer: 200, 400, 401, 404 or 503.
func (w *Worker) asked(answer func(r *http.Request, user sale.ID) (any, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if err := w.Internal.Check(r.Method, r.URL.RequestURI(), r.Header.Get, nil, time.Now()); err != nil {
			http.Error(rw, "unauthorized", http.StatusUnauthorized)
			return
		}
		user, err := sale.ParseID(r.URL.Query().Get("user"))
		var v any
		if err == nil {
			v, err = answer(r, user)
		}
		switch {
		case errors.Is(err, sql.ErrNotFound):
			http.Error(rw, "not found", http.StatusNotFound)
		case errors.Is(err, errAsked) || errors.Is(err, sale.ErrID):
			http.Error(rw, err.Error(), http.StatusBadRequest)
		case errors.Is(err, errDoubt):
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			w.log.Warn("order API", "error", err)
			http.Error(rw, "unavailable", http.StatusServiceUnavailable)
		default:
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(v) // the edge that hung up asks again
		}
	}
}

func (w *Worker) orderByToken(r *http.Request, user sale.ID) (any, error) {
	token := sale.Token(r.PathValue("token"))
	claims, err := token.Peek()
	if err != nil || claims.User != user {
		return nil, sql.ErrNotFound
	}
	orders, err := w.store.OrdersByToken(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if len(orders) == 0 {
		// Whoever was told accepted is in Redis or the queue: where Redis has lost it and the queue is not placed yet, "unknown" is a lie.
		if doubted := w.doubted.Load(); doubted == nil || (*doubted)[claims.Activity] {
			return nil, errDoubt
		}
		return nil, sql.ErrNotFound
	}
	return show(&orders[0]), nil
}

func (w *Worker) orderByNo(r *http.Request, user sale.ID) (any, error) {
	no, err := sale.ParseID(r.PathValue("no"))
	if err != nil {
		return nil, sql.ErrNotFound
	}
	o, err := w.store.OrderByNo(r.Context(), no)
	if err != nil {
		return nil, err
	}
	if o.User != user {
		return nil, sql.ErrNotFound
	}
	return show(&o), nil
}

func (w *Worker) ordersOfUser(r *http.Request, user sale.ID) (any, error) {
	p := sql.OrderPage{User: user, Limit: 20}
	q := r.URL.Query()
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, fmt.Errorf("%w: limit: want 1 to 100", errAsked)
		}
		p.Limit = n
	}
	if text := q.Get("before"); text != "" {
		var err error
		if p.Before, err = sale.ParseID(text); err != nil {
			return nil, err
		}
	}
	asked := p.Limit
	p.Limit++ // one more tells whether there is a next page
	orders, err := w.store.OrdersOfUser(r.Context(), p)
	if err != nil {
		return nil, err
	}
	page := struct {
		Orders     []orderJSON `json:"orders"`
		NextCursor string      `json:"nextCursor,omitempty"`
	}{Orders: make([]orderJSON, 0, len(orders))}
	if len(orders) > asked {
		orders = orders[:asked]
		page.NextCursor = orders[asked-1].No.String()
	}
	for i := range orders {
		page.Orders = append(page.Orders, show(&orders[i]))
	}
	return page, nil
}
