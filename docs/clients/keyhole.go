// keyhole.go

// Package keyhole reads the variables of a project from Keyhole. Go 1.19 or newer, no modules: copy this file into your
// program. Variables returns all variables of an environment, or an error, and Watch goes on to follow their changes.
// Errors never contain the key or a value.
package keyhole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Client says where and as whom to read. The zero value takes KEYHOLE_URL, and KEYHOLE_API_KEY or KEYHOLE_API_KEY_FILE.
type Client struct {
	URL, Key string
	Timeout  time.Duration // of one request; 30 s if zero
	Wait     time.Duration // of all tries together; 30 s if zero, one try if negative
}

// Error says why there are no values. Code is one of the API, or unreachable, redirected, invalid_answer or
// invalid_options. RetryAfter is negative if the server named none.
type Error struct {
	Code, Message, RequestID string
	RetryAfter               time.Duration
}

func (e *Error) Error() string {
	if e.RequestID == "" {
		return e.Code + ": " + e.Message
	}
	return e.Code + ": " + e.Message + " (request " + e.RequestID + ")"
}

const (
	answerBytesMax = 16 << 20
	waitMost       = 25 * time.Second // many proxies cut a request that takes 30 s
)

var (
	slug      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	keyText   = regexp.MustCompile(`^[!-~]+$`)
	codeText  = regexp.MustCompile(`^[a-z_]{1,40}$`)
	requestID = regexp.MustCompile(`^[\w.-]{1,64}$`)
	seconds   = regexp.MustCompile(`^[0-9]{1,18}$`)
	tagText   = regexp.MustCompile(`^(W/)?"[!#-~]+"$`)
	// What a wait for a change may have caused: a proxy that cut it, or a key that was replaced.
	ofWait   = regexp.MustCompile(`^(unreachable|unauthorized|http_5..)$`)
	refusals = regexp.MustCompile(`^(invalid_options|unauthorized|(plan|surface|resource)_required|` +
		`environment_not_in_scope|project_not_found)$`)
)

