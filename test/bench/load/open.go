package main

import (
	"fmt"
	"math"
)

type openOrder struct {
	Target      target  `json:"target"`
	Run         int     `json:"run"`
	Connections int     `json:"connections"`
	Rate        float64 `json:"rate"`
	Count       int     `json:"count"`
	First       int     `json:"first"`
	PatienceMs  int64   `json:"patienceMs"`
	Timed       bool    `json:"timed"`
}

const (
	// leadUs is the time from the start of a run to its first event.
	leadUs = 5_000
	// tickUs is the shortest time between two ticks. Events that are due earlier are sent together.
	tickUs = 1_000
)

// openRun sends evenly spaced events, independent of the responses. A lane sends every event whose number is its index
// modulo the number of lanes.
type openRun struct {
	load
	order openOrder
	// due is the number of events that are due.
	due        int
	nextTickUs int64
	answeredUs times
}

func (g *generator) open(order openOrder) (sent, error) {
	if order.Count < 1 || !(order.Rate > 0) {
		return sent{}, fmt.Errorf("%d events at %v/s are no load", order.Count, order.Rate)
	}
	r := &openRun{order: order}
	if order.Timed {
		r.answeredUs = make(times, order.Count)
	}
	var err error
	if r.load, err = openLoad(g.loop, order.Target, order.Run, order.Connections, order.Count, r); err != nil {
		return sent{}, err
	}
	g.loop.do(func() {
		r.begin()
		for _, lane := range r.lanes {
			lane.next = lane.index
		}
		r.startUs = nowUs() + leadUs
		r.nextTickUs = r.plannedUs(0)
		r.loop.addTicker(r)
	})
	err = <-r.done
	g.loop.do(func() { r.loop.removeTicker(r) })
	if err != nil {
		return sent{}, err
	}
	result := r.result(r.plannedUs(order.Count - 1))
	result.AnsweredUs = r.answeredUs
	return result, nil
}

func (r *openRun) plannedUs(n int) int64 {
	return r.startUs + int64(math.Round(float64(n)*1e6/r.order.Rate))
}

func (r *openRun) dueUs() int64 { return r.nextTickUs }

// tick sends the events that are due. The tick after that of the last event ends the run.
func (r *openRun) tick(now int64) {
	if r.due == r.order.Count {
		r.nextTickUs = never
		r.end(nil)
		return
	}
	for r.due < r.order.Count && r.plannedUs(r.due) <= now {
		lane := r.lanes[r.due%len(r.lanes)]
		r.due++
		r.pump(lane)
	}
	if r.due < r.order.Count {
		r.nextTickUs = max(r.plannedUs(r.due), now+tickUs)
	} else {
		r.nextTickUs = now + r.order.PatienceMs*1_000
	}
}

// pump sends the next event of the lane if it is due.
func (r *openRun) pump(l *lane) {
	if l.busy || l.next >= r.due {
		return
	}
	l.n = l.next
	l.next += len(r.lanes)
	request := r.requests[l.n%groupKeys]
	stamp(request, r.plannedUs(l.n), r.order.First+l.n)
	l.send(request)
}

func (r *openRun) answered(l *lane, status int) {
	now := nowUs()
	r.count(status, now-r.plannedUs(l.n))
	if r.answeredUs != nil {
		r.answeredUs[l.n] = now
	}
	r.pump(l)
	if r.accepted+r.refused == r.order.Count {
		r.end(nil)
	}
}
