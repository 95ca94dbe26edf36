// Command load is the load generator and the receiver of the benchmark. Both cost as little CPU as possible, because they
// share the machine with the measured processes. The commands and their types are documented in ../load.ts.
//
//	load generator <control port>
//	load receiver <control port> <port>…
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

func main() {
	// The loop keeps one thread busy or blocked, and the other one serves commands. The garbage collector has to stop
	// the loop, so it only runs between measurements.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(-1)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: load generator <control port>, or load receiver <control port> <port>…")
	}
	ports := make([]int, len(args)-1)
	for i, arg := range args[1:] {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("%q is not a port", arg)
		}
		ports[i] = port
	}
	loop, err := newLoop()
	if err != nil {
		return err
	}
	commands := map[string]command{}
	switch args[0] {
	case "generator":
		generator := &generator{loop}
		commands["closed"] = jsonCommand(generator.closed)
		commands["open"] = jsonCommand(generator.open)
	case "receiver":
		receiver, err := newReceiver(loop, ports[1:])
		if err != nil {
			return err
		}
		commands["begin"] = jsonCommand(receiver.begin)
		commands["look"] = jsonCommand(receiver.look)
		commands["finish"] = jsonCommand(receiver.finish)
	default:
		return fmt.Errorf("there is no program %q", args[0])
	}
	go loop.run()
	return serveCommands(ports[0], commands)
}
