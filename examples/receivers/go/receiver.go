package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance    = 5 * time.Minute
	maxBodyBytes = 256 * 1024
)

// verify reports whether one of the signatures matches the body. secret is the signing secret, "whsec_…".
func verify(secret string, header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	expected := mac.Sum(nil)
	for _, each := range strings.Fields(header.Get("webhook-signature")) {
		version, value, _ := strings.Cut(each, ",")
		actual, err := base64.StdEncoding.DecodeString(value)
		if version == "v1" && err == nil && hmac.Equal(actual, expected) {
			return true
		}
	}
	return false
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBodyBytes))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	// Verify the raw bytes before you parse the body.
	if !verify(os.Getenv("SIGNING_SECRET"), request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	// Store the headers webhook-id and webhook-replay here to detect duplicates.
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	if os.Getenv("SIGNING_SECRET") == "" {
		log.Fatal("set SIGNING_SECRET")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "9900"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	log.Fatal(http.Serve(listener, http.HandlerFunc(receive)))
}
