package idemclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem/idemclient"
)

// timed answers by answer(n) and records when it was asked, from the beginning.
func timed(at *[]time.Duration, answer func(n int) (*http.Response, error)) base {
	begun := time.Now()
	return func(*http.Request) (*http.Response, error) {
		*at = append(*at, time.Since(begun))
		return answer(len(*at))
	}
}

// quiet is a transport on the bubble's clock with the default waits.
func quiet(t *testing.T, config idemclient.Config) *idemclient.Transport {
	t.Helper()
	transport, err := idemclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func TestWait_growsWithFullJitterUpToACap(t *testing.T) {
	bounds := []time.Duration{1, 2, 4, 8, 8, 8} // times MinWait
	longest := make([]time.Duration, len(bounds))
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			b := timed(&at, func(int) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
			transport := quiet(t, idemclient.Config{Base: b, Attempts: 7, MinWait: 100 * time.Millisecond, MaxWait: 800 * time.Millisecond})
			if _, err := transport.RoundTrip(request(t, t.Context())); !errors.Is(err, idemclient.ErrExhausted) || len(at) != 7 {
				t.Fatalf("got %v after %d attempts, want 7", err, len(at))
			}
			for i, bound := range bounds {
				wait := at[i+1] - at[i]
				if wait > bound*100*time.Millisecond {
					t.Errorf("wait %d is %v, want at most %v", i+1, wait, bound*100*time.Millisecond)
				}
				longest[i] = max(longest[i], wait)
			}
		})
	}
	for i, bound := range bounds { // 200 draws all below half the bound: once in 2^200
		if longest[i] < bound*50*time.Millisecond {
			t.Errorf("the longest of 200 waits %d is %v; the bound is %v", i+1, longest[i], bound*100*time.Millisecond)
		}
	}
}

func TestWait_honoursRetryAfter(t *testing.T) {
	const most = time.Millisecond // the jitter on top
	for name, c := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":                 {[]string{"Retry-After", "7"}, 7 * time.Second},
		"a date, by the server's": {[]string{"Retry-After", "Fri, 31 Dec 2027 23:59:59 GMT", "Date", "Fri, 31 Dec 2027 23:59:30 GMT"}, 29 * time.Second},
		"a date, by our clock":    {[]string{"Retry-After", "Sat, 01 Jan 2000 00:00:05 GMT"}, 5 * time.Second}, // bubbles begin in 2000
		"a date that is past":     {[]string{"Retry-After", "Fri, 31 Dec 1999 00:00:00 GMT"}, 0},
		"nonsense":                {[]string{"Retry-After", "-3"}, 0},
		"zero":                    {[]string{"Retry-After", "0"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			b := timed(&at, func(n int) (*http.Response, error) {
				if n == 1 {
					return respond(503, c.headers...), nil
				}
				return respond(201), nil
			})
			resp, err := quiet(t, idemclient.Config{Base: b, MinWait: most, MaxWait: most}).RoundTrip(request(t, t.Context()))
			if err != nil || resp.StatusCode != 201 {
				t.Fatalf("%s: got %v %v", name, resp, err)
			}
			if wait := at[1]; wait < c.want || wait > c.want+most {
				t.Errorf("%s: waited %v, want %v", name, wait, c.want)
			}
		})
	}
}

func TestWait_doesNotAskEarlierThanItMay(t *testing.T) {
	for _, value := range []string{"121", "3600", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			b := timed(&at, func(int) (*http.Response, error) { return respond(503, "Retry-After", value), nil })
			begun := time.Now()
			resp, err := quiet(t, idemclient.Config{Base: b}).RoundTrip(request(t, t.Context()))
			if err != nil || len(at) != 1 || time.Since(begun) != 0 {
				t.Fatalf("%s: got %v after %d attempts and %v, want the answer at once", value, err, len(at), time.Since(begun))
			}
			if sent, _ := idemclient.SentFrom(resp); !errors.Is(sent.Stopped, idemclient.ErrExhausted) {
				t.Errorf("%s: stopped for %v, want exhausted", value, sent.Stopped)
			}
		})
	}
}

func TestWait_jitterDoesNotCostTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		b := timed(&at, func(int) (*http.Response, error) { return respond(503, "Retry-After", "9"), nil })
		transport := quiet(t, idemclient.Config{Base: b, Total: 9*time.Second + time.Millisecond, MinWait: time.Hour})
		if _, err := transport.RoundTrip(request(t, t.Context())); err != nil || len(at) != 2 || at[1] < 9*time.Second {
			t.Errorf("asked at %v (%v), want a second time after 9 s", at, err)
		}
	})
}

func TestWait_endsWithTotal(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (*http.Response, error){
		"fast errors":  func(context.Context) (*http.Response, error) { return nil, io.EOF },
		"fast answers": func(context.Context) (*http.Response, error) { return respond(503, "Retry-After", "1"), nil },
		"silence": func(ctx context.Context) (*http.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			attempts := 0
			b := base(func(r *http.Request) (*http.Response, error) { attempts++; return answer(r.Context()) })
			transport := quiet(t, idemclient.Config{Base: b, Total: 30 * time.Second, AttemptTimeout: 7 * time.Second, Attempts: 1000})
			resp, err := transport.RoundTrip(request(t, t.Context()))
			if took := time.Since(begun); took > 30*time.Second || took < 15*time.Second {
				t.Errorf("%s: it took %v, want at most 30 s, well used", name, took)
			}
			sent, _ := idemclient.SentFrom(resp)
			if !errors.Is(err, idemclient.ErrExhausted) && !errors.Is(sent.Stopped, idemclient.ErrExhausted) {
				t.Errorf("%s: got %v and %+v, want exhausted", name, err, sent)
			}
			if attempts < 3 || attempts > 100 {
				t.Errorf("%s: %d attempts in 30 s", name, attempts)
			}
		})
	}
}

func TestWait_endsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begun := time.Now()
		b := base(func(*http.Request) (*http.Response, error) { return respond(503, "Retry-After", "60"), nil })
		_, err := quiet(t, idemclient.Config{Base: b}).RoundTrip(request(t, ctx))
		var e *idemclient.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Attempts != 1 || time.Since(begun) != 3*time.Second {
			t.Errorf("got %v after %v, want the context's end", err, time.Since(begun))
		}
	})
}

func TestWait_contextsDeadlineBringsTheAnswerInstead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		b := base(func(*http.Request) (*http.Response, error) { return respond(425, "Retry-After", "6"), nil })
		resp, err := quiet(t, idemclient.Config{Base: b}).RoundTrip(request(t, ctx))
		if err != nil || resp.StatusCode != 425 || ctx.Err() != nil {
			t.Errorf("got %v %v, want the answer before the deadline", resp, err)
		}
	})
}

func TestWait_streamOutlivesAttemptAndTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		b := base(func(r *http.Request) (*http.Response, error) {
			context.AfterFunc(r.Context(), func() { _ = reader.CloseWithError(r.Context().Err()) })
			resp := respond(200)
			resp.Body, resp.ContentLength = reader, -1
			return resp, nil
		})
		resp, err := quiet(t, idemclient.Config{Base: b}).RoundTrip(request(t, t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour) // by the bubble's clock
			_, _ = writer.Write([]byte("late"))
			_ = writer.Close()
		}()
		if got, err := io.ReadAll(resp.Body); string(got) != "late" || err != nil {
			t.Errorf("got %q %v, want the stream whole", got, err)
		}
		_ = resp.Body.Close()
	})
}
