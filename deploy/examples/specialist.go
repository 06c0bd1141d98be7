// A Muster specialist that counts words, with nothing but nats.go. docs/gateway.md has what it may ask of the task gateway.
//
//	go mod init specialist && go get github.com/nats-io/nats.go
//	NATS_URL=nats://127.0.0.1:4222 go run deploy/examples/specialist.go
package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

type fields = map[string]any

const role = "word_counter"

func random() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes)
	return fmt.Sprintf("%x", bytes)
}

type specialist struct {
	nc  *nats.Conn
	who fields
}

func (s specialist) ask(verb string, said fields) (answer fields) {
	said["id"] = random() // sent again with it, after a lost answer, nothing is recorded twice
	body, _ := json.Marshal(said)
	for {
		reply, err := s.nc.Request("agent."+role+"."+verb, body, 40*time.Second)
		answer = fields{}
		if err == nil && json.Unmarshal(reply.Data, &answer) == nil {
			if refused, _ := answer["error"].(fields); refused["retry"] != true {
				return answer
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// A task. What is not ours any more, or refused, ends our work on it.
type task struct {
	sync.Mutex
	token string
}

func (s specialist) tell(t *task, verb string, said fields) error {
	t.Lock()
	said["token"] = t.token
	t.Unlock()
	answer := s.ask(verb, said)
	if refused, is := answer["error"].(fields); is {
		return errors.New(refused["message"].(string))
	}
	if answer["over"] == true {
		return fmt.Errorf("%v", answer["reason"])
	}
	if token, is := answer["token"].(string); is {
		t.Lock()
		t.token = token
		t.Unlock()
	}
	return nil
}

func (s specialist) work(t *task, goal string, next int, pace time.Duration, over <-chan error) error {
	words := len(strings.Fields(goal))
	for ; next < 4; next++ { // earlier steps count, whoever took them
		select {
		case why := <-over:
			return why
		case <-time.After(pace): // in place of real work
		}
		step := fields{"thought": "Count, to be sure.", "action": fields{"name": "count"}, "observation": strconv.Itoa(words)}
		if err := s.tell(t, "step", step); err != nil {
			return err
		}
	}
	result := fields{"conclusion": fmt.Sprintf("%d words.", words), "data": fields{"words": words}}
	return s.tell(t, "finish", fields{"result": result})
}

func (s specialist) serve(pace time.Duration) {
	for {
		who := fields{}
		for name, value := range s.who {
			who[name] = value
		}
		given, is := s.ask("take", who)["task"].(fields)
		if !is {
			continue
		}
		t, over, done := &task{token: given["token"].(string)}, make(chan error, 1), make(chan struct{})
		go func() { // without a word for 15 s the task goes to another
			for {
				select {
				case <-done:
					return
				case <-time.After(3 * time.Second):
					if err := s.tell(t, "beat", fields{}); err != nil {
						over <- err
						return
					}
				}
			}
		}()
		fmt.Println(s.work(t, given["goal"].(string), int(given["next_step"].(float64)), pace, over))
		close(done)
	}
}

func main() {
	me := os.Getenv("MUSTER_AGENT_ID")
	if me == "" {
		me = role + "-" + random()
	}
	seconds, err := strconv.ParseFloat(os.Getenv("PACE"), 64)
	if err != nil {
		seconds = 0.1
	}
	options := []nats.Option{nats.Name(me), nats.MaxReconnects(-1)} // by this name it is known at once when it dies
	if file := os.Getenv("NATS_CREDS"); file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	if ca := os.Getenv("NATS_CA"); ca != "" { // where the fleet has an authority of its own
		options = append(options, nats.RootCAs(ca))
	}
	if cert := os.Getenv("NATS_CERT"); cert != "" {
		options = append(options, nats.ClientCert(cert, os.Getenv("NATS_KEY")))
	}
	if prefix := os.Getenv("NATS_INBOX_PREFIX"); prefix != "" { // what its credentials let it listen to
		options = append(options, nats.CustomInboxPrefix(prefix))
	}
	nc, err := nats.Connect(os.Getenv("NATS_URL"), options...)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s := specialist{nc, fields{"agent": me, "pid": os.Getpid(), "slots": 2, "description": "Counts the words of a text.",
		"capabilities": []string{"word count"}}}
	pace := time.Duration(seconds * float64(time.Second))
	go s.serve(pace)
	s.serve(pace)
}
