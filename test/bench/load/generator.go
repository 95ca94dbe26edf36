package main

import (
	"fmt"
	"runtime"
	"syscall"
)

// generator sends events. Events of a group key are sent in order, because they use the same connection, which has at
// most one request in progress.
type generator struct{ loop *loop }

type sent struct {
	Accepted   int      `json:"accepted"`
	Refused    int      `json:"refused"`
	ElapsedMs  float64  `json:"elapsedMs"`
	EndUs      int64    `json:"endUs"`
	P50Ms      *float64 `json:"p50Ms"`
	P99Ms      *float64 `json:"p99Ms"`
	AnsweredUs times    `json:"answeredUs,omitempty"`
}

// load is the common part of both kinds of runs.
type load struct {
	loop        *loop
	lanes       []*lane
	requests    [][]byte
	startUs     int64
	latenciesUs []int64
	accepted    int
	refused     int
	elapsedUs   int64
	ended       bool
	// done gets the result of the run.
	done chan error
}

// openLoad opens the connections.
func openLoad(loop *loop, to target, run, connections, events int, r laneRun) (load, error) {
	if connections < 1 || groupKeys%connections != 0 {
		return load{}, fmt.Errorf("%d keys do not divide by %d connections", groupKeys, connections)
	}
	l := load{
		loop:        loop,
		requests:    buildRequests(to, run),
		latenciesUs: make([]int64, 0, events),
		done:        make(chan error, 1),
	}
	for index := range connections {
		fd, err := connect(to.Port)
		if err != nil {
			l.closeLanes()
			return load{}, err
		}
		l.lanes = append(l.lanes, &lane{loop: loop, run: r, index: index, fd: fd})
	}
	return l, nil
}

func (l *load) closeLanes() {
	for _, lane := range l.lanes {
		lane.close()
	}
}

// begin runs in the loop.
func (l *load) begin() {
	runtime.GC()
	for _, lane := range l.lanes {
		l.loop.add(lane.fd, lane)
	}
}

// count records a response.
func (l *load) count(status int, latencyUs int64) {
	l.latenciesUs = append(l.latenciesUs, latencyUs)
	if status >= 200 && status < 300 {
		l.accepted++
	} else {
		l.refused++
	}
}

// end ends the run if it has not ended before.
func (l *load) end(err error) {
	if l.ended {
		return
	}
	l.ended = true
	l.elapsedUs = nowUs() - l.startUs
	l.closeLanes()
	l.done <- err
}

func (l *load) result(endUs int64) sent {
	return sent{
		Accepted:  l.accepted,
		Refused:   l.refused,
		ElapsedMs: float64(l.elapsedUs) / 1_000,
		EndUs:     endUs,
		P50Ms:     quantileMs(l.latenciesUs, 0.5),
		P99Ms:     quantileMs(l.latenciesUs, 0.99),
	}
}

// connect opens a blocking connection, which does not wait on loopback, and returns it as non-blocking.
func connect(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	address := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if err = syscall.Connect(fd, address); err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	}
	if err != nil {
		syscall.Close(fd)
		return 0, fmt.Errorf("cannot connect to port %d: %w", port, err)
	}
	return fd, nil
}
