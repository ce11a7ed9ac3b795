package sql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"floodgate/sale"
)

// The rows of the tables as gorm sees them. Keys are ours, never the database's; times are set by us, never by gorm.

type activityRow struct {
	ID           sale.ID `gorm:"primaryKey;autoIncrement:false"`
	Title        string
	StartsAt     sale.Millis
	EndsAt       sale.Millis
	PerUserLimit int
	PayWindowMs  int64
	Captcha      bool
	Status       sale.Status
	CreatedAt    sale.Millis `gorm:"autoCreateTime:false"`
	UpdatedAt    sale.Millis `gorm:"autoUpdateTime:false"`
}

// TableName is the table.
func (activityRow) TableName() string { return "activities" }

type itemRow struct {
	ActivityID    sale.ID `gorm:"primaryKey;autoIncrement:false"`
	CommodityID   sale.ID `gorm:"primaryKey;autoIncrement:false"`
	Position      int
	Title         string
	PriceCents    sale.Cents
	Total         int64
	Sold          int64
	FallbackQuota int64
	FallbackLeft  int64
	Epoch         int64
	LiveEpoch     int64
}

// TableName is the table.
func (itemRow) TableName() string { return "items" }

type lotRow struct {
	Operation   string `gorm:"primaryKey"`
	ActivityID  sale.ID
	CommodityID sale.ID
	Units       int64
	Epoch       int64
	Applied     bool
	CreatedAt   sale.Millis `gorm:"autoCreateTime:false"`
}

// TableName is the table.
func (lotRow) TableName() string { return "lots" }

type orderRow struct {
	OrderNo      sale.ID `gorm:"primaryKey;autoIncrement:false"`
	RequestToken sale.Token
	UserID       sale.ID
	ActivityID   sale.ID
	CommodityID  sale.ID
	Title        string
	Quantity     int
	PriceCents   sale.Cents
	State        sale.OrderState
	Source       sale.Source
	Reason       string
	Slots        string
	CreatedAt    sale.Millis `gorm:"autoCreateTime:false"`
	PayBy        sale.Millis
	UpdatedAt    sale.Millis `gorm:"autoUpdateTime:false"`
	Announced    bool
}

// TableName is the table.
func (orderRow) TableName() string { return "orders" }

type slotRow struct {
	UserID      sale.ID `gorm:"primaryKey;autoIncrement:false"`
	ActivityID  sale.ID `gorm:"primaryKey;autoIncrement:false"`
	CommodityID sale.ID `gorm:"primaryKey;autoIncrement:false"`
	Slot        int     `gorm:"primaryKey;autoIncrement:false"`
	OrderNo     sale.ID
}

// TableName is the table.
func (slotRow) TableName() string { return "slots" }

type placedRow struct {
	Topic      string `gorm:"primaryKey"`
	Queue      string `gorm:"primaryKey"`
	NextOffset int64
}

// TableName is the table.
func (placedRow) TableName() string { return "placed" }

type leaseRow struct {
	Name      string `gorm:"primaryKey"`
	Owner     string
	ExpiresAt sale.Millis
}

// TableName is the table.
func (leaseRow) TableName() string { return "leases" }

type operationRow struct {
	ID         int64 `gorm:"primaryKey"`
	At         sale.Millis
	Who        string
	Action     string
	ActivityID sale.ID
	BeforeText string
	AfterText  string
}

// TableName is the table.
func (operationRow) TableName() string { return "operations" }

func now() sale.Millis { return sale.At(time.Now()) }

func (r *activityRow) activity(items []itemRow) Activity {
	a := Activity{Activity: sale.Activity{ID: r.ID, Title: r.Title, StartsAt: r.StartsAt, EndsAt: r.EndsAt,
		PerUserLimit: r.PerUserLimit, PayWindow: time.Duration(r.PayWindowMs) * time.Millisecond, Captcha: r.Captcha, Status: r.Status}}
	for _, i := range items {
		a.Items = append(a.Items, sale.Item{Commodity: i.CommodityID, Title: i.Title, Price: i.PriceCents, Total: i.Total, FallbackQuota: i.FallbackQuota})
		a.States = append(a.States, ItemState{Commodity: i.CommodityID, Total: i.Total, Sold: i.Sold, FallbackLeft: i.FallbackLeft, Epoch: i.Epoch, LiveEpoch: i.LiveEpoch})
		a.Epoch, a.LiveEpoch = max(a.Epoch, i.Epoch), max(a.LiveEpoch, i.LiveEpoch)
	}
	return a
}

func (r *lotRow) lot() Lot {
	return Lot{Operation: r.Operation, Activity: r.ActivityID, Commodity: r.CommodityID, Units: r.Units, Epoch: r.Epoch, Applied: r.Applied, CreatedAt: r.CreatedAt}
}

func rowOf(o *sale.Order) orderRow {
	return orderRow{OrderNo: o.No, RequestToken: o.Token, UserID: o.User, ActivityID: o.Activity, CommodityID: o.Commodity, Title: o.Title,
		Quantity: o.Quantity, PriceCents: o.Price, State: o.State, Source: o.Source, Reason: o.Reason, Slots: joinSlots(o.Slots),
		CreatedAt: o.CreatedAt, PayBy: o.PayBy, UpdatedAt: o.UpdatedAt, Announced: o.Announced}
}

func (r *orderRow) order() (sale.Order, error) {
	slots, err := splitSlots(r.Slots)
	if err != nil {
		return sale.Order{}, fmt.Errorf("order %s: %w", r.OrderNo, err)
	}
	return sale.Order{No: r.OrderNo, Token: r.RequestToken, User: r.UserID, Activity: r.ActivityID, Commodity: r.CommodityID, Title: r.Title,
		Quantity: r.Quantity, Price: r.PriceCents, State: r.State, Source: r.Source, Reason: r.Reason, Slots: slots,
		CreatedAt: r.CreatedAt, PayBy: r.PayBy, UpdatedAt: r.UpdatedAt, Announced: r.Announced}, nil
}

func ordersOf(rows []orderRow) ([]sale.Order, error) {
	orders := make([]sale.Order, 0, len(rows))
	for i := range rows {
		o, err := rows[i].order()
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, nil
}

// joinSlots is the column's form, "0,1"; at most sale.MaxQuantity slots, so under 300 bytes.
func joinSlots(slots []int) string {
	var b []byte
	for i, s := range slots {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(s), 10)
	}
	return string(b)
}

func splitSlots(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var slots []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("unreadable slots %q", text)
		}
		slots = append(slots, n)
	}
	return slots, nil
}
