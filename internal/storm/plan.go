package storm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	maxCopies   = 12 // copies of an order that are sent at once
	maxLater    = 3  // copies of it that are sent again later
	alterEvery  = 5  // one intent in five is altered afterwards
	shareEvery  = 10 // one in ten shares its key and body with the next one, of a stranger
	hangUpEvery = 8  // one in eight has a client that hangs up
	slotEvery   = 10 // one raced slot for ten intents
	racers      = 3  // customers who race for one slot
	shopKills   = 8  // shops that are killed, one after the other
	clientKills = 2  // client processes that are
	moneyKills  = 4  // how often the bank is, and after each a shop, while orders are paid
)

// intent is one thing that somebody means, however often it is sent.
type intent struct {
	key       string
	principal string
	customer  int64
	amount    int64  // of an order, in minor units
	slot      string // of a booking
	card      string // of a payment
	pays      int    // of a payment: which of the orders it pays
	refunds   int    // of a refund: which of the payments it gives back
	rival     bool   // of a payment or a refund: another key for the same is sent at once
	after     int    // of a payment: the number, from 1, of the one that must have its answer first
}

func (i intent) order() string {
	return fmt.Sprintf(`{"customer_id":%d,"amount":%d}`, i.customer, i.amount)
}

func (i intent) booking() string {
	return fmt.Sprintf(`{"customer_id":%d,"slot":%q}`, i.customer, i.slot)
}

// send is one request.
type send struct {
	intent  int    // its index in the record
	body    string // empty: it is known when the intent that it follows has its answer
	quoted  bool   // the key as a Structured Field String: the same key
	altered bool   // another request under the intent's key
	hangUp  bool   // the client does not wait for the answer
}

// plan is every request of a storm, in waves: a wave begins when the one before
// it has been answered.
type plan struct {
	orders, bookings, payments, refunds []intent
	orderWaves, bookingWaves            [][]send
	paymentWaves                        [][]send // the first is sent beside the second of the orders
	refundWaves                         [][]send // the first is sent beside the second of the payments
	strikes                             []strike // in order
}

// strike kills a process when so many sends are on their way or over.
type strike struct {
	after int
	whom  victim
	index int // which of them
}

// victim is what is killed.
type victim int

const (
	aShop victim = iota
	aClient
	theBank
)

// slotCount is how many slots are raced for in a storm of n intents.
func slotCount(n int) int { return (n + slotEvery - 1) / slotEvery }

// sends is how many sends a plan has, where the orders are sent to both
// endpoints.
func (p plan) sends() (n int) {
	for _, wave := range p.orderWaves {
		n += 2 * len(wave)
	}
	for _, waves := range [][][]send{p.bookingWaves, p.paymentWaves, p.refundWaves} {
		for _, wave := range waves {
			n += len(wave)
		}
	}
	return n
}

// calm takes out what makes it unknown whether a request has reached a shop.
func (p *plan) calm() {
	p.strikes = nil
	for _, waves := range [][][]send{p.orderWaves, p.bookingWaves, p.paymentWaves, p.refundWaves} {
		for _, wave := range waves {
			for i := range wave {
				wave[i].hangUp = false
			}
		}
	}
}

func newPlan(rng *rand.Rand, n int, m marks) plan {
	p := plan{orders: orderIntents(rng, n, m), bookings: bookingIntents(n, m)}
	p.orderWaves = orderWaves(rng, p.orders)
	p.bookingWaves = bookingWaves(rng, p.bookings)
	p.payments = payments(p.orders)
	p.paymentWaves = paymentWaves(rng, p.payments)
	p.refunds = refunds(p.payments)
	p.refundWaves = refundWaves(rng, p.refunds)
	sends, beforePayments := p.sends(), 2*len(p.orderWaves[0])+len(p.bookingWaves[0])
	p.strikes = append(strikes(rng, sends), moneyStrikes(rng, beforePayments, sends)...)
	slices.SortStableFunc(p.strikes, func(a, b strike) int { return cmp.Compare(a.after, b.after) })
	return p
}

