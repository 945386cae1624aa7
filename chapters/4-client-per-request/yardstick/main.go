// A yardstick for chapter 4: the same service in Go, with the standard library alone.
//
//	go run . -upstream http://127.0.0.1:18081/
//
// It is written as its author would want to be measured: one client, and room in its pool for
// every user. Go's default keeps two idle connections to a host, and opens a new one for the third.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// Message is what the upstream answers, and this service after it.
type Message struct {
	Status int    `json:"status"`
	Msg    string `json:"msg"`
}

// Service asks one upstream with one client.
type Service struct {
	client   *http.Client
	upstream string
}

func newService(upstream string) *Service {
	return &Service{
		upstream: upstream,
		// ANCHOR: client
		client: &http.Client{
			// How long a request waits for the upstream, as in the chapter's service.
			Timeout: 3 * time.Second,
			Transport: &http.Transport{
				MaxIdleConns:        1024,
				MaxIdleConnsPerHost: 1024,
				IdleConnTimeout:     90 * time.Second,
				// The upstream's answer is not compressed: do not ask.
				DisableCompression: true,
			},
		},
		// ANCHOR_END: client
	}
}

// ask returns what the upstream answers, parsed.
func (s *Service) ask() (Message, error) {
	var message Message
	response, err := s.client.Get(s.upstream)
	if err != nil {
		return message, err
	}
	defer response.Body.Close()
	// Only a body that is read to its end lets the connection be used again.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return message, err
	}
	if response.StatusCode != http.StatusOK {
		return message, fmt.Errorf("the upstream answers %s", response.Status)
	}
	return message, json.Unmarshal(body, &message)
}

func (s *Service) io(w http.ResponseWriter, _ *http.Request) {
	message, err := s.ask()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer(w, message)
}

func atOnce(w http.ResponseWriter, _ *http.Request) {
	answer(w, Message{Status: 200, Msg: "Good Luck!"})
}

func answer(w http.ResponseWriter, message Message) {
	body, err := json.Marshal(message)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that hangs up has no use for the error.
	_, _ = w.Write(body)
}

func main() {
	port := flag.Int("port", 0, "port of the service; 0 picks a free one")
	upstream := flag.String("upstream", "http://127.0.0.1:18081/", "whom to ask")
	stopWithStdin := flag.Bool("stop-with-stdin", false, "stop when standard input closes")
	flag.Parse()

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	if *stopWithStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	service := newService(*upstream)
	paths := http.NewServeMux()
	paths.HandleFunc("/io", service.io)
	paths.HandleFunc("/static", atOnce)
	fmt.Printf("yardstick listens on http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, paths))
}
