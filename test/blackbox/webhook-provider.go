// The address and the headers that the webhook provider of External Secrets Operator makes of a store: its own template
// engine, without the functions that the operator adds, since the manifests use none of them.
package main

import (
	"encoding/json"
	"log"
	"net/url"
	"os"
	"strings"
	"text/template"
)

type data = map[string]map[string]string

func main() {
	var asked struct {
		URL     string
		Headers map[string]string
		Secrets data
		Keys    []string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	var answers []map[string]string
	for _, key := range asked.Keys {
		answer := map[string]string{"url": render(asked.URL, asked.Secrets, url.QueryEscape(key))}
		for name, text := range asked.Headers {
			answer[name] = render(text, asked.Secrets, key)
		}
		answers = append(answers, answer)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func render(text string, secrets data, key string) string {
	all := data{"remoteRef": {"key": key}}
	for name, secret := range secrets {
		all[name] = secret
	}
	var rendered strings.Builder
	// A name that is absent would be an empty text to the operator. Here it is an error.
	parsed := template.Must(template.New("").Option("missingkey=error").Parse(text))
	if err := parsed.Execute(&rendered, all); err != nil {
		log.Fatal(err)
	}
	return rendered.String()
}
