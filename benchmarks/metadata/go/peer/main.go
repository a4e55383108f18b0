// Command peer is Go's net/http giving each known source address its ready document.
// With ?wait= and an If-None-Match it holds the answer, to compare what a waiting client costs.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	listen := flag.String("listen", "", "HOST:PORT")
	body := flag.String("document", "", "file with the document")
	sources := flag.String("sources", "", "known source addresses, with commas")
	flag.Parse()
	document, err := os.ReadFile(*body)
	if err != nil {
		log.Fatal(err)
	}
	documents := map[string][]byte{}
	for _, source := range strings.Split(*sources, ",") {
		documents[source] = document
	}
	http.HandleFunc("/metadata/scheduledevents", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		found, ok := documents[host]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("If-None-Match") != "" {
			wait, _ := strconv.Atoi(r.URL.Query().Get("wait"))
			select {
			case <-r.Context().Done():
			case <-time.After(time.Duration(wait) * time.Second):
			}
		}
		header := w.Header()
		header.Set("Content-Type", "application/json; charset=utf-8")
		header.Set("Server", "IMDS/150.870.65.1854")
		header.Set("x-ms-request-id", "11111111-2222-3333-4444-555555555555")
		w.Write(found)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
