package ratio

import "fmt"

// Goal is a ratio that the library is to reach, and what it reached. It judges the
// median.
type Goal struct {
	What    string  `json:"what"`
	Subject string  `json:"subject"`
	Want    float64 `json:"want"`
	AtMost  bool    `json:"at_most"` // else at least
	Got     Spread  `json:"got"`
	// PerCPU is the same ratio of what is done per CPU time, where the goal is one of
	// rates.
	PerCPU *Spread `json:"per_cpu,omitempty"`
	Met    bool    `json:"met"`
}

// Judged is g with Met as it is.
func (g Goal) Judged() Goal {
	g.Met = g.Got.Median >= g.Want
	if g.AtMost {
		g.Met = g.Got.Median <= g.Want
	}
	return g
}

// GoalsHead is the head of a table of goals.
const GoalsHead = "| goal | subject | want | rate or value | per CPU time | |\n|---|---|---|---|---|---|\n"

// Row is the goal's row in that table.
func (g Goal) Row() string {
	bound, verdict, cpu := "≥", "**missed**", ""
	if g.AtMost {
		bound = "≤"
	}
	if g.Met {
		verdict = "met"
	}
	if g.PerCPU != nil {
		cpu = g.PerCPU.Text(2)
	}
	return fmt.Sprintf("| %s | %s | %s %.2f | %s | %s | %s |", g.What, g.Subject, bound, g.Want, g.Got.Text(2), cpu, verdict)
}
