// Reads a note, the head of a tree and proofs from stdin, and judges them with the packages of Go's own checksum
// database, which share no code with Keyhole. Then it makes its own tree of the same leaves, proofs of it and a note.
package main

import (
	"crypto/rand"
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
	must(json.NewEncoder(os.Stdout).Encode(made(in.Leaves, opened.Text)))
}

// made is what Go makes of the leaves.
func made(leaves [][]byte, text string) any {
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) (found []tlog.Hash, err error) {
		for _, index := range indexes {
			found = append(found, stored[index])
		}
		return found, nil
	})
	var inclusion, consistency [][]tlog.Hash
	var roots []tlog.Hash
	size := int64(len(leaves))
	for at, leaf := range leaves {
		hashes, err := tlog.StoredHashes(int64(at), leaf, read)
		must(err)
		stored = append(stored, hashes...)
		root, err := tlog.TreeHash(int64(at)+1, read)
		must(err)
		roots = append(roots, root)
	}
	for at := int64(0); at < size; at++ {
		record, err := tlog.ProveRecord(size, at, read)
		must(err)
		inclusion = append(inclusion, record)
		tree, err := tlog.ProveTree(size, at+1, read)
		must(err)
		consistency = append(consistency, tree)
	}
	key, verifier, err := note.GenerateKey(rand.Reader, "go.example/log")
	must(err)
	signer, err := note.NewSigner(key)
	must(err)
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	must(err)
	return map[string]any{
		"text": text, "verifier": verifier, "note": string(signed),
		"roots": roots, "inclusion": inclusion, "consistency": consistency,
	}
}
