package bank_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

const (
	lineOne = `{"kind":"charge","key":"one","charge":{"id":"ch_1","reference":"r","amount":5,"card":"tok_ok","status":"captured"}}` + "\n"
	lineTwo = `{"kind":"charge","key":"two","charge":{"id":"ch_2","reference":"r","amount":7,"card":"tok_ok","status":"captured"}}` + "\n"
)

func write(t *testing.T, content string) string {
	t.Helper()
	log := newLog(t)
	if err := os.WriteFile(log, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLog_aTornLastLineIsCutOffAndTold(t *testing.T) {
	for cut := 1; cut <= len(lineTwo); cut++ {
		var said bytes.Buffer
		log := write(t, lineOne+lineTwo[:len(lineTwo)-cut])
		b := start(t, bank.Config{Log: log, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		b.wantSummary(bank.Summary{Charges: 1, Amount: 5})
		if torn := cut < len(lineTwo); torn != strings.Contains(said.String(), "the middle of a line") {
			t.Errorf("%d bytes short: said %q", cut, said.String())
		}
		b.must("two", bank.Charge{Reference: "r", Amount: 7, Card: "tok_ok"})
		b = b.again()
		b.wantSummary(bank.Summary{Charges: 2, Amount: 12, Doubled: 1})
		b.stop()
	}
}

func TestLog_aBrokenLineIsAnErrorThatNamesIt(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"no JSON":        {lineOne + "{\"kind\n" + lineTwo, "line 2 cannot be read: it is not valid JSON, at byte "},
		"empty":          {lineOne + lineTwo + "\n" + lineTwo, "line 3 cannot be read: it is empty"},
		"zeros":          {"\x00\x00\x00\n", "line 1 cannot be read: it is not valid JSON"},
		"broken at end":  {lineOne + "[]\n", "line 2 cannot be read: it must be a JSON object"},
		"unknown kind":   {`{"kind":"loan"}` + "\n", `line 1 cannot be read: the kind "loan" is not known`},
		"no charge":      {`{"kind":"charge"}` + "\n", "line 1 cannot be read: there is no charge"},
		"unknown member": {strings.Replace(lineOne, "key", "keys", 1), `line 1 cannot be read: the member "keys"`},
		"a bad amount":   {lineOne + strings.Replace(lineTwo, "7", "-7", 1), "line 2 cannot be read: amount"},
		"a bad status":   {strings.Replace(lineOne, "captured", "lent", 1), `line 1 cannot be read: the status "lent"`},
		"no refund":      {`{"kind":"refund"}` + "\n", "line 1 cannot be read: there is no refund"},
		"of nothing":     {lineOne + strings.Replace(lineTwo, `"charge"`, `"refund"`, 2), "line 2 cannot be read: it is a refund, and says of what"},
		"of another":     {lineOne + strings.Replace(strings.Replace(lineTwo, `"charge"`, `"refund"`, 2), `"amount":7`, `"of":"q","amount":5`, 1), "line 2 cannot be read"},
		"a key twice":    {lineOne + lineOne, `line 2: the key "one" has a charge on an earlier line`},
	} {
		log := write(t, test.content)
		_, err := bank.Start(bank.Config{Log: log})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), log) {
			t.Errorf("%s: got %v, want the log and %q", name, err, test.want)
		}
		if got, _ := os.ReadFile(log); string(got) != test.content {
			t.Errorf("%s: the log was changed", name)
		}
	}
}

func TestLog_aSecondBankIsRefused(t *testing.T) {
	b := start(t, bank.Config{})
	const want = "another bank has the log"
	if _, err := bank.Start(bank.Config{Log: b.log}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in this process: got %v, want %q", err, want)
	}
	if _, err := bank.StartProcess(command(t, bank.Config{Log: b.log}, "")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in another process: got %v, want %q", err, want)
	}
	b.again()
}

// A full disk is a limit on the size of the process's files here, which also
// leaves half a line behind.
func TestLog_aBankThatCannotWriteEndsAndForgetsNothing(t *testing.T) {
	log := newLog(t)
	p, err := bank.StartProcess(command(t, bank.Config{Log: log}, "ulimit -f 4"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	client := bank.Client{URL: p.URL}
	told := map[string]bank.Receipt{}
	var key string
	for key = "k"; len(key) < 200; key += "k" {
		receipt, err := client.Charge(t.Context(), key, paying("tok_ok"))
		if err != nil {
			wantUnknown(t, err)
			break
		}
		told[key] = receipt
	}
	if err := p.Stop(); err == nil {
		t.Error("the process ended well, want an error")
	}
	b := start(t, bank.Config{Log: log})
	if got := len(lines(t, log)); len(told) == 0 || got != len(told) {
		t.Errorf("the log has %d lines, want those %d that were told", got, len(told))
	}
	for key, want := range told {
		if got := b.must(key, paying("tok_ok")); got != want {
			t.Errorf("a repeat under %s got %+v, want %+v", key, got, want)
		}
	}
	b.must(key, paying("tok_ok"))
}

func TestStart_saysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  bank.Config
		want string
	}{
		"no log":        {bank.Config{}, "there is no name for the log's file"},
		"no directory":  {bank.Config{Log: "/nowhere/at/all"}, "open the log"},
		"every address": {bank.Config{Log: newLog(t), Listen: ":0"}, "no loopback address"},
		"no address":    {bank.Config{Log: newLog(t), Listen: "here"}, "must be like 127.0.0.1:8001"},
		"slow":          {bank.Config{Log: newLog(t), Slow: 2 * bank.MaxDelay}, "slow is 1m0s"},
		"faults":        {bank.Config{Log: newLog(t), Faults: bank.Faults{DelayBefore: 1 << 40}}, "delay_before_ms"},
	} {
		if _, err := bank.Start(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
