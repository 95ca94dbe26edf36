package main

import (
	"fmt"
	"syscall"
)

// laneRun is the run that a lane belongs to.
type laneRun interface {
	answered(l *lane, status int)
	end(err error)
}

// lane is a persistent connection of the generator with at most one request in progress.
type lane struct {
	loop   *loop
	run    laneRun
	index  int
	fd     int
	rest   []byte // the start of a response
	busy   bool
	closed bool
	// The number of the event in progress, and the number of the next event or turn.
	n, next int
	sentUs  int64
}

// send sends a request unless the run has ended.
func (l *lane) send(request []byte) {
	if l.closed {
		return
	}
	l.busy = true
	if errno := writeAll(l.fd, request); errno != 0 {
		l.run.end(fmt.Errorf("a request was not written: %w", errno))
	}
}

func (l *lane) readable() {
	input, errno := l.loop.read(l.fd)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno != 0:
		l.run.end(fmt.Errorf("a response was not read: %w", errno))
		return
	case len(input) == 0:
		l.run.end(fmt.Errorf("the server closed the connection"))
		return
	}
	if len(l.rest) > 0 {
		l.rest = append(l.rest, input...)
		input = l.rest
	}
	_, end, complete := findMessage(input)
	switch {
	case !l.busy || complete && end < len(input):
		l.run.end(fmt.Errorf("a response to no request: %.200q", input))
	case !complete:
		if len(l.rest) == 0 {
			l.rest = append(l.rest, input...)
		}
	default:
		status := statusOf(input)
		if status == 0 {
			l.run.end(fmt.Errorf("not a response: %.200q", input))
			return
		}
		l.rest = l.rest[:0]
		l.busy = false
		l.run.answered(l, status)
	}
}

func (l *lane) close() {
	if !l.closed {
		l.closed = true
		l.loop.close(l.fd)
	}
}
