package storm

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/internal/shop/bank"
)

const (
	// settleRounds bounds how often it is asked and settled. What is left without an
	// answer then has none in the proof, either.
	settleRounds = 10
	// askPatience is longer than a dead shop's lease, and short, since what is unknown
	// stays so until it is settled.
	askPatience = shopLease + time.Second
	// doubtPatience is how long a client asks during the storm for a payment that may
	// be unknown.
	doubtPatience = time.Second
)

// records are what was told at each endpoint.
type records struct{ guarded, unguarded, bookings, payments, refunds *record }

func newRecords(p plan) records {
	r := records{
		guarded:   newRecord("/orders", p.orders, judgeOrder),
		unguarded: newRecord("/unguarded/orders", p.orders, judgeOrder),
		bookings:  newRecord("/bookings", p.bookings, judgeBooking),
	}
	r.payments = newRecord("/payments", p.payments, judgePayments(r.guarded))
	r.guarded.bodyOf = func(s send) (string, bool) { return p.orders[s.intent].order(), true }
	r.payments.bodyOf = r.payment
	r.refunds = newRecord("/refunds", p.refunds, judgeRefunds(r.payments))
	r.refunds.bodyOf = r.refund
	return r
}

// waves are the plan's sends to all endpoints beside each other, so that the same
// network and the same kills meet them. Payments come when the orders are there, and
// refunds when the payments are.
func (r records) waves(p plan) (waves [][]*job) {
	for number := range max(len(p.orderWaves), len(p.paymentWaves)+1, len(p.refundWaves)+2) {
		var wave []*job
		orders, bookings := waveOf(p.orderWaves, number), waveOf(p.bookingWaves, number)
		payments, refunds := waveOf(p.paymentWaves, number-1), waveOf(p.refundWaves, number-2)
		for i := range max(len(orders), len(bookings), len(payments), len(refunds)) {
			if i < len(orders) {
				wave = append(wave, &job{send: orders[i], rec: r.guarded}, &job{send: orders[i], rec: r.unguarded})
			}
			if i < len(bookings) {
				wave = append(wave, &job{send: bookings[i], rec: r.bookings})
			}
			if i < len(payments) {
				wave = append(wave, r.pay(payments[i]))
			}
			if i < len(refunds) {
				wave = append(wave, &job{send: refunds[i], rec: r.refunds})
			}
		}
		waves = append(waves, wave)
	}
	return waves
}

func waveOf(waves [][]send, number int) []send {
	if number < 0 || number >= len(waves) {
		return nil
	}
	return waves[number]
}

// last are the waves after the storm: every intent once more, with whatever was
// left without an answer where there is a guard, and then the mismatches that were.
// Where there is no guard, asking again is what must not be done.
func (r records) last(p plan, sent [][]*job) (waves [][]*job) {
	var plain, altered []*job
	for _, wave := range sent {
		for _, j := range wave {
			again := &job{send: j.send, rec: j.rec}
			switch {
			case j.decided || j.rec == r.unguarded:
			case j.altered:
				altered = append(altered, again)
			default:
				plain = append(plain, again)
			}
		}
	}
	for i, in := range p.orders {
		plain = append(plain, &job{send: send{intent: i, body: in.order()}, rec: r.guarded})
	}
	for i, in := range p.bookings {
		plain = append(plain, &job{send: send{intent: i, body: in.booking()}, rec: r.bookings})
	}
	for i := range p.payments {
		plain = append(plain, &job{send: send{intent: i}, rec: r.payments})
	}
	for i := range p.refunds {
		plain = append(plain, &job{send: send{intent: i}, rec: r.refunds})
	}
	return [][]*job{plain, altered}
}

// blow drives all waves, and the last ones in good weather, when shops and bank are
// all up again: by then every intent of a guard must have an answer.
func (d *driver) blow(ctx context.Context, p plan, r records, o *operator) error {
	if !d.calm {
		if err := d.bank.trouble(ctx, bankWeather); err != nil {
			return err
		}
	}
	waves := r.waves(p)
	once := len(p.orders) + len(p.bookings) + len(p.payments) + len(p.refunds)
	d.expect(p.sends() + once)
	if err := d.driveAll(ctx, waves); err != nil {
		return err
	}
	if err := errors.Join(d.shops.settle(), d.bank.settle()); err != nil {
		return err
	}
	if !d.calm {
		d.network.clear()
		if err := d.bank.trouble(ctx, bank.Faults{}); err != nil {
			return err
		}
	}
	d.phase, d.strikes = asking, nil
	if err := d.settle(ctx, r, o); err != nil {
		return err
	}
	d.phase = ending
	last := r.last(p, waves)
	d.expect(len(last[0]) + len(last[1]) - once)
	return d.driveAll(ctx, last)
}

// settle lets clients ask again for every order, then for every payment, and then for
// every refund, that has no answer, and between that the operator settle what no asking
// can find out.
func (d *driver) settle(ctx context.Context, r records, o *operator) error {
	if err := d.ask(ctx, r.guarded.open(), 0); err != nil {
		return err
	}
	if err := d.settlePayments(ctx, r, o); err != nil {
		return err
	}
	return d.ask(ctx, r.refunds.open(), 0)
}

func (d *driver) settlePayments(ctx context.Context, r records, o *operator) error {
	for range settleRounds {
		if err := o.settle(ctx); err != nil {
			return err
		}
		open := r.payments.open()
		if len(open) == 0 {
			return nil
		}
		if err := d.ask(ctx, open, askPatience); err != nil {
			return err
		}
	}
	return nil
}

// ask drives jobs that are in no plan.
func (d *driver) ask(ctx context.Context, jobs []*job, patience time.Duration) error {
	for _, j := range jobs {
		j.patience = patience
	}
	d.expect(len(jobs))
	return d.drive(ctx, jobs)
}

// driveAll begins a wave when the one before it has been answered.
func (d *driver) driveAll(ctx context.Context, waves [][]*job) error {
	for _, wave := range waves {
		if err := d.drive(ctx, wave); err != nil {
			return err
		}
	}
	return nil
}
