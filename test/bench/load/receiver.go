package main

import (
	"fmt"
	"log"
	"syscall"
	"time"
)

// receiver is the endpoints of the partners, with a port each. It responds immediately with 204 unless an endpoint is
// sick, and records the arrivals.
type receiver struct {
	loop  *loop
	board *board
	// hung are the connections with a request that was not answered immediately.
	hung map[*delivery]struct{}
	slow []lateAnswer
}

// lateAnswer is a response of a slow endpoint.
type lateAnswer struct {
	delivery *delivery
	atUs     int64
}

// endpoint is a listening socket.
type endpoint struct {
	receiver *receiver
	index    int
	fd       int
}

// delivery is a connection to an endpoint.
type delivery struct {
	endpoint *endpoint
	fd       int
	rest     []byte // the start of a request
	closed   bool
}

func newReceiver(loop *loop, ports []int) (*receiver, error) {
	r := &receiver{loop: loop, board: newBoard(expectation{}), hung: map[*delivery]struct{}{}}
	for index, port := range ports {
		fd, err := listen(port)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on port %d: %w", port, err)
		}
		loop.add(fd, &endpoint{r, index, fd})
	}
	loop.addTicker(r)
	return r, nil
}

func listen(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	return fd, syscall.Listen(fd, 4_096)
}

func (r *receiver) begin(next expectation) (any, error) {
	r.loop.do(func() {
		for delivery := range r.hung {
			delivery.close()
		}
		r.slow = nil
		r.board = newBoard(next)
	})
	return nil, nil
}

type lookOrder struct {
	Anew bool `json:"anew"`
}

// look returns the arrivals since the last reset, and resets the counts if Anew is set.
func (r *receiver) look(order lookOrder) (seen look, err error) {
	r.loop.do(func() { seen, err = r.board.look(order.Anew) })
	return seen, err
}

type finishOrder struct {
	UntilUs int64 `json:"untilUs"`
	GraceMs int64 `json:"graceMs"`
}

// finish waits until all events have arrived, at most until UntilUs, and then for GraceMs to detect duplicates.
func (r *receiver) finish(order finishOrder) (got received, err error) {
	var complete <-chan struct{}
	r.loop.do(func() { complete = r.board.complete })
	select {
	case <-complete:
	case <-time.After(time.Duration(order.UntilUs-nowUs()) * time.Microsecond):
	}
	time.Sleep(time.Duration(order.GraceMs) * time.Millisecond)
	r.loop.do(func() { got, err = r.board.result() })
	return got, err
}

// dueUs returns the time of the next late response.
func (r *receiver) dueUs() int64 {
	if len(r.slow) == 0 {
		return never
	}
	return r.slow[0].atUs
}

func (r *receiver) tick(now int64) {
	for len(r.slow) > 0 && r.slow[0].atUs <= now {
		late := r.slow[0].delivery
		r.slow = r.slow[1:]
		if !late.closed {
			late.respond()
		}
	}
}

func (e *endpoint) readable() {
	for {
		fd, _, err := syscall.Accept4(e.fd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err == syscall.EAGAIN {
			return
		}
		if err != nil {
			log.Fatalf("accept: %v", err)
		}
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		e.receiver.loop.add(fd, &delivery{endpoint: e, fd: fd})
	}
}

func (d *delivery) readable() {
	loop := d.endpoint.receiver.loop
	input, errno := loop.read(d.fd)
	if errno == syscall.EAGAIN {
		return
	}
	if errno != 0 || len(input) == 0 {
		d.close()
		return
	}
	if len(d.rest) > 0 {
		d.rest = append(d.rest, input...)
		input = d.rest
	}
	for !d.closed && len(input) > 0 {
		body, end, complete := findMessage(input)
		if !complete {
			break
		}
		d.take(input[body:end])
		input = input[end:]
	}
	// The input may be the end of the rest.
	d.rest = append(d.rest[:0], input...)
}

// take responds to a request.
func (d *delivery) take(body []byte) {
	r := d.endpoint.receiver
	switch r.board.sicknessOf(d.endpoint.index) {
	case "resets":
		syscall.SetsockoptLinger(d.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		d.close()
	case "slow":
		r.hung[d] = struct{}{}
		r.slow = append(r.slow, lateAnswer{d, nowUs() + r.board.SlowMs*1_000})
	case "hangs":
		r.hung[d] = struct{}{}
	default:
		r.board.record(d.endpoint.index, body)
		d.respond()
	}
}

func (d *delivery) respond() {
	if writeAll(d.fd, noContent) != 0 {
		d.close()
	}
}

func (d *delivery) close() {
	if d.closed {
		return
	}
	d.closed = true
	delete(d.endpoint.receiver.hung, d)
	d.endpoint.receiver.loop.close(d.fd)
}
