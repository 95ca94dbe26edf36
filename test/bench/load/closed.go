package main

import "math"

type closedOrder struct {
	Target      target `json:"target"`
	Run         int    `json:"run"`
	Connections int    `json:"connections"`
	DurationMs  int64  `json:"durationMs"`
}

// closedRun sends an event on each connection as soon as the previous one has been answered.
type closedRun struct {
	load
	n        int
	progress int
	endUs    int64
}

func (g *generator) closed(order closedOrder) (sent, error) {
	r := &closedRun{endUs: math.MaxInt64}
	var err error
	if r.load, err = openLoad(g.loop, order.Target, order.Run, order.Connections, 100_000, r); err != nil {
		return sent{}, err
	}
	g.loop.do(func() {
		r.begin()
		r.startUs = nowUs()
		r.endUs = r.startUs + order.DurationMs*1_000
		for _, lane := range r.lanes {
			r.send(lane, r.startUs)
		}
	})
	if err := <-r.done; err != nil {
		return sent{}, err
	}
	return r.result(r.endUs), nil
}

// send sends an event of the next group key of the lane.
func (r *closedRun) send(l *lane, now int64) {
	connections := len(r.lanes)
	request := r.requests[l.index+l.next%(groupKeys/connections)*connections]
	l.next++
	l.sentUs = now
	stamp(request, now, r.n)
	r.n++
	r.progress++
	l.send(request)
}

func (r *closedRun) answered(l *lane, status int) {
	now := nowUs()
	r.count(status, now-l.sentUs)
	r.progress--
	if now < r.endUs {
		r.send(l, now)
	} else if r.progress == 0 {
		r.end(nil)
	}
}
