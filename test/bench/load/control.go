package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// command takes and returns JSON.
type command func(input []byte) (any, error)

// jsonCommand returns a command that decodes its input. Unknown fields are refused.
func jsonCommand[In, Out any](run func(In) (Out, error)) command {
	return func(input []byte) (any, error) {
		var in In
		decoder := json.NewDecoder(bytes.NewReader(input))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil {
			return nil, err
		}
		return run(in)
	}
}

// serveCommands serves commands on loopback, as POST /<name> with JSON. A 500 contains the error message.
func serveCommands(port int, commands map[string]command) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return http.Serve(listener, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		output, err := runCommand(commands, request)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Write(output)
	}))
}

func runCommand(commands map[string]command, request *http.Request) ([]byte, error) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	run, found := commands[name]
	if !found {
		return nil, fmt.Errorf("there is no command %s", name)
	}
	input, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	output, err := run(input)
	if err != nil {
		return nil, err
	}
	return json.Marshal(output)
}

// times are in µs of the monotonic clock. In JSON, 0 is null.
type times []int64

func (t times) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, at := range t {
		if i > 0 {
			text = append(text, ',')
		}
		if at == 0 {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendInt(text, at, 10)
		}
	}
	return append(text, ']'), nil
}
