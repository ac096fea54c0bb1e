// Reads a note, the head of a tree and proofs from stdin, and judges them with the packages of Go's own checksum
// database, which share no code with Keyhole.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type input struct {
	Note, Verifier string
	Leaves         [][]byte
	Size           int64
	Root           []byte
	Inclusion      []struct {
		Index int64
		Proof [][]byte
	}
	Consistency []struct {
		Size  int64
		Root  []byte
		Proof [][]byte
	}
}

func hashes(list [][]byte) (found []tlog.Hash) {
	for _, bytes := range list {
		var one tlog.Hash
		copy(one[:], bytes)
		found = append(found, one)
	}
	return found
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	var in input
	must(json.NewDecoder(os.Stdin).Decode(&in))
	verifier, err := note.NewVerifier(in.Verifier)
	must(err)
	opened, err := note.Open([]byte(in.Note), note.VerifierList(verifier))
	must(err)
	root := hashes([][]byte{in.Root})[0]
	for _, one := range in.Inclusion {
		must(tlog.CheckRecord(hashes(one.Proof), in.Size, root, one.Index, tlog.RecordHash(in.Leaves[one.Index])))
	}
	for _, one := range in.Consistency {
		must(tlog.CheckTree(hashes(one.Proof), in.Size, root, one.Size, hashes([][]byte{one.Root})[0]))
	}
	must(json.NewEncoder(os.Stdout).Encode(opened.Text))
}
