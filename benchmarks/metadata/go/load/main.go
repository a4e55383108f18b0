// Command load sends byte-identical requests from one thread and says what came back, as JSON.
//
// It reads raw epoll instead of net/http, so that one core of it can keep one core of a server
// busy. Each connection has one request under way. The first answer's length is every answer's
// length; another length or another status is an error, and the run stops. A server that closes
// although it was not asked to gets a new connection each time, as from any client. A request is
// sent once epoll says that its connection is up, as curl, wrk and Go's own client do it; with
// -eager it is tried in the same breath as the connect, which succeeds on loopback, so that no
// server ever sees a connection without its request. With -rate, requests start at that rate in
// all, in bursts of a millisecond's worth.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT: choose the port at connect
	bucketUs          = 5
	bucketsMax        = 200_000
	answerBytesMax    = 64 << 10
	closed            = -1
)

type connection struct {
	fd     int
	buffer []byte
	read   int
	sentAt time.Time
	wrote  bool
	slot   int
}

type load struct {
	epoll   int
	server  *syscall.SockaddrInet4
	sources []*syscall.SockaddrInet4
	request []byte
	fresh   bool
	eager   bool
	closes  bool     // the server ends each connection by itself
	length  int      // of each answer; 0 until the first
	buffers [][]byte // one a slot
	byFd    map[int]*connection
	done    int
	buckets []uint32
	rate    float64 // requests a second in all; 0 for no limit
	begun   int
	idle    []*connection // these wait for their turn
	started time.Time
	until   time.Time
}

func main() {
	runtime.LockOSThread()
	address := flag.String("server", "", "HOST:PORT")
	path := flag.String("path", "", "path and query")
	sources := flag.String("sources", "", "own addresses, with commas, taken in turn")
	connections := flag.Int("connections", 32, "at once")
	seconds := flag.Float64("seconds", 3, "how long")
	fresh := flag.Bool("fresh", false, "a new connection for each request")
	eager := flag.Bool("eager", false, "send without waiting to hear that a connection is up")
	rate := flag.Float64("rate", 0, "requests a second in all; 0 for as many as can be")
	flag.Parse()

	l := &load{
		server:  sockaddr(*address),
		request: request(*path, *address, *fresh),
		fresh:   *fresh,
		eager:   *eager,
		rate:    *rate,
		byFd:    map[int]*connection{},
		buckets: make([]uint32, bucketsMax),
	}
	for _, source := range strings.Split(*sources, ",") {
		l.sources = append(l.sources, sockaddr(source+":0"))
	}
	l.epoll = must(syscall.EpollCreate1(0))
	l.started = time.Now()
	l.until = l.started.Add(time.Duration(*seconds * float64(time.Second)))
	for slot := range *connections {
		l.buffers = append(l.buffers, make([]byte, answerBytesMax))
		l.open(slot)
	}
	l.run()
	l.report(time.Since(l.started))
}

