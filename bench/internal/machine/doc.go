// Package machine is what a benchmark starts and reads: PostgreSQL, Redis and the CPU
// time of processes. It needs Linux, since CPU time is read from /proc.
package machine
