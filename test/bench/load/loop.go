package main

import (
	"log"
	"sync"
	"syscall"
	"unsafe"
)

// source is a file descriptor with input.
type source interface{ readable() }

// ticker does something at a time.
type ticker interface {
	// dueUs returns the time of the next tick, or never.
	dueUs() int64
	tick(nowUs int64)
}

// loop waits for input and ticks in a single goroutine. It makes system calls without the scheduler of Go, which costs
// several µs for each event.
type loop struct {
	epoll   int
	sources []source // by file descriptor
	tickers []ticker
	chunk   []byte

	wake  [2]int
	mutex sync.Mutex
	tasks []func()
}

// epollPwait2 is epoll_pwait2(2), which waits with a precision of ns. The number is the same on all architectures.
const epollPwait2 = 441

func newLoop() (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{epoll: epoll, chunk: make([]byte, 64*1024)}
	if err := syscall.Pipe2(l.wake[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	l.add(l.wake[0], (*wakeup)(l))
	return l, nil
}

// run never returns.
func (l *loop) run() {
	events := make([]syscall.EpollEvent, 256)
	for {
		for _, event := range events[:l.wait(events)] {
			// The source may have been removed by a previous event.
			if source := l.sources[event.Fd]; source != nil {
				source.readable()
			}
		}
		if l.nextUs() == never {
			continue
		}
		now := nowUs()
		for _, ticker := range l.tickers {
			if ticker.dueUs() <= now {
				ticker.tick(now)
			}
		}
	}
}

func (l *loop) nextUs() int64 {
	next := never
	for _, ticker := range l.tickers {
		next = min(next, ticker.dueUs())
	}
	return next
}

// wait returns the number of events, which is 0 if a tick is due.
func (l *loop) wait(events []syscall.EpollEvent) int {
	var timeout *syscall.Timespec
	if next := l.nextUs(); next != never {
		spec := syscall.NsecToTimespec(max(0, next-nowUs()) * 1_000)
		timeout = &spec
	}
	n, _, errno := syscall.RawSyscall6(epollPwait2, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
	if errno == syscall.EINTR {
		return 0
	}
	if errno != 0 {
		log.Fatalf("epoll_pwait2: %v", errno)
	}
	return int(n)
}

// do runs a task in the loop, and waits until it is done.
func (l *loop) do(task func()) {
	done := make(chan struct{})
	l.mutex.Lock()
	l.tasks = append(l.tasks, func() {
		task()
		close(done)
	})
	l.mutex.Unlock()
	if errno := writeAll(l.wake[1], []byte{0}); errno != 0 {
		log.Fatalf("cannot wake the loop: %v", errno)
	}
	<-done
}

// wakeup runs the tasks.
type wakeup loop

func (w *wakeup) readable() {
	l := (*loop)(w)
	l.read(l.wake[0])
	l.mutex.Lock()
	tasks := l.tasks
	l.tasks = nil
	l.mutex.Unlock()
	for _, task := range tasks {
		task()
	}
}

// add calls the source whenever there is input. Only called in the loop, or before it runs.
func (l *loop) add(fd int, s source) {
	for len(l.sources) <= fd {
		l.sources = append(l.sources, nil)
	}
	l.sources[fd] = s
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		log.Fatalf("epoll_ctl: %v", err)
	}
}

// close closes a file descriptor, which also removes it from epoll.
func (l *loop) close(fd int) {
	l.sources[fd] = nil
	syscall.Close(fd)
}

// addTicker is only called in a task, or before the loop runs.
func (l *loop) addTicker(t ticker) {
	l.tickers = append(l.tickers, t)
}

// removeTicker is only called in a task.
func (l *loop) removeTicker(t ticker) {
	for i, other := range l.tickers {
		if other == t {
			l.tickers = append(l.tickers[:i], l.tickers[i+1:]...)
			return
		}
	}
}

// read returns input, which is valid until the next call. The input is empty at its end.
func (l *loop) read(fd int) ([]byte, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&l.chunk[0])), uintptr(len(l.chunk)))
	if errno != 0 {
		return nil, errno
	}
	return l.chunk[:n], 0
}

// writeAll writes bytes that always fit into the empty buffer of a socket. A short write is an error.
func writeAll(fd int, bytes []byte) syscall.Errno {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
	if errno == 0 && int(n) < len(bytes) {
		return syscall.EMSGSIZE
	}
	return errno
}
