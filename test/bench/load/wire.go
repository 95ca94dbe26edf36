package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The events are a JSON body of 1 KiB. Its fields are at fixed positions, so that they can be read without parsing. The
// field sent is the planned time in µs of the monotonic clock.
const (
	groupKeys = 100
	bodyBytes = 1_024
)

var template = buildTemplate()

// field is a place for digits in the body.
type field struct{ from, to int }

var (
	runField  = findField("run", 5)
	sentField = findField("sent", 15)
	keyField  = findField("key", 3)
	nField    = findField("n", 8)
)

func buildTemplate() string {
	head := fmt.Sprintf(`{"run":"%05d","sent":"%015d","key":"%03d","n":"%08d","pad":"`, 0, 0, 0, 0)
	return head + strings.Repeat("x", bodyBytes-len(head)-2) + `"}`
}

func findField(name string, digits int) field {
	before := fmt.Sprintf("%q:\"", name)
	from := strings.Index(template, before) + len(before)
	return field{from, from + digits}
}

// target is where to send events. Headers are sent in the order of their names.
type target struct {
	Port    int               `json:"port"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
}

// buildRequests returns a request for each group key, without the fields sent and n.
func buildRequests(to target, run int) [][]byte {
	names := make([]string, 0, len(to.Headers))
	for name := range to.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	requests := make([][]byte, groupKeys)
	for key := range requests {
		request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\ncontent-length: %d\r\nx-sluice-group-key: key-%03d\r\n", to.Path, to.Port, bodyBytes, key)
		for _, name := range names {
			request = fmt.Appendf(request, "%s: %s\r\n", name, to.Headers[name])
		}
		request = append(append(request, "\r\n"...), template...)
		body := request[len(request)-bodyBytes:]
		runField.write(body, int64(run))
		keyField.write(body, int64(key))
		requests[key] = request
	}
	return requests
}

// stamp writes the planned time in µs and the number within the run.
func stamp(request []byte, sentUs int64, n int) {
	body := request[len(request)-bodyBytes:]
	sentField.write(body, sentUs)
	nField.write(body, int64(n))
}

func (f field) write(body []byte, value int64) {
	for at := f.to - 1; at >= f.from; at-- {
		body[at] = byte('0' + value%10)
		value /= 10
	}
}

// read returns -1 if there are not only digits.
func (f field) read(body []byte) int64 {
	value := int64(0)
	for _, digit := range body[f.from:f.to] {
		if digit < '0' || digit > '9' {
			return -1
		}
		value = value*10 + int64(digit-'0')
	}
	return value
}

var (
	headEnd    = []byte("\r\n\r\n")
	lengthName = []byte("content-length:")
	statusLine = []byte("HTTP/1.1 ")
	noContent  = []byte("HTTP/1.1 204 No Content\r\n\r\n")
)

// findMessage returns where the body of the first message starts and ends, or false if the message is not complete.
func findMessage(input []byte) (body, end int, complete bool) {
	head := bytes.Index(input, headEnd)
	if head < 0 {
		return 0, 0, false
	}
	body = head + len(headEnd)
	end = body + contentLength(input[:head+2])
	return body, end, end <= len(input)
}

// contentLength returns the content-length of a message, or 0 if there is none.
func contentLength(head []byte) int {
	for {
		line := bytes.IndexByte(head, '\n')
		head = head[line+1:]
		if line < 0 || len(head) == 0 {
			return 0
		}
		if head[0]|0x20 != 'c' || len(head) < len(lengthName) || !bytes.EqualFold(head[:len(lengthName)], lengthName) {
			continue
		}
		length := 0
		for _, digit := range bytes.TrimLeft(head[len(lengthName):], " ") {
			if digit < '0' || digit > '9' {
				break
			}
			length = length*10 + int(digit-'0')
		}
		return length
	}
}

// statusOf returns the status of a response ("HTTP/1.1 202 …"), or 0 if it is not a response.
func statusOf(response []byte) int {
	code, found := bytes.CutPrefix(response, statusLine)
	if !found || len(code) < 3 {
		return 0
	}
	return int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
}
