package sale

// Code is what a buyer is told, in the words of the contract. The table below is closed: an unknown code is a bug.
type Code string

// Outcomes of a request token and refusals of the gates.
const (
	Accepted       Code = "accepted"
	PendingPayment Code = "pending_payment"
	Paid           Code = "paid"
	Cancelled      Code = "cancelled"
	Closed         Code = "closed"
	Failed         Code = "failed"
	Waitlisted     Code = "waitlisted"

	BadRequest      Code = "bad_request"
	BodyTooLarge    Code = "body_too_large" // bad_request with its own HTTP status
	HeaderTooLarge  Code = "header_too_large"
	Unauthorized    Code = "unauthorized"
	Forbidden       Code = "forbidden"
	Blocked         Code = "blocked"
	CaptchaRequired Code = "captcha_required"
	CaptchaWrong    Code = "captcha_wrong"
	BadRequestToken Code = "bad_request_token"
	NotFound        Code = "not_found"
	TokenReused     Code = "token_reused"
	NotPending      Code = "not_pending"
	WaitlistFull    Code = "waitlist_full"
	Duplicate       Code = "duplicate"
	SoldOut         Code = "sold_out"
	NotStarted      Code = "not_started"
	EndedCode       Code = "ended"
	TooFast         Code = "too_fast"
	Busy            Code = "busy"
)

// Verdict is one row of the table: how a code is told over HTTP and counted.
type Verdict struct {
	Code    Code   // as written in answers
	HTTP    int    // status
	Retry   bool   // the same request may succeed later, so a Retry-After is due
	Message string // one short sentence in English: what happened, whether something was bought, what to do
	Label   string // metric label
}

var verdicts = map[Code]Verdict{
	Accepted:       {Accepted, 202, false, "Accepted. Your order is being made.", "accepted"},
	PendingPayment: {PendingPayment, 200, false, "Your order is made. Pay before it closes.", "pending_payment"},
	Paid:           {Paid, 200, false, "Paid.", "paid"},
	Cancelled:      {Cancelled, 200, false, "Cancelled by you.", "cancelled"},
	Closed:         {Closed, 200, false, "Closed, since it was not paid in time.", "closed"},
	Failed:         {Failed, 200, false, "This request did not become an order. Nothing was bought.", "failed"},
	Waitlisted:     {Waitlisted, 200, false, "You are on the waitlist.", "waitlisted"},

	BadRequest:      {BadRequest, 400, false, "The request cannot be read. Nothing was bought.", "bad_request"},
	BodyTooLarge:    {BadRequest, 413, false, "The body is too large. Nothing was bought.", "body_too_large"},
	HeaderTooLarge:  {BadRequest, 431, false, "The headers are too large. Nothing was bought.", "header_too_large"},
	Unauthorized:    {Unauthorized, 401, false, "Log in first. Nothing was bought.", "unauthorized"},
	Forbidden:       {Forbidden, 403, false, "You may not take part. Nothing was bought.", "forbidden"},
	Blocked:         {Blocked, 403, false, "This account is blocked. Nothing was bought.", "blocked"},
	CaptchaRequired: {CaptchaRequired, 403, false, "Answer the picture first. Nothing was bought.", "captcha_required"},
	CaptchaWrong:    {CaptchaWrong, 403, false, "The answer is wrong. Ask for a new picture.", "captcha_wrong"},
	BadRequestToken: {BadRequestToken, 403, false, "The request token is not valid here. Ask for a new one.", "bad_request_token"},
	NotFound:        {NotFound, 404, false, "There is no such thing.", "not_found"},
	TokenReused:     {TokenReused, 409, false, "This request token was used for something else. Nothing new was bought.", "token_reused"},
	NotPending:      {NotPending, 409, false, "The order is not waiting for payment.", "not_pending"},
	WaitlistFull:    {WaitlistFull, 409, false, "The waitlist is full.", "waitlist_full"},
	Duplicate:       {Duplicate, 409, false, "You already have yours. Nothing new was bought.", "duplicate"},
	SoldOut:         {SoldOut, 409, false, "Sold out. Nothing was bought.", "sold_out"},
	NotStarted:      {NotStarted, 425, false, "The sale has not started. Nothing was bought.", "not_started"},
	EndedCode:       {EndedCode, 410, false, "The sale has ended. Nothing was bought.", "ended"},
	TooFast:         {TooFast, 429, true, "Too fast. Nothing was bought; try again in a moment.", "too_fast"},
	Busy:            {Busy, 503, true, "Busy. Try again in a moment with the same request token.", "busy"},
}

// Verdict is the code's row; a code that is not in the table panics, since it is a bug.
func (c Code) Verdict() Verdict {
	v, ok := verdicts[c]
	if !ok {
		panic("sale: unknown code " + string(c))
	}
	return v
}

// Codes lists every code of the table, for tests and metrics; the order is not defined.
func Codes() []Code {
	out := make([]Code, 0, len(verdicts))
	for c := range verdicts {
		out = append(out, c)
	}
	return out
}

// Final says that a token's outcome will not change by itself any more, unless the order is paid, cancelled or closed.
func (c Code) Final() bool { return c != Accepted && c != Waitlisted }