func request(path, host string, fresh bool) []byte {
	text := "GET " + path + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: load\r\nAccept: */*\r\nMetadata: true\r\n"
	if fresh {
		text += "Connection: close\r\n"
	}
	return []byte(text + "\r\n")
}

func (l *load) open(slot int) {
	fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0))
	check(syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1))
	check(syscall.SetsockoptInt(fd, syscall.SOL_IP, bindAddressNoPort, 1))
	check(syscall.Bind(fd, l.sources[slot%len(l.sources)]))
	c := &connection{fd: fd, slot: slot, buffer: l.buffers[slot], sentAt: time.Now()}
	if err := syscall.Connect(fd, l.server); err != nil && err != syscall.EINPROGRESS {
		log.Fatalf("connect: %v", err)
	}
	l.byFd[fd] = c
	if l.eager {
		l.send(c)
	}
	events := uint32(syscall.EPOLLIN)
	if !c.wrote {
		events = syscall.EPOLLOUT
	}
	l.watch(syscall.EPOLL_CTL_ADD, c, events)
}

func (l *load) watch(operation int, c *connection, events uint32) {
	check(syscall.EpollCtl(l.epoll, operation, c.fd,
		&syscall.EpollEvent{Events: events, Fd: int32(c.fd)}))
}

// send writes the request; a connection that is not up yet writes it when it is.
func (l *load) send(c *connection) {
	n, err := syscall.Write(c.fd, l.request)
	if err == syscall.EAGAIN {
		return
	}
	check(err)
	if n != len(l.request) {
		log.Fatal("a request did not fit into the socket")
	}
	c.wrote = true
	l.begun++
}

func (l *load) run() {
	events := make([]syscall.EpollEvent, 256)
	for len(l.byFd)+len(l.idle) > 0 {
		timeoutMs := 10_000
		if len(l.idle) > 0 {
			timeoutMs = 1
		}
		n, err := syscall.EpollWait(l.epoll, events, timeoutMs)
		if err == syscall.EINTR {
			continue
		}
		check(err)
		if n == 0 && len(l.idle) == 0 {
			log.Fatalf("no answer for ten seconds; %d requests wait", len(l.byFd))
		}
		for _, event := range events[:n] {
			c := l.byFd[int(event.Fd)]
			if !c.wrote {
				l.send(c)
				l.watch(syscall.EPOLL_CTL_MOD, c, syscall.EPOLLIN)
			} else {
				l.receive(c)
			}
		}
		l.wake()
	}
}

// wake starts the requests that are due by now.
func (l *load) wake() {
	now := time.Now()
	due := int(now.Sub(l.started).Seconds()*l.rate) - l.begun
	for len(l.idle) > 0 && (due > 0 || now.After(l.until)) {
		c := l.idle[0]
		l.idle = l.idle[1:]
		l.again(c, now)
		due--
	}
}

func (l *load) receive(c *connection) {
	n, err := syscall.Read(c.fd, c.buffer[c.read:])
	if err == syscall.EAGAIN {
		return
	}
	check(err)
	if c.read == 0 && n > 0 && !bytes.HasPrefix(c.buffer, []byte("HTTP/1.1 200 ")) {
		log.Fatalf("the server answered %q", c.buffer[:n])
	}
	if l.length == 0 && n > 0 {
		l.learn(c.buffer[:c.read+n])
	}
	c.read += n
	ended := n == 0
	switch {
	case ended && (!l.fresh || c.read != l.length):
		log.Fatalf("closed after %d of %d bytes", c.read, l.length)
	case l.length > 0 && c.read > l.length:
		log.Fatalf("%d bytes instead of %d", c.read, l.length)
	case l.fresh && ended, !l.fresh && c.read == l.length:
		l.finish(c)
	}
}

func (l *load) finish(c *connection) {
	now := time.Now()
	l.done++
	bucket := int(now.Sub(c.sentAt) / (bucketUs * time.Microsecond))
	l.buckets[min(bucket, bucketsMax-1)]++
	if l.fresh || l.closes || now.After(l.until) {
		delete(l.byFd, c.fd)
		syscall.Close(c.fd)
		c.fd = closed
	}
	if l.rate > 0 {
		l.idle = append(l.idle, c)
	} else {
		l.again(c, now)
	}
}

// again starts the next request of a connection, or of one in its place; none if time is up.
func (l *load) again(c *connection, now time.Time) {
	switch {
	case now.After(l.until):
		if c.fd != closed {
			delete(l.byFd, c.fd)
			syscall.Close(c.fd)
		}
	case c.fd == closed:
		l.open(c.slot)
	default:
		c.read, c.sentAt = 0, now
		l.send(c)
	}
}

// learn takes from the first answer what the others will be like, once its head is all there.
func (l *load) learn(answer []byte) {
	head, _, found := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !found {
		return
	}
	for _, line := range strings.Split(string(head), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "content-length":
			l.length = len(head) + 4 + must(strconv.Atoi(strings.TrimSpace(value)))
		case "connection":
			l.closes = strings.TrimSpace(value) == "close"
		}
	}
	if l.length == 0 {
		log.Fatalf("no Content-Length in %q", head)
	}
}

func (l *load) report(took time.Duration) {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"requests": l.done,
		"seconds":  took.Seconds(),
		"cpu":      float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9,
		"bytes":    l.length,
		"p50_us":   l.quantile(0.50),
		"p99_us":   l.quantile(0.99),
	}))
}

func (l *load) quantile(q float64) int {
	left := int(q * float64(l.done))
	for bucket, count := range l.buckets {
		left -= int(count)
		if left < 0 {
			return bucket * bucketUs
		}
	}
	return bucketsMax * bucketUs
}

func sockaddr(text string) *syscall.SockaddrInet4 {
	parsed := must(netip.ParseAddrPort(text))
	if !parsed.Addr().IsLoopback() {
		log.Fatalf("%s is not a loopback address", text)
	}
	return &syscall.SockaddrInet4{Addr: parsed.Addr().As4(), Port: int(parsed.Port())}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
