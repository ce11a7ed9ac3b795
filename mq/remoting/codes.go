package remoting

// Codes of requests.
const (
	PullMessage      = 11
	QueryOffset      = 14 // what the group has committed
	UpdateOffset     = 15
	MaxOffset        = 30 // behind the newest message
	MinOffset        = 31 // of the oldest message that is kept
	Heartbeat        = 34
	ConsumersOfGroup = 38
	RouteOfTopic     = 105
)

// Codes of replies.
const (
	Success       = 0
	TopicMissing  = 17 // also of a topic whose only broker is away, as the name server sees it
	NothingYet    = 19 // a pull that found nothing
	PullAgain     = 20
	OffsetMoved   = 21 // the offset lies before the oldest or behind the newest message
	QueryNotFound = 22 // the group has committed nothing yet
)
