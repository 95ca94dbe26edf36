// Command peer is a producer and a receiver of CloudEvents with the official SDK for Go. The tests drive it over HTTP.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/cloudevents/sdk-go/v2/types"
)

// order asks for one request. What it describes is documented in ../peers.ts.
type order struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Mode    string            `json:"mode"`
	Event   struct {
		Attributes map[string]string `json:"attributes"`
		Extensions map[string]struct {
			Type  string `json:"type"`
			Value any    `json:"value"`
		} `json:"extensions"`
		Data *struct {
			JSON   json.RawMessage `json:"json"`
			Text   *string         `json:"text"`
			Base64 *string         `json:"base64"`
		} `json:"data"`
	} `json:"event"`
}

type data struct {
	Base64 string `json:"base64"`
}

type reading struct {
	Attributes map[string]string `json:"attributes"`
	Data       *data             `json:"data"`
	Error      string            `json:"error,omitempty"`
}

var (
	mutex    sync.Mutex
	readings = map[string]reading{}
)

func extensionOf(kind string, value any) (any, error) {
	switch kind {
	case "integer":
		return int32(value.(float64)), nil
	case "binary":
		return base64.StdEncoding.DecodeString(value.(string))
	case "timestamp":
		return types.ParseTime(value.(string))
	case "uri":
		return types.ParseURI(value.(string)), nil
	case "urireference":
		return types.ParseURIRef(value.(string)), nil
	default:
		return value, nil
	}
}

func eventOf(o order) (event.Event, error) {
	e := event.New()
	attributes := o.Event.Attributes
	e.SetID(attributes["id"])
	e.SetSource(attributes["source"])
	e.SetType(attributes["type"])
	if subject, found := attributes["subject"]; found {
		e.SetSubject(subject)
	}
	if schema, found := attributes["dataschema"]; found {
		e.SetDataSchema(schema)
	}
	if text, found := attributes["time"]; found {
		parsed, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return e, err
		}
		e.SetTime(parsed)
	}
	for name, extension := range o.Event.Extensions {
		value, err := extensionOf(extension.Type, extension.Value)
		if err != nil {
			return e, err
		}
		e.SetExtension(name, value)
	}
	return e, setData(&e, o)
}

func setData(e *event.Event, o order) error {
	contentType, found := o.Event.Attributes["datacontenttype"]
	if found {
		e.SetDataContentType(contentType)
	}
	content := o.Event.Data
	if content == nil {
		return nil
	}
	switch {
	case content.Text != nil:
		// The SDK writes bytes of a text type as text.
		e.DataEncoded = []byte(*content.Text)
	case content.Base64 != nil:
		bytes, err := base64.StdEncoding.DecodeString(*content.Base64)
		if err != nil {
			return err
		}
		return e.SetData(contentType, bytes)
	default:
		var value any
		if err := json.Unmarshal(content.JSON, &value); err != nil {
			return err
		}
		return e.SetData(contentType, value)
	}
	return nil
}

func produce(o order) (int, string, error) {
	e, err := eventOf(o)
	if err != nil {
		return 0, "", err
	}
	if err := e.Validate(); err != nil {
		return 0, "", err
	}
	request, err := http.NewRequest(http.MethodPost, o.URL, nil)
	if err != nil {
		return 0, "", err
	}
	ctx := request.Context()
	switch o.Mode {
	case "batch":
		request, err = cehttp.NewHTTPRequestFromEvents(ctx, o.URL, []event.Event{e, e})
	case "structured":
		err = cehttp.WriteRequest(binding.WithForceStructured(ctx), binding.ToMessage(&e), request)
	default:
		err = cehttp.WriteRequest(binding.WithForceBinary(ctx), binding.ToMessage(&e), request)
	}
	if err != nil {
		return 0, "", err
	}
	for name, value := range o.Headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func read(request *http.Request) reading {
	e, err := binding.ToEvent(request.Context(), cehttp.NewMessageFromHttpRequest(request))
	if err != nil {
		return reading{Error: err.Error()}
	}
	if err := e.Validate(); err != nil {
		return reading{Error: err.Error()}
	}
	attributes := map[string]string{
		"specversion":     e.SpecVersion(),
		"id":              e.ID(),
		"source":          e.Source(),
		"type":            e.Type(),
		"subject":         e.Subject(),
		"dataschema":      e.DataSchema(),
		"datacontenttype": e.DataContentType(),
	}
	if !e.Time().IsZero() {
		attributes["time"] = e.Time().Format(time.RFC3339Nano)
	}
	for name, value := range e.Extensions() {
		text, err := types.Format(value)
		if err != nil {
			return reading{Error: err.Error()}
		}
		attributes[name] = text
	}
	for name, value := range attributes {
		if value == "" {
			delete(attributes, name)
		}
	}
	found := reading{Attributes: attributes}
	if e.Data() != nil {
		found.Data = &data{Base64: base64.StdEncoding.EncodeToString(e.Data())}
	}
	return found
}

func serve(writer http.ResponseWriter, request *http.Request) {
	switch {
	case strings.HasPrefix(request.URL.Path, "/receive"):
		found := read(request)
		mutex.Lock()
		readings[request.Header.Get("webhook-id")] = found
		mutex.Unlock()
		writer.WriteHeader(http.StatusNoContent)
	case request.URL.Path == "/read":
		mutex.Lock()
		found, known := readings[request.URL.Query().Get("id")]
		mutex.Unlock()
		if !known {
			writer.WriteHeader(http.StatusNotFound)
			return
		}
		json.NewEncoder(writer).Encode(found)
	default:
		var o order
		if err := json.NewDecoder(request.Body).Decode(&o); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		status, body, err := produce(o)
		if err != nil {
			json.NewEncoder(writer).Encode(map[string]any{"unsendable": err.Error()})
			return
		}
		json.NewEncoder(writer).Encode(map[string]any{"status": status, "body": body})
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	http.Serve(listener, http.HandlerFunc(serve))
}