// Variables returns the values by name. Cancel ctx to stop waiting.
func (c Client) Variables(ctx context.Context, project, environment string) (map[string]string, error) {
	deadline := time.Now().Add(orDefault(c.Wait))
	for tries := 0; ; tries++ {
		found, err := c.ask(ctx, project, environment, "", 0)
		if err == nil {
			return found.values, nil
		}
		var refusal *Error
		if !errors.As(err, &refusal) {
			return nil, err
		}
		if refusal.Code != "rate_limited" && refusal.Code != "unavailable" {
			return nil, refusal
		}
		delay := refusal.RetryAfter
		if delay < 0 {
			delay = 30 * time.Second
			if tries < 5 {
				delay = time.Second << tries
			}
		}
		delay += time.Duration(rand.Int63n(int64(delay)/10 + 1)) // so that many who wait do not return together
		if time.Now().Add(delay).After(deadline) {
			return nil, refusal
		}
		if err := pause(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// Watch calls changed with the values by name, at once and whenever they change. A server that waits for changes tells
// them at once. Any other is asked after every (30 s if zero). Watch returns if the first read fails, if the server
// refuses the key or the project, if no read succeeded for stale (5 min if zero), or if ctx is cancelled.
func (c Client) Watch(
	ctx context.Context, project, environment string, every, stale time.Duration, changed func(map[string]string),
) error {
	every = orDefault(every)
	if every < time.Second {
		every = time.Second
	}
	if stale == 0 {
		stale = 5 * time.Minute
	}
	wait := every
	if wait > waitMost {
		wait = waitMost
	}
	var last answer
	seen, mayWait := time.Now(), true
	for {
		began := time.Now()
		found, err := c.askWaiting(ctx, project, environment, last.tag, wait)
		delay := every
		if err == nil {
			seen = time.Now()
			// One answer without the header may be the first, or that of a server that stops.
			if found.waited || mayWait {
				delay = time.Until(began.Add(time.Second))
			}
			mayWait = found.waited
			if found.values == nil {
				found.values = last.values
			} else if !reflect.DeepEqual(found.values, last.values) {
				changed(found.values)
			}
			last = found
		} else {
			var refusal *Error
			passes := errors.As(err, &refusal) && !refusals.MatchString(refusal.Code) && ctx.Err() == nil
			if !passes || last.values == nil || time.Since(seen) > stale {
				return err
			}
			mayWait = true
			// The server is asked before the values are too old, whatever it says.
			delay = stale - time.Since(seen)
			if delay > refusal.RetryAfter {
				delay = refusal.RetryAfter
			}
			if delay < every {
				delay = every
			}
		}
		if delay < 0 {
			delay = 0
		}
		more := delay
		if more < 5*time.Second {
			more = 5 * time.Second
		}
		delay += time.Duration(rand.Int63n(int64(more) / 10)) // so that many do not ask together
		if err := pause(ctx, delay); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, delay time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return nil
	}
}

// answer has no values if they are still those of the tag that was asked with.
type answer struct {
	values map[string]string
	tag    string
	waited bool
}

// askWaiting asks, and if the wait for a change made that fail, asks again without one.
func (c Client) askWaiting(
	ctx context.Context, project, environment, tag string, wait time.Duration,
) (answer, error) {
	found, err := c.ask(ctx, project, environment, tag, wait)
	var refusal *Error
	if tag == "" || !errors.As(err, &refusal) || !ofWait.MatchString(refusal.Code) || ctx.Err() != nil {
		return found, err
	}
	return c.ask(ctx, project, environment, tag, 0)
}

// ask asks once. With a tag, the answer may wait for a change.
func (c Client) ask(ctx context.Context, project, environment, tag string, wait time.Duration) (answer, error) {
	address, key, err := c.settings()
	if err != nil {
		return answer{}, err
	}
	if !slug.MatchString(project) {
		return answer{}, invalid("the project is a slug, such as web")
	}
	if environment != "development" && environment != "staging" && environment != "production" {
		return answer{}, invalid("the environment is development, staging or production")
	}
	address += "/projects/" + project + "/variables?environment=" + environment
	headers := map[string]string{"Authorization": "Bearer " + key}
	timeout := orDefault(c.Timeout)
	if tag != "" {
		headers["If-None-Match"] = tag
		if wait > 0 {
			headers["Prefer"] = fmt.Sprintf("wait=%d", int(wait.Seconds()))
			timeout += wait
		}
	}
	response, body, refusal := get(ctx, address, headers, timeout)
	if refusal != nil {
		return answer{}, refusal
	}
	found := answer{tag: tag, waited: strings.HasPrefix(response.Header.Get("Preference-Applied"), "wait=")}
	if response.StatusCode == http.StatusNotModified && tag != "" {
		return found, nil
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, refusalOf(response, body, key)
	}
	if found.tag = response.Header.Get("ETag"); !tagText.MatchString(found.tag) {
		found.tag = ""
	}
	found.values, err = parse(body, environment)
	return found, err
}

// get returns an answer and its body. It follows no redirect and uses no proxy.
func get(
	ctx context.Context, address string, headers map[string]string, timeout time.Duration,
) (*http.Response, []byte, *Error) {
	client := http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 65536},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, invalid("the address cannot be used")
	}
	for name, text := range headers {
		request.Header.Set(name, text)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if err != nil {
		return nil, nil, unreachable(err)
	}
	if len(body) > answerBytesMax {
		return nil, nil, &Error{Code: "invalid_answer", Message: "the answer is too long", RetryAfter: -1}
	}
	return response, body, nil
}

func refusalOf(response *http.Response, body []byte, key string) *Error {
	refusal := &Error{Message: fmt.Sprintf("the server answered %d", response.StatusCode), RetryAfter: -1}
	if id := response.Header.Get("X-Request-Id"); requestID.MatchString(id) && !strings.Contains(id, key) {
		refusal.RequestID = id
	}
	var answer struct{ Code string }
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		refusal.Code = "redirected"
	case json.Unmarshal(body, &answer) == nil && codeText.MatchString(answer.Code):
		refusal.Code = answer.Code
	default:
		refusal.Code = fmt.Sprintf("http_%d", response.StatusCode)
	}
	refusal.RetryAfter = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	return refusal
}

// parseRetryAfter returns whole seconds, at least one: they may be sent as a date. Negative for other text.
func parseRetryAfter(text string, now time.Time) time.Duration {
	const most = 1_000_000_000
	var count float64
	if seconds.MatchString(text) {
		count, _ = strconv.ParseFloat(text, 64)
	} else if date, err := http.ParseTime(text); err == nil {
		count = math.Ceil(date.Sub(now).Seconds())
	} else {
		return -1
	}
	return time.Duration(math.Min(math.Max(count, 1), most)) * time.Second
}

// parse returns all variables, or none: an answer that is not as described is refused whole.
func parse(body []byte, environment string) (map[string]string, error) {
	var answer struct {
		Environment string
		Variables   []struct{ Key, Value *string }
	}
	bad := &Error{Code: "invalid_answer", Message: "the answer is not one of Keyhole", RetryAfter: -1}
	if json.Unmarshal(body, &answer) != nil || answer.Environment != environment || answer.Variables == nil {
		return nil, bad
	}
	values := make(map[string]string, len(answer.Variables))
	for _, one := range answer.Variables {
		if one.Key == nil || one.Value == nil {
			return nil, bad
		}
		if _, twice := values[*one.Key]; twice {
			return nil, bad
		}
		values[*one.Key] = *one.Value
	}
	return values, nil
}

// settings returns the API's root and the key.
func (c Client) settings() (root, key string, err error) {
	text := c.URL
	if text == "" {
		text = os.Getenv("KEYHOLE_URL")
	}
	address, err := url.Parse(text)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Hostname() == "" {
		return "", "", invalid("KEYHOLE_URL must be an address such as https://keyhole.example.com")
	}
	path := strings.TrimRight(address.Path, "/")
	if address.User != nil || address.RawQuery != "" || address.Fragment != "" || (path != "" && path != "/api/v1") {
		return "", "", invalid("KEYHOLE_URL must be the server's origin or its API root")
	}
	if address.Scheme == "http" && !isLoopback(address.Hostname()) {
		return "", "", invalid("plain http to another machine would show the key: use https")
	}
	key = c.Key
	if key == "" {
		key = os.Getenv("KEYHOLE_API_KEY")
	}
	if file := os.Getenv("KEYHOLE_API_KEY_FILE"); key == "" && file != "" {
		bytes, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		key = strings.TrimSpace(string(bytes))
	}
	if !keyText.MatchString(key) {
		return "", "", invalid("the API key is missing, or has characters that no key has")
	}
	return address.Scheme + "://" + address.Host + "/api/v1", key, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func orDefault(given time.Duration) time.Duration {
	if given == 0 {
		return 30 * time.Second
	}
	return given
}

func invalid(message string) *Error {
	return &Error{Code: "invalid_options", Message: message, RetryAfter: -1}
}

// unreachable names the kind of failure: the whole text of an error of net/http may quote the answer.
func unreachable(err error) *Error {
	message := "the request failed"
	var timeout net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		message = "the answer took too long"
	case errors.As(err, &operation):
		message = operation.Error()
	}
	return &Error{Code: "unreachable", Message: message, RetryAfter: -1}
}
