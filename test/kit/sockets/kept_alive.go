// Asks for answers without a body, and for one with, over one kept-alive connection with net/http.
//
// Usage: go run kept_alive.go http://HOST:PORT. Prints a line for each answer: status, Content-Length or "-",
// body, client port.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
)

func main() {
	for _, path := range []string{"/204", "/some", "/304", "/304-of-7", "/204", "/some"} {
		if err := ask(os.Args[1] + path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func ask(url string) error {
	port := 0
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		port = info.Conn.LocalAddr().(*net.TCPAddr).Port
	}}
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	length, text := answer.Header.Get("Content-Length"), string(body)
	if length == "" {
		length = "-"
	}
	if text == "" {
		text = "-"
	}
	fmt.Println(answer.StatusCode, length, text, port)
	return nil
}