// strikes spreads the kills over a storm of so many sends, the shops in turn and
// the clients between them. None is near the end, where it would meet nothing.
func strikes(rng *rand.Rand, sends int) []strike {
	const all = shopKills + clientKills
	planned := make([]strike, all)
	first := rng.IntN(shopCount)
	shopsStruck := 0
	for i := range planned {
		room := max(sends/(all+1), 1)
		s := strike{after: i*room + room/2 + rng.IntN((room+1)/2)}
		if i%(all/clientKills) == all/clientKills-1 {
			s.whom, s.index = aClient, rng.IntN(clientProcesses)
		} else {
			s.index = (first + shopsStruck) % shopCount
			shopsStruck++
		}
		planned[i] = s
	}
	return planned
}

// moneyStrikes spreads kills of the bank and of the shops over the sends that there are
// payments among.
func moneyStrikes(rng *rand.Rand, from, to int) (planned []strike) {
	room := max((to-from)/(moneyKills+1), 1)
	for i := range moneyKills {
		at := from + i*room + room/2 + rng.IntN((room+1)/2)
		planned = append(planned, strike{after: at, whom: theBank}, strike{after: at + max(room/3, 1), index: i % shopCount})
	}
	return planned
}

func orderIntents(rng *rand.Rand, n int, m marks) []intent {
	intents := make([]intent, n)
	for i := range intents {
		intents[i] = intent{
			key:       fmt.Sprintf("%s-%d", m.key, i),
			principal: "storm",
			customer:  m.firstCustomer + int64(i),
			amount:    1 + rng.Int64N(1_000_000),
		}
		if i%shareEvery == 1 {
			intents[i] = intents[i-1]
			intents[i].principal = "stranger"
		}
	}
	return intents
}

// orderWaves sends all copies of an intent next to each other first, so that
// they meet; then, when all are answered, everything again in any order, with
// the altered ones between; then once more, to see that the altered ones
// changed nothing.
func orderWaves(rng *rand.Rand, intents []intent) [][]send {
	var groups [][]send
	var later, last []send
	for i, in := range intents {
		plain := send{intent: i, body: in.order()}
		group := copies(rng, plain, 1+rng.IntN(maxCopies))
		if i%hangUpEvery == 0 {
			gone := plain
			gone.hangUp = true
			group = append(group, gone)
			shuffle(rng, group)
		}
		later = append(later, copies(rng, plain, 1+rng.IntN(maxLater))...)
		if i%alterEvery == 2 {
			in.amount++
			later = append(later, send{intent: i, body: in.order(), altered: true})
			last = append(last, plain)
		}
		if i%shareEvery == 1 {
			group = append(groups[len(groups)-1], group...)
			shuffle(rng, group)
			groups = groups[:len(groups)-1]
		}
		groups = append(groups, group)
	}
	shuffle(rng, groups)
	shuffle(rng, later)
	return [][]send{flatten(groups), later, last}
}

func bookingIntents(n int, m marks) (intents []intent) {
	for slot := range slotCount(n) {
		for range racers {
			i := len(intents)
			intents = append(intents, intent{
				key:       fmt.Sprintf("%s-booking-%d", m.key, i),
				principal: "storm",
				customer:  m.firstCustomer + int64(i),
				slot:      m.slot(slot),
			})
		}
	}
	return intents
}

// bookingWaves lets all who want a slot send at once, and all again later: who
// was refused is refused again.
func bookingWaves(rng *rand.Rand, intents []intent) [][]send {
	var groups [][]send
	var later []send
	for first := 0; first < len(intents); first += racers {
		var group []send
		for i := first; i < first+racers; i++ {
			plain := send{intent: i, body: intents[i].booking()}
			group = append(group, copies(rng, plain, 1+rng.IntN(4))...)
			later = append(later, plain)
		}
		shuffle(rng, group)
		groups = append(groups, group)
	}
	shuffle(rng, later)
	return [][]send{flatten(groups), later}
}

// copies repeats a send n times, spelling its key in both ways.
func copies(rng *rand.Rand, s send, n int) []send {
	all := make([]send, n)
	for i := range all {
		all[i] = s
		all[i].quoted = rng.IntN(2) == 0
	}
	return all
}

func shuffle[T any](rng *rand.Rand, all []T) {
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

func flatten(groups [][]send) (all []send) {
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}
