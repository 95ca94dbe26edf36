package main

import (
	"fmt"
	"runtime"
)

// expectation is the events that should arrive in a run.
type expectation struct {
	Run       int      `json:"run"`
	Events    int      `json:"events"`
	Endpoints int      `json:"endpoints"`
	Observed  int      `json:"observed"`
	Sick      []string `json:"sick"`
	SlowMs    int64    `json:"slowMs"`
	Timed     bool     `json:"timed"`
}

type received struct {
	Complete   bool     `json:"complete"`
	Unique     int      `json:"unique"`
	Expected   int      `json:"expected"`
	Duplicates int      `json:"duplicates"`
	OutOfOrder int      `json:"outOfOrder"`
	LastUs     int64    `json:"lastUs"`
	P50Ms      *float64 `json:"p50Ms"`
	P99Ms      *float64 `json:"p99Ms"`
	ArrivedUs  []times  `json:"arrivedUs,omitempty"`
}

type look struct {
	P50Ms     *float64       `json:"p50Ms"`
	P99Ms     *float64       `json:"p99Ms"`
	Endpoints []endpointLook `json:"endpoints"`
}

type endpointLook struct {
	Unique int     `json:"unique"`
	GapMs  float64 `json:"gapMs"`
}

// board records the arrivals of a run.
type board struct {
	expectation
	expected    int
	arrivals    []arrivals
	latenciesUs []int64
	unique      int
	duplicates  int
	outOfOrder  int
	lastUs      int64
	// complete is closed when all events have arrived.
	complete chan struct{}
	// failure is the first unexpected event.
	failure error
}

// arrivals are the events that have arrived at an endpoint.
type arrivals struct {
	seen      []bool
	newest    [groupKeys]int
	arrivedUs times
	unique    int
	// The last arrival, and the longest time without one since the last reset.
	lastUs, gapUs int64
}

func newBoard(expected expectation) *board {
	runtime.GC()
	b := &board{
		expectation: expected,
		expected:    expected.Events * (expected.Endpoints - len(expected.Sick)),
		arrivals:    make([]arrivals, expected.Endpoints),
		latenciesUs: make([]int64, 0, expected.Events*expected.Observed),
		complete:    make(chan struct{}),
	}
	now := nowUs()
	for i := range b.arrivals {
		at := &b.arrivals[i]
		at.seen = make([]bool, expected.Events)
		at.lastUs = now
		for key := range at.newest {
			at.newest[key] = -1
		}
		if expected.Timed {
			at.arrivedUs = make(times, expected.Events)
		}
	}
	if b.expected == 0 {
		close(b.complete)
	}
	return b
}

// sicknessOf returns the sickness of an endpoint, or "" if it is healthy.
func (b *board) sicknessOf(endpoint int) string {
	healthy := b.Endpoints - len(b.Sick)
	if endpoint < healthy || endpoint >= b.Endpoints {
		return ""
	}
	return b.Sick[endpoint-healthy]
}

// record records the arrival of an event. Events of other runs and other requests are ignored.
func (b *board) record(endpoint int, body []byte) {
	if len(body) != bodyBytes || runField.read(body) != int64(b.Run) {
		return
	}
	n, key, sentUs := int(nField.read(body)), int(keyField.read(body)), sentField.read(body)
	if endpoint >= b.Endpoints || n < 0 || n >= b.Events || key < 0 || key >= groupKeys || sentUs < 0 {
		if b.failure == nil {
			b.failure = fmt.Errorf("an unexpected event at endpoint %d: %s", endpoint, body[:nField.to])
		}
		return
	}
	at := &b.arrivals[endpoint]
	now := nowUs()
	if at.seen[n] {
		b.duplicates++
		return
	}
	at.seen[n] = true
	if n < at.newest[key] {
		b.outOfOrder++
	} else {
		at.newest[key] = n
	}
	if endpoint < b.Observed {
		b.latenciesUs = append(b.latenciesUs, now-sentUs)
	}
	b.lastUs = now
	if b.Timed {
		at.arrivedUs[n] = now
	}
	at.unique++
	at.gapUs = max(at.gapUs, now-at.lastUs)
	at.lastUs = now
	b.unique++
	if b.unique == b.expected {
		close(b.complete)
	}
}

func (b *board) look(anew bool) (look, error) {
	now := nowUs()
	seen := look{
		P50Ms:     quantileMs(b.latenciesUs, 0.5),
		P99Ms:     quantileMs(b.latenciesUs, 0.99),
		Endpoints: make([]endpointLook, len(b.arrivals)),
	}
	if anew {
		b.latenciesUs = b.latenciesUs[:0]
	}
	for i := range b.arrivals {
		at := &b.arrivals[i]
		seen.Endpoints[i] = endpointLook{at.unique, float64(max(at.gapUs, now-at.lastUs)) / 1_000}
		if anew {
			at.lastUs, at.gapUs = now, 0
		}
	}
	return seen, b.failure
}

func (b *board) result() (received, error) {
	got := received{
		Complete:   b.unique == b.expected,
		Unique:     b.unique,
		Expected:   b.expected,
		Duplicates: b.duplicates,
		OutOfOrder: b.outOfOrder,
		LastUs:     b.lastUs,
		P50Ms:      quantileMs(b.latenciesUs, 0.5),
		P99Ms:      quantileMs(b.latenciesUs, 0.99),
	}
	if b.Timed {
		for _, at := range b.arrivals {
			got.ArrivedUs = append(got.ArrivedUs, at.arrivedUs)
		}
	}
	return got, b.failure
}
