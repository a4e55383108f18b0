// Command hold opens many connections that each wait for a change, and holds them.
//
// It prints "held N" when every request is out and none was answered, and holds them until its
// standard input ends; then it prints how many were still waiting.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const openers = 64

func main() {
	address := flag.String("server", "", "HOST:PORT")
	path := flag.String("path", "", "path and query")
	sources := flag.String("sources", "", "own addresses, with commas, taken in turn")
	tag := flag.String("tag", "", "the ETag that the server has now")
	connections := flag.Int("connections", 10_000, "how many")
	flag.Parse()
	request := []byte("GET " + *path + " HTTP/1.1\r\nHost: " + *address +
		"\r\nMetadata: true\r\nIf-None-Match: " + *tag + "\r\n\r\n")
	own := strings.Split(*sources, ",")
	var answered atomic.Int64
	var group sync.WaitGroup
	numbers := make(chan int)
	for range openers {
		group.Go(func() {
			for number := range numbers {
				wait(dial(*address, own[number%len(own)]), request, &answered)
			}
		})
	}
	for number := range *connections {
		numbers <- number
	}
	close(numbers)
	group.Wait()
	fmt.Printf("held %d\n", int64(*connections)-answered.Load())
	io.Copy(io.Discard, os.Stdin)
	fmt.Printf("held %d\n", int64(*connections)-answered.Load())
}

func dial(address, source string) net.Conn {
	from := &net.TCPAddr{IP: net.ParseIP(source)}
	if !from.IP.IsLoopback() {
		log.Fatalf("%s is not a loopback address", source)
	}
	dialer := net.Dialer{LocalAddr: from, Timeout: 30 * time.Second, KeepAlive: -1}
	made, err := dialer.Dial("tcp4", address)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

// wait sends the request and leaves somebody behind who counts an answer or an end, which none
// should get.
func wait(held net.Conn, request []byte, answered *atomic.Int64) {
	if _, err := held.Write(request); err != nil {
		log.Fatal(err)
	}
	go func() {
		held.Read(make([]byte, 1))
		answered.Add(1)
	}()
}
