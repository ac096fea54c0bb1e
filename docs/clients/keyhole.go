// keyhole.go

// Package keyhole reads the variables of a project from Keyhole. Go 1.19 or newer, no modules: copy this file into your
// program. A call returns all variables of an environment, or an error. Errors never contain the key or a value.
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

const answerBytesMax = 16 << 20

var (
	slug      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	keyText   = regexp.MustCompile(`^[!-~]+$`)
	codeText  = regexp.MustCompile(`^[a-z_]{1,40}$`)
	requestID = regexp.MustCompile(`^[\w.-]{1,64}$`)
	seconds   = regexp.MustCompile(`^[0-9]{1,18}$`)
)

// Variables returns the values by name. Cancel ctx to stop waiting.
func (c Client) Variables(ctx context.Context, project, environment string) (map[string]string, error) {
	address, key, err := c.settings()
	if err != nil {
		return nil, err
	}
	if !slug.MatchString(project) {
		return nil, invalid("the project is a slug, such as web")
	}
	if environment != "development" && environment != "staging" && environment != "production" {
		return nil, invalid("the environment is development, staging or production")
	}
	address += "/projects/" + project + "/variables?environment=" + environment
	deadline := time.Now().Add(orDefault(c.Wait))
	for tries := 0; ; tries++ {
		body, refusal := get(ctx, address, key, orDefault(c.Timeout))
		if refusal == nil {
			return parse(body, environment)
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
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// get returns the body of a 200. It follows no redirect and uses no proxy.
func get(ctx context.Context, address, key string, timeout time.Duration) ([]byte, *Error) {
	client := http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 65536},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, invalid("the address cannot be used")
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if err != nil {
		return nil, unreachable(err)
	}
	if len(body) > answerBytesMax {
		return nil, &Error{Code: "invalid_answer", Message: "the answer is too long", RetryAfter: -1}
	}
	if response.StatusCode == http.StatusOK {
		return body, nil
	}
	return nil, refusalOf(response, body, key)
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
