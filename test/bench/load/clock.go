package main

import (
	"math"
	"slices"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// never is later than any time of the clock.
const never int64 = math.MaxInt64

// The same moment on the monotonic clock of Linux, which is the same for all processes, and on the clock of Go, which is
// the same clock with another start and is read without a system call.
var (
	startUs = readClockUs()
	start   = time.Now()
)

func readClockUs() int64 {
	var now syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		panic(errno)
	}
	return now.Nano() / 1_000
}

// nowUs returns the time of the monotonic clock, in µs.
func nowUs() int64 {
	return startUs + time.Since(start).Microseconds()
}

// quantileMs returns the q-quantile (between 0 and 1) in ms, or nil if there are no values. It sorts the values.
func quantileMs(valuesUs []int64, q float64) *float64 {
	if len(valuesUs) == 0 {
		return nil
	}
	slices.Sort(valuesUs)
	ms := float64(valuesUs[max(0, int(math.Ceil(float64(len(valuesUs))*q))-1)]) / 1_000
	return &ms
}
